"""An independent reference: the programs of docs/theory.md, section 5, written plainly in CVXPY.

Shares no code with the library. Everything is in the user's units; tests are
given as a tensor ``B`` of shape (n, K, d), moments are ``sum_i w_i B_i (q_i - v_i)``.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Allowed:
    """The set S: ``kind`` is "exact", "ball" (per group) or "box" (per moment)."""

    kind: str
    center: np.ndarray
    radius: np.ndarray
    groups: np.ndarray

    def penalty(self, multipliers: np.ndarray) -> float:
        total = float(self.center @ multipliers)
        if self.kind == "box":
            return total + float(self.radius @ np.abs(multipliers))
        if self.kind == "ball":
            norms = [np.linalg.norm(multipliers[self.groups == g]) for g in range(len(self.radius))]
            return total + float(self.radius @ np.array(norms))
        return total

    def violation(self, moments: np.ndarray) -> float:
        offset = moments - self.center
        if offset.size == 0:
            return 0.0
        if self.kind == "ball":
            norms = np.array([np.linalg.norm(offset[self.groups == g]) for g in range(len(self.radius))])
            return float(np.maximum(norms - self.radius, 0).max())
        radius = self.radius if self.kind == "box" else 0.0
        return float(np.maximum(np.abs(offset) - radius, 0).max())


@dataclass(frozen=True)
class World:
    """Rows, outcome space and tests of one instance."""

    low: np.ndarray
    high: np.ndarray
    simplex: bool
    forecasts: np.ndarray
    weights: np.ndarray
    tests: np.ndarray
    allowed: Allowed

    def moments(self, beliefs: np.ndarray) -> np.ndarray:
        residual = self.weights[:, None] * (beliefs - self.forecasts)
        return np.array([(self.tests[:, j] * residual).sum() for j in range(self.tests.shape[1])])

    def least(self, directions: np.ndarray) -> np.ndarray:
        """``min p.x`` over the space."""
        if self.simplex:
            return directions.min(axis=1)
        return np.where(directions > 0, directions * self.low, directions * self.high).sum(axis=1)


def robust_value(rewards: np.ndarray, costs: np.ndarray, world: World) -> float:
    """``V* = min over allowed worlds of E val(q)``."""
    n = len(world.weights)
    m = len(costs)
    z = cp.Variable(world.forecasts.size)
    t = cp.Variable(n)
    utilities = sp.kron(sp.eye(n), rewards * (world.high - world.low), format="csr")
    at_corner = rewards @ world.low - costs
    level = float(at_corner.mean())  # solvers stop at an error relative to the value, so the level is kept apart
    spread = sp.kron(sp.eye(n), np.ones((m, 1)), format="csr")
    constraints = [spread @ t >= utilities @ z + np.tile(at_corner - level, n)]
    return level + _solve(world.weights @ t, z, constraints, world)


def capacity_value(
    rewards: np.ndarray,
    costs: np.ndarray,
    world: World,
    uses: np.ndarray,
    limits: np.ndarray,
    in_use: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """``min over worlds and prices of E max_a {u(a, q) - prices.uses_a} + prices.limits``, and the prices.

    With ``in_use``, mixtures of a rule, of the gain over it.
    """
    n, m = len(world.weights), len(costs)
    z, t, prices = cp.Variable(world.forecasts.size), cp.Variable(n), cp.Variable(len(limits), nonneg=True)
    width = world.high - world.low
    utilities = sp.kron(sp.eye(n), rewards * width, format="csr")
    at_corner = rewards @ world.low - costs
    level = float(at_corner.mean())
    spread = sp.kron(sp.eye(n), np.ones((m, 1)), format="csr")
    constraints = [spread @ t >= utilities @ z + np.tile(at_corner - level, n) - np.tile(uses, n).T @ prices]
    objective, base = world.weights @ t + limits @ prices, 0.0
    if in_use is not None:
        objective -= (world.weights[:, None] * (in_use @ rewards) * width).reshape(-1) @ z
        base = float(world.weights @ in_use @ at_corner)
    value = _solve(objective, z, constraints, world)
    return level - base + value, prices.value


def worst_case(rewards: np.ndarray, costs: np.ndarray, mixtures: np.ndarray, world: World) -> float:
    """Least expected utility of given mixtures over all allowed worlds."""
    z = cp.Variable(world.forecasts.size)
    mixed = mixtures @ rewards
    objective = ((world.weights[:, None] * mixed * (world.high - world.low)).reshape(-1)) @ z
    return _solve(objective, z, [], world) + float(world.weights @ (mixed @ world.low - mixtures @ costs))


def best_pure_value(rewards: np.ndarray, costs: np.ndarray, world: World) -> float:
    """Try every deterministic rule on the rows."""
    n, m = len(world.weights), len(costs)
    rules = itertools.product(range(m), repeat=n)
    return max(worst_case(rewards, costs, np.eye(m)[list(rule)], world) for rule in rules)


def dual_value(
    rewards: np.ndarray, costs: np.ndarray, mixtures: np.ndarray, multipliers: np.ndarray, world: World
) -> float:
    """What mixtures and multipliers prove by weak duality (docs/theory.md, section 5)."""
    tilts = np.einsum("nkd,k->nd", world.tests, multipliers)
    secured = world.least(mixtures @ rewards + tilts) - mixtures @ costs
    linear = (tilts * world.forecasts).sum(axis=1)
    return float(world.weights @ (secured - linear)) - world.allowed.penalty(multipliers)


def _solve(objective: cp.Expression, z: cp.Variable, constraints: list, world: World) -> float:
    """Minimise over allowed worlds ``q = low + (high - low) z``."""
    n, d = world.forecasts.shape
    constraints = [*constraints, z >= 0]
    if world.simplex:
        constraints.append(sp.kron(sp.eye(n), np.ones((1, d)), format="csr") @ z == np.ones(n))
    else:
        constraints.append(z <= 1)
    size = world.tests.shape[1]
    if size:
        width = world.high - world.low
        matrix = (world.weights[:, None, None] * world.tests * width).transpose(1, 0, 2).reshape(size, n * d)
        moments = matrix @ z - matrix @ ((world.forecasts - world.low) / width).reshape(-1)
    allowed = world.allowed
    linear = True
    for tolerance in (0.0, 1e-9):
        couplings = []
        if size and allowed.kind == "ball":
            linear = False
            for group, radius in enumerate(allowed.radius):
                members = np.flatnonzero(allowed.groups == group)
                offset = moments[members] - allowed.center[members]
                couplings.append(cp.norm(offset, 2) <= radius + tolerance if radius + tolerance else offset == 0)
        elif size:
            radius = (allowed.radius if allowed.kind == "box" else np.zeros(size)) + tolerance
            fixed, free = np.flatnonzero(radius == 0), np.flatnonzero(radius > 0)
            if fixed.size:
                couplings.append(moments[fixed] == allowed.center[fixed])
            if free.size:
                couplings.append(moments[free] <= allowed.center[free] + radius[free])
                couplings.append(moments[free] >= allowed.center[free] - radius[free])
        program = cp.Problem(cp.Minimize(objective), constraints + couplings)
        tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
        exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        attempts = [(cp.CLARABEL, tight), (cp.CLARABEL, {})]
        for solver, options in [(cp.HIGHS, exact), *attempts] if linear else attempts:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": its status says so too
                    program.solve(solver=solver, warm_start=False, **options)
            except (cp.SolverError, ValueError):  # HiGHS may end in a status that CVXPY cannot read
                continue
            if program.status == cp.OPTIMAL:
                return float(program.value)
    raise AssertionError(f"the reference could not be solved: {program.status}")
