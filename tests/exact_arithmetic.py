"""Both bounds of a certificate in rational numbers: plain definitions, no code shared with the library.

Floats are taken for the numbers that they are. Weights, mixtures and probabilities count as divided by their sums, and
a combination of exact tests that on every row is below the rounding of what it is made of counts as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

ROUNDING = Fraction(2) ** -51


def exact(values: np.ndarray) -> np.ndarray:
    """Write floats as rational numbers, in an array of the same shape."""
    flat = [Fraction(float(value)) for value in np.asarray(values, dtype=float).reshape(-1)]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(np.shape(values))


def normalised(rows: np.ndarray) -> np.ndarray:
    return rows / rows.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class ExactProblem:
    """A robust decision problem with intervals of slack, in rational numbers."""

    rewards: np.ndarray  # (m, d)
    costs: np.ndarray  # (m,)
    low: np.ndarray
    high: np.ndarray
    simplex: bool
    forecasts: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    tests: np.ndarray  # (n, K, d)
    center: np.ndarray  # (K,)
    radius: np.ndarray  # (K,)

    @classmethod
    def of(cls, rewards, costs, low, high, simplex, forecasts, weights, tests, center, radius) -> ExactProblem:
        placed = normalised(exact(forecasts)) if simplex else exact(forecasts)
        numbers = (exact(tests), exact(center), exact(radius))
        ends = (exact(low), exact(high))
        return cls(exact(rewards), exact(costs), *ends, simplex, placed, normalised(exact(weights)), *numbers)

    def guaranteed(self, multipliers: np.ndarray, mixtures: np.ndarray) -> Fraction:
        """What multipliers prove about a policy, by weak duality."""
        tilts = np.einsum("k,nkd->nd", multipliers, self.tests)
        direction = mixtures @ self.rewards + tilts
        if self.simplex:
            least = direction.min(axis=1)
        else:
            least = np.minimum(self.low * direction, self.high * direction).sum(axis=1)
        rows = least - mixtures @ self.costs - (tilts * self.forecasts).sum(axis=1)
        penalty = self.center @ multipliers + self.radius @ np.abs(multipliers)
        return (self.weights * rows).sum() - penalty

    def attained(self, world: np.ndarray) -> Fraction:
        """What the best policy gets in a world."""
        return (self.weights * (world @ self.rewards.T - self.costs).max(axis=1)).sum()

    def allowed(self, world: np.ndarray) -> bool:
        moments = np.einsum("n,nkd,nd->k", self.weights, self.tests, world - self.forecasts)
        inside = (world >= self.low).all() and (world <= self.high).all()
        whole = not self.simplex or (world.sum(axis=1) == 1).all()
        return bool(inside and whole and (np.abs(moments - self.center) <= self.radius).all())

    def best_known(self) -> Fraction:
        """A lower bound for the optimum that is nearly tight: a linear program proposes, rationals prove.

        Exact tests are made orthogonal in rational numbers first, so that nearly equal ones do not mislead the solver.
        """
        held = [k for k in range(len(self.radius)) if self.radius[k] == 0]
        basis = _orthogonal(self.tests[:, held], self.weights)
        loose = [k for k in range(len(self.radius)) if self.radius[k] > 0]
        columns: list[np.ndarray] = []
        combinations: list[np.ndarray] = []
        for combination, values in basis:
            size = np.abs(values).max()
            made_of = np.einsum("k,nkd->nd", np.abs(combination), np.abs(self.tests[:, held]))
            if (np.abs(values) <= ROUNDING * made_of).all():
                continue
            given = np.array([Fraction(0)] * len(self.radius), dtype=object)
            given[held] = combination / size
            columns.append(values / size)
            combinations.append(given)
        for k in loose:
            unit = np.array([Fraction(int(j == k)) for j in range(len(self.radius))], dtype=object)
            columns.append(self.tests[:, k])
            combinations.append(unit)
        rights = [c @ self.center for c in combinations]
        prices, mixtures = self._propose(columns, rights, len(combinations) - len(loose))
        multipliers = sum((Fraction(p) * c for p, c in zip(prices, combinations, strict=True)), 0 * self.radius)
        return self.guaranteed(multipliers, mixtures)

    def _propose(self, columns, rights, n_exact) -> tuple[np.ndarray, np.ndarray]:
        n, d = self.forecasts.shape
        m = len(self.costs)
        weights, low = self.weights.astype(float), self.low
        # Outcomes from the corner and utilities from their mean there, computed before anything is rounded.
        corner = self.rewards @ low - self.costs
        corner = corner - corner.sum() / m
        scale = max(float(max(abs(x) for x in corner)), float(np.abs(self.rewards @ (self.high - low)).max()), 1e-300)
        width = (self.high - low).astype(float)
        rewards = (self.rewards * (self.high - low)).astype(float) / scale
        offsets = corner.astype(float) / scale
        upper = np.zeros((n * m, n * d + n))
        limits = np.zeros(n * m)
        for i in range(n):
            upper[i * m : (i + 1) * m, i * d : (i + 1) * d] = rewards
            upper[i * m : (i + 1) * m, n * d + i] = -1.0
            limits[i * m : (i + 1) * m] = -offsets
        moments = [np.zeros(n * d + n) for _ in columns]
        targets = np.zeros(len(columns))
        for k, column in enumerate(columns):
            moments[k][: n * d] = (weights[:, None] * column.astype(float) * width).reshape(-1)
            start = np.einsum("n,nd,nd->", self.weights, column, self.forecasts - low)
            targets[k] = float(start + rights[k])
        equal = [moments[k] for k in range(n_exact)]
        values = list(targets[:n_exact])
        radius = [float(r) for r in self.radius if r > 0]
        above, below = list(upper), list(limits)
        for k, r in zip(range(n_exact, len(columns)), radius, strict=True):
            above += [moments[k], -moments[k]]
            below += [targets[k] + r, r - targets[k]]
        if self.simplex:
            for i in range(n):
                row = np.zeros(n * d + n)
                row[i * d : (i + 1) * d] = 1.0
                equal.append(row)
                values.append(1.0)
        cost = np.concatenate([np.zeros(n * d), weights])
        bounds = [(0.0, 1.0)] * (n * d) + [(None, None)] * n
        equalities = {"A_eq": np.array(equal), "b_eq": np.array(values)} if equal else {}
        answer = linprog(cost, np.array(above), np.array(below), bounds=bounds, method="highs", **equalities)
        if answer.status != 0:
            return np.zeros(len(columns)), normalised(exact(np.ones((n, m))))
        prices = np.zeros(len(columns))
        if equal:
            prices[:n_exact] = -answer.eqlin.marginals[:n_exact]
        rest = -answer.ineqlin.marginals[n * m :]
        prices[n_exact:] = rest[0::2] - rest[1::2]
        mixtures = np.maximum(-answer.ineqlin.marginals[: n * m].reshape(n, m), 0.0)
        mixtures = np.where(mixtures.sum(axis=1, keepdims=True) > 0, mixtures, 1.0)
        return prices * scale, normalised(exact(mixtures))


def _orthogonal(tests: np.ndarray, weights: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Gram and Schmidt without roots, in rational numbers: combinations of tests ``(n, K, d)``, and their values."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    count = tests.shape[1]
    for j in range(count):
        values = tests[:, j]
        combination = np.array([Fraction(int(j == k)) for k in range(count)], dtype=object)
        for other, earlier in found:
            square = (weights[:, None] * earlier * earlier).sum()
            if square:
                share = (weights[:, None] * earlier * values).sum() / square
                values, combination = values - share * earlier, combination - share * other
        found.append((combination, values))
    return found
