"""The small game behind an online prediction: points to draw from so that no outcome gains much on average.

Everything here is in units of the space: a box is [0, 1] in every coordinate,
whatever its sides are. A slope ``s(p)`` says what errors ``y - p`` cost at the
prediction ``p``; wanted are points and probabilities with
``max_y E[s(p) . (y - p)]`` small. They exist for any bounded slope, since a
prediction equal to the mean outcome leaves nothing to gain. They are found from
the outcomes' side: each prediction cuts away the half of the space whose
outcomes lose against it. An ellipsoid around what is left shrinks until the
predictions made on the way, mixed by a small linear program, are good enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

from prudent.arrays import FloatArray

__all__ = ["gain", "mixture_of"]

_SAME = 1e-12
_MOST_BALANCES = 200


def gain(simplex: bool, points: FloatArray, slopes: FloatArray, weights: FloatArray) -> float:
    """What the best outcome gains on average against a distribution of predictions."""
    mean = weights @ slopes
    most = mean.max() if simplex else np.maximum(mean, 0.0).sum()
    return float(most - weights @ (slopes * points).sum(axis=1))


def mixture_of(
    simplex: bool, slope: Callable[[FloatArray], FloatArray], tries: Sequence[FloatArray], enough: float, steps: int
) -> tuple[FloatArray, FloatArray, bool]:
    """Find points and probabilities, from some points to try first; False if more than enough is left to gain."""
    cuts = _Cuts(simplex, tries[0])
    for point in tries:
        cuts.add(point, slope(point))
    for count in sorted({min(2, len(tries)), len(tries)}):
        balanced = _balanced(simplex, np.array(cuts.points[:count]), np.array(cuts.slopes[:count]), enough)
        if balanced is not None:
            return *balanced, True
    tried = 0
    for step in range(steps + 1):
        if step >= 2 * tried or step == steps:
            tried = max(step, 1)
            points, slopes, weights = cuts.mixture()
            if gain(simplex, points, slopes, weights) <= enough:
                return points, weights, True
        center = cuts.center()
        cuts.add(center, slope(center))
    return points, weights, False


def _balanced(
    simplex: bool, points: FloatArray, slopes: FloatArray, enough: float
) -> tuple[FloatArray, FloatArray] | None:
    """Mix a few points so that some outcomes gain the same: mostly enough, and much faster than a linear program."""
    _, first = np.unique(slopes, axis=0, return_index=True)
    points, slopes = points[np.sort(first)], slopes[np.sort(first)]
    k, d = points.shape
    if k > d + 1 - simplex or math.comb(d, k - 1 + simplex) > _MOST_BALANCES:
        return None
    sets = np.array(list(itertools.combinations(range(d), k - 1 + simplex)), dtype=np.int64)
    chosen = slopes[:, sets].transpose(1, 2, 0)  # (sets, coordinates, points)
    equations = chosen[:, 1:] - chosen[:, :1] if simplex else chosen
    system = np.concatenate([equations, np.ones((len(sets), 1, k))], axis=1)
    right = np.zeros((len(sets), k, 1))
    right[:, -1] = 1.0
    try:
        candidates = np.linalg.solve(system, right)[:, :, 0]
    except np.linalg.LinAlgError:
        return None  # two points are alike
    found = None
    for weights in candidates[(candidates >= 0).all(axis=1)]:
        reached = gain(simplex, points, slopes, weights / weights.sum())
        if reached <= enough:
            enough, found = reached, (points, weights / weights.sum())
    return found


class _Cuts:
    """Outcomes that an adversary may still want: an ellipsoid that each cut shrinks.

    On the simplex the last coordinate follows from the others and is left out.
    """

    def __init__(self, simplex: bool, start: FloatArray) -> None:
        self.simplex = simplex
        free = start.size - simplex
        # Any outcome is within the diagonal of any other.
        self._middle = start[:free].copy()
        self._shape = np.eye(free) * free
        self.points: list[FloatArray] = []
        self.slopes: list[FloatArray] = []

    def center(self) -> FloatArray:
        """The middle of what is left, brought into the space by cutting away what lies outside."""
        for _ in range(50 * self._middle.size):
            normal = self._violated()
            if normal is None:
                break
            self._cut(normal)
        inside = np.clip(self._middle, 0.0, 1.0)
        if not self.simplex:
            return inside
        inside = inside / max(float(inside.sum()), 1.0)
        return np.append(inside, max(1.0 - float(inside.sum()), 0.0))

    def add(self, point: FloatArray, slope: FloatArray) -> None:
        """Note a prediction, and cut away the outcomes that lose against it."""
        self.points.append(point)
        self.slopes.append(slope)
        normal = slope[:-1] - slope[-1] if self.simplex else slope
        length = float(np.linalg.norm(normal))
        # Outcomes with slope.(y - point) <= 0 lose; only a cut through the middle or beyond shrinks the ellipsoid.
        if length > 0 and float(normal @ (self._middle - point[: self._middle.size])) <= _SAME * length:
            self._cut(-normal / length)

    def mixture(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weigh all predictions so that the best outcome gains least; those without weight are left out."""
        points, slopes = np.array(self.points), np.array(self.slopes)
        k, d = points.shape
        largest = float(np.abs(slopes).max())
        unit = slopes / largest if largest > 0 else slopes  # the program's tolerances are absolute
        paid = (unit * points).sum(axis=1)
        if self.simplex:  # variables: weights and the gain; one row per class
            rows = np.hstack([(unit - paid[:, None]).T, -np.ones((d, 1))])
            objective, limits = np.append(np.zeros(k), 1.0), np.zeros(d)
        else:  # variables: weights and what each coordinate gains at its better end, 0 or 1
            rows = np.hstack([unit.T, -np.eye(d)])
            objective, limits = np.append(-paid, np.ones(d)), np.zeros(d)
        ends: tuple[float | None, None] = (None, None) if self.simplex else (0.0, None)
        equal = np.append(np.ones(k), np.zeros(rows.shape[1] - k))[None]
        bounds = [(0.0, None)] * k + [ends] * (rows.shape[1] - k)
        found = linprog(objective, A_ub=rows, b_ub=limits, A_eq=equal, b_eq=[1.0], bounds=bounds, method="highs")
        solved: Any = found.x if found.status == 0 else None
        weights = np.full(k, 1.0 / k) if solved is None else np.maximum(solved[:k], 0.0)
        kept = weights > 1e-12
        return points[kept], slopes[kept], weights[kept] / weights[kept].sum()

    def _violated(self) -> FloatArray | None:
        """The outward normal of a bound that the middle violates."""
        below, above = -self._middle, self._middle - 1.0
        worst = int(np.argmax(np.maximum(below, above)))
        excess = float(max(below[worst], above[worst]))
        if self.simplex and float(self._middle.sum()) - 1.0 > max(excess, 0.0):
            return np.ones(self._middle.size)
        if excess <= 0:
            return None
        normal = np.zeros(self._middle.size)
        normal[worst] = 1.0 if above[worst] > below[worst] else -1.0
        return normal

    def _cut(self, normal: FloatArray) -> None:
        """Keep the half of the ellipsoid against a normal."""
        n = self._middle.size
        through = self._shape @ normal
        size = float(np.sqrt(max(float(normal @ through), 1e-300)))
        step = through / size
        if n == 1:
            self._middle = self._middle - step / 2
            self._shape = self._shape / 4
            return
        self._middle = self._middle - step / (n + 1)
        self._shape = n**2 / (n**2 - 1) * (self._shape - 2 / (n + 1) * np.outer(step, step))
