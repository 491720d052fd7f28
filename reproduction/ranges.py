"""How a policy fares in *all* worst worlds of another, where the worst world is not unique.

The worst worlds are those whose objective (``E val(q)``, or the utility of a
given policy) is within a tolerance of its least value. Over them a second
linear program gives the least and the largest utility of any policy, so
``[low, high]`` contains what every choice of a worst world would show.

In one coordinate ``q = lo + sum_j x_j`` with one variable per segment of
``val``; slopes grow, so filling segments out of order only overstates ``val``
and the program is exact with as many rows as there are moments, plus one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from prudent.arrays import FloatArray
from prudent.cases.memory_rows import Ambiguity
from prudent.errors import InputError
from prudent.problem import DecisionProblem
from prudent.solvers import Game
from prudent.solvers.game import upper_envelope
from prudent.spaces import Simplex

__all__ = ["TOLERANCE", "Range", "WorstWorlds", "worst_worlds_of_all", "worst_worlds_of_policy"]

#: Worlds count as worst if they are within this share of the utility range of the least value.
TOLERANCE = 1e-9
_ATTEMPTS = ((1e-10, True), (1e-10, False), (1e-9, True), (1e-9, False), (1e-8, True), (1e-7, True), (1e-7, False))


@dataclass(frozen=True)
class Range:
    """The least and the largest utility over a set of worlds.

    ``feasibility`` is how far a solver was allowed to miss a constraint: a moment or the objective, added up over
    rows, or a bound.
    """

    low: float
    high: float
    feasibility: float


@dataclass(frozen=True, eq=False)
class WorstWorlds:
    """A set of worlds ``q = start + spread @ x`` with ``x`` in a polytope.

    Attributes
    ----------
    problem : DecisionProblem
    weights : array of shape (n,)
    start : array of shape (n * d,)
    spread : sparse array of shape (n * d, number of variables)
    upper, limits : constraints ``upper @ x <= limits``
    equal, targets : constraints ``equal @ x == targets``
    bounds : array of shape (number of variables, 2)
    """

    problem: DecisionProblem
    weights: FloatArray
    start: FloatArray
    spread: Any
    upper: Any
    limits: FloatArray
    equal: Any
    targets: FloatArray
    bounds: FloatArray

    def utilities(self, mixtures: FloatArray) -> Range:
        """Return the least and the largest expected utility of mixtures ``(n, m)`` over these worlds."""
        rewards = self._rewards(mixtures)
        constant = float(rewards @ self.start) - float(self.weights @ (mixtures @ self.problem.costs))
        direction = self.spread.T @ rewards
        size = float(np.abs(direction).max(initial=0.0)) or 1.0
        _, least, one = self._least(direction / size)
        _, most, other = self._least(-direction / size)
        ends = sorted([least * size + constant, -most * size + constant])
        return Range(ends[0], ends[1], max(one, other))

    def worst_for(self, mixtures: FloatArray) -> FloatArray:
        """Return one of these worlds, shape ``(n, d)``, in which mixtures get least."""
        direction = self.spread.T @ self._rewards(mixtures)
        point, _, _ = self._least(direction / (float(np.abs(direction).max(initial=0.0)) or 1.0))
        world: FloatArray = (self.start + self.spread @ point).reshape(len(self.weights), -1)
        return world

    def _rewards(self, mixtures: FloatArray) -> FloatArray:
        rewards: FloatArray = (self.weights[:, None] * (mixtures @ self.problem.rewards)).reshape(-1)
        return rewards

    def _least(self, direction: FloatArray) -> tuple[FloatArray, float, float]:
        """Minimise; the set is thin, so a solver that finds it empty is asked again, less and less strictly."""
        solver: Any = linprog  # its stubs do not know sparse matrices
        constraints = (self.upper, self.limits, self.equal, self.targets, self.bounds)
        for feasibility, presolve in _ATTEMPTS:
            options = {
                "primal_feasibility_tolerance": feasibility,
                "dual_feasibility_tolerance": feasibility,
                "presolve": presolve,
            }
            found = solver(direction, *constraints, method="highs", options=options)
            if found.status == 0:
                return np.asarray(found.x), float(found.fun), feasibility
        raise ArithmeticError(f"the range over worst worlds could not be computed: {found.message}")


def worst_worlds_of_policy(
    problem: DecisionProblem, ambiguity: Ambiguity, mixtures: FloatArray, value: float
) -> WorstWorlds:
    """Describe the worlds in which mixtures get no more than ``value``, their worst case, plus the tolerance."""
    n, d = ambiguity.forecasts.shape
    rewards = (ambiguity.weights[:, None] * (mixtures @ problem.rewards)).reshape(1, -1)
    constant = float(ambiguity.weights @ (mixtures @ problem.costs))
    low, high = problem.space.bounds
    start, identity = np.tile(low, n), sparse.eye_array(n * d, format="csr")
    cap = value + TOLERANCE * problem.utility_range + constant - float(rewards[0] @ start)
    box = np.tile(np.stack([np.zeros(d), high - low], axis=1), (n, 1))
    return _assemble(problem, ambiguity, start, identity, sparse.csr_array(rewards), np.array([cap]), box)


def worst_worlds_of_all(problem: DecisionProblem, ambiguity: Ambiguity, value: float) -> WorstWorlds:
    """Describe the minimisers of ``E val(q)``: worlds in which nobody gets more than ``value`` plus the tolerance."""
    cap = value + TOLERANCE * problem.utility_range
    if problem.dimension == 1:
        return _by_segments(problem, ambiguity, cap)
    n, d = ambiguity.forecasts.shape
    m = problem.n_actions
    low, high = problem.space.bounds
    start = np.tile(low, n)
    spread = sparse.hstack([sparse.eye_array(n * d), sparse.csr_array((n * d, n))], format="csr")
    heights = sparse.kron(sparse.eye_array(n), np.ones((m, 1)))
    epigraph = sparse.hstack([sparse.kron(sparse.eye_array(n), problem.rewards), -heights], format="csr")
    budget = sparse.csr_array(np.concatenate([np.zeros(n * d), ambiguity.weights])[None])
    limits = np.concatenate([np.tile(problem.costs - problem.rewards @ low, n), [cap]])
    box = np.tile(np.stack([np.zeros(d), high - low], axis=1), (n, 1))
    free = np.tile([-np.inf, np.inf], (n, 1))
    upper = sparse.vstack([epigraph, budget], format="csr")
    return _assemble(problem, ambiguity, start, spread, upper, limits, np.vstack([box, free]))


def _by_segments(problem: DecisionProblem, ambiguity: Ambiguity, cap: float) -> WorstWorlds:
    envelope = upper_envelope(Game.of_problem(problem))
    n, pieces = ambiguity.n_rows, len(envelope.slopes)
    low = envelope.points[0]
    spread = sparse.kron(sparse.eye_array(n), np.ones((1, pieces)), format="csr")
    budget = sparse.csr_array(np.kron(ambiguity.weights, envelope.slopes)[None])
    at_low = float(problem.linear_utility(np.array([[low]])).max())
    widths = np.stack([np.zeros(pieces), np.diff(envelope.points)], axis=1)
    return _assemble(
        problem, ambiguity, np.full(n, low), spread, budget, np.array([cap - at_low]), np.tile(widths, (n, 1))
    )


def _of_rows(upper: Any, limits: FloatArray, n: int) -> tuple[Any, FloatArray]:
    """Write the last constraint, a mean over rows, as a sum."""
    factors = np.ones(len(limits))
    factors[-1] = n
    return sparse.diags_array(factors, format="csr") @ upper, factors * limits


def _assemble(
    problem: DecisionProblem,
    ambiguity: Ambiguity,
    start: FloatArray,
    spread: Any,
    upper: Any,
    limits: FloatArray,
    bounds: FloatArray,
) -> WorstWorlds:
    """Add what makes a world allowed: its moments, and on the simplex its sums."""
    if ambiguity.full or not ambiguity.slack.exact:
        raise InputError("ranges over worst worlds are computed for exact guarantees with finitely many tests.")
    n, d = ambiguity.forecasts.shape
    tests = ambiguity.tests.as_vector().values
    sizes = np.abs(tests).max(axis=(0, 2), initial=0.0)
    moments = (ambiguity.weights[:, None, None] * tests).transpose(1, 0, 2).reshape(-1, n * d)
    # Sums over rows and not means: solvers drop coefficients below 1e-9. Tests without rows bind nothing.
    moments = moments[sizes > 0] * (n / sizes[sizes > 0, None])
    upper, limits = _of_rows(upper, limits, n)
    equal = sparse.csr_array(moments) @ spread
    targets = moments @ (ambiguity.forecasts.reshape(-1) - start)
    if isinstance(problem.space, Simplex):
        sums = sparse.kron(sparse.eye_array(n), np.ones((1, d)), format="csr") @ spread
        equal, targets = sparse.vstack([equal, sums], format="csr"), np.concatenate([targets, np.ones(n)])
    return WorstWorlds(problem, ambiguity.weights, start, spread, upper, limits, equal, targets, bounds)
