"""The best deterministic rule for one coordinate and one test, by sorting and bounding.

Measured from the lower end of ``[lo, hi]``, a row at tilt ``s`` earns
``psi(s) = max_a min(u_a(lo), u_a(hi) + (hi - lo) s)``: every action climbs until
``s = -r_a`` and stays level from there, so ``psi`` is a staircase, the same for all
rows. The pure dual is, up to its value at zero,

    F(x) = sum_i w_i [ psi(x b_i) - psi(0) ] - x M - sigma_S(x),   M = sum_i w_i b_i (v_i - lo).

It can only peak where some row comes to the end of a climb, or at zero. There are
as many such points as rows times stairs; few of them are looked at. With the rows
sorted by ``b``, running sums give ``F``, and its concave and convex parts, at any
``x``. Between two points the concave part lies below both its tangents and the
convex part below its chord: intervals that cannot hold the peak are dropped, the
others are cut, until all that is left has been looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.solvers.game import Game

__all__ = ["Staircase", "best_pure_multiplier", "pure_ceiling", "staircase"]

_EPSILON = float(np.finfo(np.float64).eps)
#: Length of the blocks in which sums are run, and their usual error in units of epsilon.
_BLOCK, _ROUNDINGS = 1024, 32
#: Pairs of points and kinks to look up in one round, and the least number of points for one interval.
_LOOKUPS, _PARTS = 1 << 14, 32
#: Up to so many thresholds it is faster to compare with each than to search.
_FEW = 12


def best_pure_multiplier(game: Game, ambiguity: Ambiguity) -> FloatArray:
    """Return the multiplier ``(1,)`` at which the pure dual is highest; the game is shared, with one coordinate."""
    rows = _Rows.sort(ambiguity.tests.values.reshape(-1), ambiguity.weights)
    return np.array([_highest(game, ambiguity, rows, rows)[1]])


def pure_ceiling(game: Game, ambiguity: Ambiguity, lowest: FloatArray, highest: FloatArray) -> float:
    """Bound the pure dual for all multipliers where each row of ``ambiguity`` stands for many.

    Their tests have the row's as their mean and lie from ``lowest`` to ``highest``, shape ``(n,)``. The concave part
    is at most what it is at the mean, and the convex part at most what it is if all of them are at the two ends.
    """
    values, weights = ambiguity.tests.values.reshape(-1), ambiguity.weights
    width = highest - lowest
    share = np.clip(np.divide(values - lowest, width, out=np.zeros_like(values), where=width > 0), 0.0, 1.0)
    ends = np.concatenate([np.where(width > 0, lowest, values), np.where(width > 0, highest, values)])
    apart = _Rows.sort(ends, np.concatenate([weights * (1 - share), weights * share]))
    height, _ = _highest(game, ambiguity, _Rows.sort(values, weights), apart)
    at_zero = game.offsets[0] + game.space.support_minimum(game.rewards[0])
    return float(at_zero.max()) + height


def _highest(game: Game, ambiguity: Ambiguity, rows: _Rows, apart: _Rows) -> tuple[float, float]:
    """Return how far the pure dual rises above its value at zero, and where; rows ``apart`` make its convex part."""
    stairs = staircase(game)
    values, weights = ambiguity.tests.values.reshape(-1), ambiguity.weights
    moment = _moment(values, weights, ambiguity.forecasts[:, 0], float(game.space.bounds[0][0]))
    center, radius = float(ambiguity.slack.center[0]), float(ambiguity.slack.radius[0])
    below, above = stairs.slopes_at_zero
    at_zero = apart if above > below else rows  # where a climb begins at zero, that is a convex kink
    best, multiplier = 0.0, 0.0
    for sign in (1.0, -1.0):
        before, after = stairs.slopes_at_zero[:: int(sign)]
        slope = sign * (after * at_zero.positive + before * at_zero.negative - moment - center) - radius
        ends, begins = (sign * kinks[kinks != 0] for kinks in (stairs.ends, stairs.begins))
        half = _HalfLine(rows, apart, ends, begins, stairs.width, slope)
        height, position = half.maximize(best)
        if height > best:
            best, multiplier = height, sign * position
    return best, multiplier


@dataclass(frozen=True, eq=False)
class Staircase:
    """The pure value ``max_a { c_a + min_p p (r_a + s) } - lo s`` as a function of the tilt.

    Attributes
    ----------
    width : float
        Slope of the climbs, ``hi - lo``.
    ends : array of shape (J,)
        Tilts at which a climb ends: the concave kinks, increasing.
    begins : array of shape (J - 1,)
        Tilts at which the next climb begins: the convex kinks.
    thresholds : array of shape (T - 1,)
        Tilts from which on, the tilt itself included, the next action is played.
    actions : array of shape (T,)
        The best action between thresholds; of tied ones the first declared.
    """

    width: float
    ends: FloatArray
    begins: FloatArray
    thresholds: FloatArray
    actions: IntArray

    @property
    def slopes_at_zero(self) -> tuple[float, float]:
        """Slopes just below and just above the tilt zero."""
        below = np.count_nonzero(self.ends < 0) == np.count_nonzero(self.begins < 0)
        above = np.count_nonzero(self.ends <= 0) == np.count_nonzero(self.begins <= 0)
        return self.width * below, self.width * above

    def best_actions(self, tilts: FloatArray) -> IntArray:
        """Return the best action at each tilt ``(n,)``."""
        if self.thresholds.size > _FEW:
            return self.actions[np.searchsorted(self.thresholds, tilts, side="right")]
        passed = np.zeros(tilts.shape, dtype=np.int64)
        for threshold in self.thresholds:
            passed += tilts >= threshold
        return self.actions[passed]


def staircase(game: Game) -> Staircase:
    """Put the actions of a shared game with one coordinate in the order in which they become best.

    Below ``-r_a`` an action climbs, from there on it is level. Between two neighbours
    among these tilts the best level action leads until the best climbing one overtakes it.
    """
    low, high = (float(bound[0]) for bound in game.space.bounds)
    width, rewards = high - low, game.rewards[0, :, 0]
    levels = game.offsets[0] + rewards * low  # utility at lo; a far-away origin costs no digits
    climbs = levels + rewards * width
    order = np.argsort(-rewards, kind="stable")
    tops = [-np.inf, *(-rewards[order]).tolist(), np.inf]
    level = _leaders(levels[order].tolist(), order.tolist())
    climb = _leaders(climbs[order[::-1]].tolist(), order[::-1].tolist())[::-1]
    pieces: list[tuple[float, bool, int]] = []  # where it starts, whether it climbs, the action
    for (height, lying), (reach, rising), start, stop in zip(level, climb, tops[:-1], tops[1:], strict=True):
        if start == stop:
            continue
        overtaken = (height - reach) / width
        if overtaken > start or (overtaken == start and lying < rising):
            pieces.append((start, False, lying))
        if rising > lying:
            overtaken = float(np.nextafter(overtaken, np.inf))  # at the tie itself the first declared is played
        if overtaken < stop:
            pieces.append((max(overtaken, start), True, rising))
    turns = list(pairwise(pieces))
    ends = [other[0] for one, other in turns if one[1] and not other[1]]
    begins = [other[0] for one, other in turns if other[1] and not one[1]]
    changes = [other for one, other in turns if other[2] != one[2]]
    return Staircase(
        width,
        np.array(ends),
        np.array(begins),
        np.array([start for start, _, _ in changes]),
        np.array([pieces[0][2], *(action for _, _, action in changes)], dtype=np.int64),
    )


def _leaders(values: list[float], actions: list[int]) -> list[tuple[float, int]]:
    """Running maximum with its first declared holder; before anything there is -inf, held by no action."""
    leaders = [(-np.inf, len(actions))]
    for value, action in zip(values, actions, strict=True):
        lead, holder = leaders[-1]
        if value > lead:
            leaders.append((value, action))
        else:
            leaders.append((lead, min(holder, action) if value == lead else holder))
    return leaders


@dataclass(frozen=True, eq=False)
class _Rows:
    """Distinct tests in increasing order, with weight and moment of all rows before each, and of all.

    Both are in multiples of ``unit``. Where every row has its own test and the weight of one unit, the
    weight before it is its place and is not stored.
    """

    tests: FloatArray  # (k,)
    weights: FloatArray | None  # (k + 1,)
    moments: FloatArray  # (k + 1,), sums of weight times test
    unit: float

    @classmethod
    def sort(cls, values: FloatArray, weights: FloatArray) -> _Rows:
        """Sort rows by their tests and add them up."""
        n = values.size
        before: FloatArray | None = None
        if weights.min() == weights.max():
            tests, unit = np.sort(values), float(weights[0])
            moments = _running_sums(tests)
        else:
            order = np.argsort(values)
            tests, weights, unit = values[order], weights[order], 1.0
            before, moments = _running_sums(weights), _running_sums(weights * tests)
        new = tests[1:] != tests[:-1]
        if new.all():
            return cls(tests, before, moments, unit)
        first = np.concatenate([[0], np.flatnonzero(new) + 1])
        edges = np.append(first, n)
        return cls(tests[first], edges.astype(np.float64) if before is None else before[edges], moments[edges], unit)

    @property
    def negative(self) -> float:
        """Moment of the rows with negative tests."""
        return float(self.moments[np.searchsorted(self.tests, 0.0)]) * self.unit

    @property
    def positive(self) -> float:
        """Moment of the rows with positive tests."""
        return float(self.moments[-1]) * self.unit - self.negative

    @property
    def size(self) -> float:
        """Mean size of the tests."""
        return self.positive - self.negative

    def passed(self, kinks: FloatArray, points: FloatArray) -> IntArray:
        """Count the rows with ``b < kink / y``, for all kinks and points."""
        return np.searchsorted(self.tests, kinks[:, None] / points)

    def below(self, passed: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return weight and moment of the first so many tests."""
        weights = passed.astype(np.float64) if self.weights is None else self.weights[passed]
        return self.unit * weights, self.unit * self.moments[passed]


@dataclass(frozen=True, eq=False)
class _HalfLine:
    """``F`` at ``x = y``, or at ``x = -y`` with kinks of opposite sign, for ``y > 0``.

    A row with test ``b`` has passed a kink if ``y b`` lies beyond it, seen from zero;
    it then counts with ``y |b| - |kink|``. No kink is zero. Climbs end for ``rows`` and begin for rows ``apart``,
    which are the same unless a bound is asked for.
    """

    rows: _Rows
    apart: _Rows
    ends: FloatArray
    begins: FloatArray
    width: float
    slope: float

    def maximize(self, best: float) -> tuple[float, float]:
        """Return the highest value and its place; ``best``, which holds at zero, if nothing is higher."""
        left, right = self._extent()
        place, bound = 0.0, np.full(left.size, np.inf)
        at_once = max(1, _LOOKUPS // (_PARTS * self._n_kinks))
        while left.size:
            promising = np.argsort(-bound)
            now, later = promising[:at_once], promising[at_once:]
            points, parts = self._cut(left[now], right[now])
            values = self._evaluate(points)
            highest = int(values.height.argmax())
            if values.height[highest] > best:
                best, place = float(values.height[highest]), float(points[highest])
            left = np.concatenate([left[later], points[parts]])
            right = np.concatenate([right[later], points[parts + 1]])
            bound = np.concatenate([bound[later], values.bounds(points, parts)])
            # What rounding alone can explain is not worth another look, except in wide intervals.
            kept = bound > best + self._error(2 * left - right)
            left, right, bound = left[kept], right[kept], bound[kept]
        return best, place

    @property
    def _n_kinks(self) -> int:
        return max(1, self.ends.size + self.begins.size)

    @property
    def _farthest(self) -> float:
        """Largest size of a kink."""
        return float(np.abs(np.concatenate([self.ends, self.begins])).max(initial=0.0))

    def _error(self, points: FloatArray) -> FloatArray:
        """Bound what rounding does to values at these points."""
        return _ROUNDINGS * _EPSILON * self.width * (self.rows.size * points + self._farthest)

    def _extent(self) -> tuple[FloatArray, FloatArray]:
        """First and last point where a row comes to the end of a climb, in arrays of one; of none if there is none."""
        tests = self.rows.tests
        negative = tests[: np.searchsorted(tests, 0.0, side="left")][::-1]
        positive = tests[np.searchsorted(tests, 0.0, side="right") :]
        rows = [(end, positive if end > 0 else negative) for end in self.ends]
        with np.errstate(over="ignore"):
            first = [end / same[-1] for end, same in rows if same.size]
            last = [end / same[0] for end, same in rows if same.size]
        if not first:
            return np.zeros(0), np.zeros(0)
        farthest = self._farthest / (_EPSILON * self.rows.size)  # beyond it rounding outweighs all there is to gain
        return np.minimum([min(first)], farthest), np.minimum([max(last)], farthest)

    def _cut(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return points of each interval in order, its ends among them, and where parts begin that hold more.

        Only points matter where some row comes to the end of a climb. They are put in one
        line, interval by interval and kink by kink, and evenly spaced ones are taken from it.
        """
        on_left, on_right = (self.rows.passed(self.ends, points).T for points in (left, right))  # (I, J)
        first, count = np.minimum(on_left, on_right).ravel(), np.abs(on_left - on_right)
        total = count.sum(axis=1)
        taken = np.minimum(total, max(_PARTS, _LOOKUPS // (left.size * self._n_kinks)))
        owner = np.repeat(np.arange(left.size), taken)
        rank = np.arange(owner.size) - (np.cumsum(taken) - taken)[owner]
        line = (np.cumsum(total) - total)[owner] + (2 * rank + 1) * total[owner] // (2 * taken[owner])
        starts = np.cumsum(count.ravel()) - count.ravel()
        pair = np.searchsorted(starts, line, side="right") - 1
        tests = self.rows.tests[first[pair] + line - starts[pair]]
        inside = np.clip(self.ends[pair % self.ends.size] / tests, left[owner], right[owner])
        # The middle makes parts smaller even where all points that were taken are its ends.
        points = np.concatenate([left, inside, (left + right) / 2, right])
        owner = np.concatenate([np.arange(left.size), owner, np.arange(left.size), np.arange(left.size)])
        order = np.lexsort((points, owner))
        points, owner = points[order], owner[order]
        begin, end, own = points[:-1], points[1:], owner[:-1]
        smaller = (begin > left[own]) | (end < right[own])  # else there is no number in between
        return points, np.flatnonzero((own == owner[1:]) & (begin < end) & smaller & (total > taken)[own])

    def _evaluate(self, points: FloatArray) -> _Values:
        fallen, moment = self._hinges(self.rows, self.ends, points)
        risen, _ = self._hinges(self.apart, self.begins, points)
        # Distance is charged what it costs in rounding, so that of equal peaks the nearest is taken.
        slope = self.slope - _ROUNDINGS * _EPSILON * self.width * self.rows.size
        return _Values(slope * points - fallen, slope - moment, risen)

    def _hinges(self, rows: _Rows, kinks: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum ``(hi - lo) w (y |b| - |kink|)`` over rows that have passed each kink; and its slope in ``y``."""
        if kinks.size == 0:
            return np.zeros(points.size), np.zeros(points.size)
        passed, above = rows.passed(kinks, points), (kinks > 0)[:, None]
        mass, moment = rows.below(passed)
        all_mass, all_moment = rows.below(np.array(rows.tests.size))
        mass = np.where(above, all_mass - mass, mass)
        moment = np.where(above, all_moment - moment, -moment).sum(axis=0)
        return self.width * (points * moment - (np.abs(kinks)[:, None] * mass).sum(axis=0)), self.width * moment


@dataclass(frozen=True, eq=False)
class _Values:
    """The concave part of ``F`` with its slope and the convex part, at points."""

    concave: FloatArray
    slope: FloatArray
    convex: FloatArray

    @property
    def height(self) -> FloatArray:
        """Their sum, ``F``."""
        return self.concave + self.convex

    def bounds(self, points: FloatArray, index: IntArray) -> FloatArray:
        """Bound ``F`` between these points and the ones after them: where the tangents cross, plus the chord."""
        after = index + 1
        length = points[after] - points[index]
        bend = self.slope[index] - self.slope[after]
        drop = self.concave[after] - self.concave[index] - self.slope[after] * length
        crossing = np.divide(drop, bend, out=np.zeros_like(drop), where=bend > 0)
        crossing = np.clip(crossing, 0.0, length)
        chord = (self.convex[after] - self.convex[index]) / length
        return self.height[index] + (self.slope[index] + chord) * crossing


def _moment(values: FloatArray, weights: FloatArray, forecasts: FloatArray, low: float) -> float:
    """Sum ``w b (v - lo)``."""
    products = forecasts - low
    products *= values
    products *= weights
    return float(products.sum())


def _running_sums(values: FloatArray) -> FloatArray:
    """Sums of the first 0, 1, .. n values, added up in blocks to lose fewer digits."""
    sums = np.zeros(values.size + 1)
    whole = values.size // _BLOCK * _BLOCK
    table, rest = sums[1 : whole + 1].reshape(-1, _BLOCK), sums[whole + 1 :]
    np.cumsum(values[:whole].reshape(-1, _BLOCK), axis=1, out=table)
    np.cumsum(values[whole:], out=rest)
    before = np.concatenate([[0.0], np.cumsum(table[:, -1])])
    table += before[:-1, None]
    rest += before[-1]
    return sums
