"""The most that a minimax-optimal policy can get in a given world.

A policy ``pi`` guarantees ``sum_i w_i z_i`` if there are multipliers with
``z_i <= u(pi_i, p) + s(v_i).(p - v_i)`` at every corner ``p`` of the outcome
space, ``s`` being the tilt of the multipliers (docs/theory.md, section 2). So the policies whose
guarantee is the optimum form a polytope, and one linear program finds which of
them does best in a world. What it finds no minimax-optimal policy exceeds.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from prudent.arrays import FloatArray
from prudent.cases.memory_rows import Ambiguity
from prudent.problem import DecisionProblem
from prudent.spaces import Simplex

__all__ = ["TOLERANCE", "most_of_optimal_policies"]

#: Policies count as optimal if they guarantee the optimum up to this share of the utility range.
TOLERANCE = 1e-7


def most_of_optimal_policies(
    problem: DecisionProblem, ambiguity: Ambiguity, optimum: float, world: FloatArray
) -> float:
    """Return the largest expected utility in a world ``(n, d)`` over policies that guarantee the optimum.

    Parameters
    ----------
    problem : DecisionProblem
    ambiguity : Ambiguity
        With an exact guarantee of finitely many tests.
    optimum : float
        A lower bound of the optimum; the lower it is, the more policies take part.
    world : array of shape (n, d)
    """
    n, m = ambiguity.n_rows, problem.n_actions
    tests = ambiguity.tests.as_vector().values  # (n, K, d)
    tests = tests / np.maximum(np.abs(tests).max(axis=(0, 2), keepdims=True), np.finfo(np.float64).tiny)
    each, count = sparse.eye_array(n, format="csr"), tests.shape[1]
    held: list[Any] = []
    for corner in _corners(problem):
        utilities = sparse.kron(each, (problem.rewards @ corner - problem.costs)[None], format="csr")
        tilts = sparse.csr_array(np.einsum("nkd,nd->nk", tests, corner - ambiguity.forecasts))
        held.append(sparse.hstack([-utilities, each, -tilts], format="csr"))
    # Sums over rows and not means: solvers drop small coefficients.
    weights = n * ambiguity.weights
    guaranteed = sparse.hstack(
        [sparse.csr_array((1, n * m)), sparse.csr_array(-weights[None]), sparse.csr_array((1, count))], format="csr"
    )
    limits = np.zeros(n * len(held) + 1)
    limits[-1] = -n * (optimum - TOLERANCE * problem.utility_range)
    chances = sparse.hstack(
        [sparse.kron(each, np.ones((1, m)), format="csr"), sparse.csr_array((n, n + count))], format="csr"
    )
    gains = (weights[:, None] * problem.linear_utility(world)).reshape(-1)
    bounds = np.full((n * m + n + count, 2), [-np.inf, np.inf])
    bounds[: n * m] = [0.0, 1.0]
    solver: Any = linprog  # its stubs do not know sparse matrices
    found = solver(
        np.concatenate([-gains, np.zeros(n + count)]),
        sparse.vstack([*held, guaranteed], format="csr"),
        limits,
        chances,
        np.ones(n),
        bounds,
        method="highs",
    )
    if found.status != 0:
        raise ArithmeticError(f"the best of the optimal policies could not be computed: {found.message}")
    return float(-found.fun) / n


def _corners(problem: DecisionProblem) -> FloatArray:
    """The extreme points of the outcome space, one per line."""
    if isinstance(problem.space, Simplex):
        return np.eye(problem.dimension)
    low, high = problem.space.bounds
    return np.array(list(product(*zip(low, high, strict=True))))
