"""The adversary's program handed to a simplex solver: a second opinion where the interior point stops short.

Only for exact and interval slack and a moderate number of rows; extreme
scales (weights over twelve orders, tests of size 1e8 beside slack of 0.02)
are where vertices are found and centres are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.game import Game
from prudent.solvers.moment_system import MomentSystem
from prudent.spaces import Simplex

__all__ = ["linear_program", "linear_program_applies"]

_MOST_ENTRIES = 1_000_000


def linear_program_applies(game: Game, system: MomentSystem, n: int) -> bool:
    """True if the slack is polyhedral and the program small enough to be worth it."""
    return system.balls.size == 0 and n * game.dimension * (game.n_actions + system.size) <= _MOST_ENTRIES


def linear_program(game: Game, system: MomentSystem, forecasts: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return reduced multipliers and a world in natural units, or None where the solver gives up."""
    from scipy import sparse
    from scipy.optimize import linprog

    n, d = forecasts.shape
    m = game.n_actions
    rewards = np.broadcast_to(game.rewards, (n, m, d))
    offsets = np.broadcast_to(game.offsets, (n, m))
    heights = sparse.kron(sparse.eye(n), np.ones((m, 1)))
    epigraph = sparse.hstack([sparse.block_diag(list(rewards)), -heights], format="csr")
    values = system.values
    if values.ndim == 2:
        values = np.einsum("kn,de->kden", values, np.eye(d)).reshape(-1, d, n)
        if system.combination is not None:
            values = np.tensordot(system.combination.T, values, axes=1)
    weighted = (system.weights * values).transpose(0, 2, 1).reshape(-1, n * d)
    moments = sparse.hstack([sparse.csr_matrix(weighted), sparse.csr_matrix((len(weighted), n))], format="csr")
    right = weighted @ forecasts.reshape(-1) + system.center
    loose, fixed = system.interval, system.exact
    upper = sparse.vstack([epigraph, moments[loose], -moments[loose]], format="csr")
    limits = np.concatenate([-offsets.reshape(-1), right[loose] + system.radius, system.radius - right[loose]])
    equality, targets = moments[fixed], right[fixed]
    if isinstance(game.space, Simplex):
        sums = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, d))), sparse.csr_matrix((n, n))])
        equality, targets = sparse.vstack([equality, sums], format="csr"), np.concatenate([targets, np.ones(n)])
    cost = np.concatenate([np.zeros(n * d), system.weights])
    bounds = [(0.0, 1.0)] * (n * d) + [(None, None)] * n
    solver: Any = linprog  # its stubs do not know sparse matrices
    result = solver(cost, upper, limits, equality, targets, bounds, method="highs-ds")
    if result.status != 0:
        return None
    multipliers = np.zeros(system.size)
    multipliers[fixed] = -result.eqlin.marginals[: fixed.size]
    prices = -result.ineqlin.marginals[n * m :]
    multipliers[loose] = prices[: loose.size] - prices[loose.size :]
    return multipliers, result.x[: n * d].reshape(n, d)
