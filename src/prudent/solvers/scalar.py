"""One coordinate, one test: the dual is one-dimensional and solved by selection.

``G'`` is monotone and jumps at ``lambda = -sigma_j / h_i``, where row ``i``
crosses from one point of the envelope to the next (docs/theory.md, section 4). The
optimum is where the jumps on its side of zero add up to the distance between
the moment at zero and its target: a weighted quantile of the jumps. A sample
of rows brackets it, one pass adds up the jumps before the bracket and keeps
those inside, and only these are sorted. Rows at the last jump share it: the
multiplier and the world are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.compiled import compiled, rows_at_once
from prudent.errors import InfeasibleError
from prudent.solvers import scalar_loops
from prudent.solvers.envelope import Envelope, upper_envelope
from prudent.solvers.game import Game
from prudent.solvers.local import LocalGame
from prudent.solvers.scalar_loops import loop_weights

__all__ = ["scalar_dual", "scalar_world"]

_SAMPLE = 1 << 11
_FEW = 1 << 9
_BUCKETS = 1 << 8
_DEVIATIONS = 4.0
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_MARGIN = 1e-12  # quotients and products of the same numbers differ by less


def scalar_dual(game: Game, ambiguity: Ambiguity, local: LocalGame | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the optimal multiplier ``(1,)`` and a worst world ``(n, 1)``; the envelope, if it is known already."""
    rows = _Rows.of(game, ambiguity, local)
    positive, negative, target = rows.totals(ambiguity.forecasts[:, 0])
    target += float(ambiguity.slack.center[0])
    radius = float(ambiguity.slack.radius[0])
    most, least = rows.moments_around_zero(positive, negative)
    if least <= target + radius and most >= target - radius:
        return np.zeros(1), rows.world(0.0, float(np.clip(target, least, most)))
    rising = least > target + radius  # the multiplier is positive
    goal = target + radius if rising else target - radius
    multiplier = rows.select(rising, abs(goal - (least if rising else most)), goal)
    return np.array([multiplier]), rows.world(multiplier, goal)


def scalar_world(game: Game, ambiguity: Ambiguity, multiplier: float) -> FloatArray:
    """Return a worst world ``(n, 1)`` for a multiplier that is known to be optimal."""
    rows = _Rows.of(game, ambiguity)
    positive, negative, target = rows.totals(ambiguity.forecasts[:, 0])
    target += float(ambiguity.slack.center[0])
    if multiplier == 0.0:
        most, least = rows.moments_around_zero(positive, negative)
        return rows.world(0.0, float(np.clip(target, least, most)))
    return rows.world(multiplier, target + float(np.sign(multiplier) * ambiguity.slack.radius[0]))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with their test values, weights and the slopes of ``val`` that they may cross."""

    values: FloatArray  # (n,)
    weights: FloatArray  # (n,)
    slopes: FloatArray  # (M,) shared, or (n, 1)
    points: FloatArray  # (M + 1,)
    shared: bool

    @classmethod
    def of(cls, game: Game, ambiguity: Ambiguity, local: LocalGame | None = None) -> _Rows:
        values = ambiguity.tests.values.reshape(ambiguity.n_rows)
        if game.shared:
            envelope = local if isinstance(local, Envelope) else upper_envelope(game)
            return cls(values, ambiguity.weights, envelope.slopes, envelope.points, shared=True)
        low, high = (float(bound[0]) for bound in game.space.bounds)
        return cls(values, ambiguity.weights, game.rewards[:, :, 0], np.array([low, high]), shared=False)

    def slopes_of(self, part: slice | IntArray) -> FloatArray:
        """Slopes of some rows, shape ``(1 or rows, M)``."""
        return self.slopes[None, :] if self.shared else self.slopes[part]

    def totals(self, forecasts: FloatArray) -> tuple[float, float, float]:
        """Sums of ``w h`` over positive and over negative tests, and the moment ``sum w h v``."""
        loop = compiled(scalar_loops.add_up_tests, self.values.size)

        def sums(part: slice) -> tuple[float, float, float]:
            if loop is not None:
                return tuple(loop(self.values[part], loop_weights(self.weights[part]), forecasts[part]).sum(axis=1))
            strength = self.weights[part] * self.values[part]
            moment = float((strength * forecasts[part]).sum())
            positive = float(np.maximum(strength, 0.0).sum())
            return positive, float(np.minimum(strength, 0.0).sum()), moment

        parts = over_rows(sums, self.values.size, rows_at_once(loop))
        return fsum(part[0] for part in parts), fsum(part[1] for part in parts), fsum(part[2] for part in parts)

    def moments_around_zero(self, positive: float, negative: float) -> tuple[float, float]:
        """Moments of the worlds just before and just after the multiplier zero."""
        if self.shared:
            left = float(self.points[np.searchsorted(self.slopes, 0.0, side="left")])
            right = float(self.points[np.searchsorted(self.slopes, 0.0, side="right")])
            return positive * right + negative * left, positive * left + negative * right

        def sums(part: slice) -> tuple[float, float]:
            after, before, tied = self._ends(part, 0.0)
            strength = self.weights[part] * self.values[part]
            jump = float((strength[tied] * (before - after[tied])).sum())
            least = float((strength * after).sum())
            return least + jump, least

        parts = over_rows(sums, self.values.size)
        return fsum(part[0] for part in parts), fsum(part[1] for part in parts)

    def select(self, rising: bool, distance: float, goal: float) -> float:
        """Find the multiplier at which the jumps away from zero add up to a distance."""
        n = self.values.size
        bracket = (0.0, np.inf)
        if n > 4 * _SAMPLE:
            # Evenly spread rows without a period; if they mislead, that costs one more pass, never the result.
            steps = np.arange(1.0, np.clip(n // 32, _SAMPLE, 32 * _SAMPLE) + 1.0)
            chosen = (steps * _GOLDEN_RATIO % 1.0 * n).astype(np.int64)
            bracket = _bracket(*self._jumps(chosen, rising), distance / n * chosen.size)
        found = self._search(bracket, rising, distance)
        if found is None:
            found = self._search((0.0, np.inf), rising, distance)
        if found is not None:
            return found
        positions, sizes = self._jumps(slice(None), rising)
        reach = float(sizes.sum())
        unit = float(np.abs(self.weights * self.values).sum() * np.abs(self.points).max()) + abs(goal)
        if distance - reach > 1e-12 * unit:
            raise InfeasibleError(
                "no world satisfies the guarantee with this slack: its centre lies "
                f"{distance - reach:.3g} beyond any attainable moment. Center the slack at moments measured on "
                "this sample, or widen its radius."
            )
        last = float(positions.max(initial=0.0))
        return last if rising else -last

    def _search(self, bracket: tuple[float, float], rising: bool, distance: float) -> float | None:
        """Add up the jumps before a bracket and select among those inside; None if the distance is not reached."""
        low, high = bracket
        # With shared slopes `-sigma / h <= lambda` is a bound for `h`: no division, except for the few inside.
        bounded = self.shared and low > 0.0 and np.isfinite(high)
        turns = self._turns(rising, low, high) if bounded else None
        loop = compiled(scalar_loops.find_crossings, self.values.size) if bounded else None

        def collect(part: slice) -> tuple[float, FloatArray, FloatArray]:
            if loop is not None and turns is not None:
                sums, positions, sizes = loop(self.values[part], loop_weights(self.weights[part]), *turns)
                before = float(sums.sum())
            elif turns is not None:
                before, positions, sizes = self._near(part, *turns)
            else:
                before, (positions, sizes) = 0.0, self._jumps(part, rising)
            early = positions < low
            before += float(sizes[early].sum())
            inside = ~early & (positions <= high)
            return before, positions[inside], sizes[inside]

        parts = over_rows(collect, self.values.size, rows_at_once(loop))
        left = distance - fsum(part[0] for part in parts)
        positions, sizes = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        if left < 0 or left > sizes.sum() or positions.size == 0:
            return None
        position = _quantile(positions, sizes, left)
        return position if rising else -position

    def _jumps(self, part: slice | IntArray, rising: bool) -> tuple[FloatArray, FloatArray]:
        """Sizes of all multipliers on one side of zero where rows jump, and how far the moment then moves."""
        values, weights = self.values[part], self.weights[part]
        slopes = self.slopes_of(part)
        found, moved = [], []
        for j, width in enumerate(np.diff(self.points)):
            with np.errstate(divide="ignore", invalid="ignore"):
                jumps = -slopes[:, j] / values if rising else slopes[:, j] / values
            inside = np.flatnonzero((jumps > 0) & (values != 0))
            found.append(jumps[inside])
            moved.append(weights[inside] * np.abs(values[inside]) * width)
        return np.concatenate(found), np.concatenate(moved)

    def _turns(self, rising: bool, low: float, high: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Shared slopes that some rows cross as the multiplier grows in size, signed like their tests.

        With them: how far beliefs jump, the size of a test above which a row has surely crossed before a bracket,
        and the size from which it may have crossed inside.
        """
        turns, widths = -self.slopes if rising else self.slopes, np.diff(self.points)
        crossed = ((turns > 0) & bool(self.values.max() > 0)) | ((turns < 0) & bool(self.values.min() < 0))
        turns, widths = turns[crossed], widths[crossed]
        sizes = np.abs(turns)
        return turns, widths, sizes / low * (1 + _MARGIN), sizes / high * (1 - _MARGIN)

    def _near(
        self, part: slice, turns: FloatArray, widths: FloatArray, surely: FloatArray, maybe: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """Sum of the jumps surely before a bracket, and all jumps that may lie inside it; slopes are shared."""
        values, weights = self.values[part], self.weights[part]
        before, found, moved = 0.0, [np.zeros(0)], [np.zeros(0)]
        for sign in (1.0, -1.0):  # rows with positive tests cross slopes of one sign, those with negative the other
            order = np.argsort(sign * turns, kind="stable")
            order = order[sign * turns[order] > 0]
            if order.size == 0:
                continue
            side = values if sign > 0 else -values
            passed = np.zeros(values.size, dtype=np.int32)  # how many slopes, the smaller ones first
            for j in order:
                sure = side > surely[j]
                passed += sure
                rows = np.flatnonzero((side >= maybe[j]) & ~sure)
                found.append(turns[j] / values[rows])
                moved.append(weights[rows] * side[rows] * widths[j])
            reach = np.concatenate([[0.0], np.cumsum(widths[order])]).take(passed)
            reach *= side
            reach *= weights
            before += float(reach.sum())
        return before, np.concatenate(found), np.concatenate(moved)

    def world(self, multiplier: float, goal: float) -> FloatArray:
        """Best beliefs at a multiplier, shape ``(n, 1)``; rows at a jump share it so that the moment hits its goal."""
        beliefs = np.empty(self.values.size)
        loop = compiled(scalar_loops.place_beliefs, self.values.size) if self.shared else None

        def fill(part: slice) -> tuple[float, IntArray, FloatArray, FloatArray]:
            if loop is not None:
                margins = _MARGIN * np.abs(self.slopes)
                sums, close = loop(
                    self.values[part],
                    loop_weights(self.weights[part]),
                    multiplier,
                    self.slopes,
                    margins,
                    self.points,
                    beliefs[part],
                )
                close += part.start
                placed = beliefs[close]
                after, before, tied = self._ends(close, multiplier)
                beliefs[close] = after
                moved = float((self.weights[close] * self.values[close] * (after - placed)).sum())
                return float(sums.sum()) + moved, close[tied], after[tied], before
            after, before, tied = self._ends(part, multiplier)
            beliefs[part] = after
            strength = self.weights[part] * self.values[part]
            return float((strength * after).sum()), part.start + tied, after[tied], before

        parts = over_rows(fill, self.values.size, rows_at_once(loop))
        tied, after, before = (np.concatenate([part[i] for part in parts]) for i in (1, 2, 3))
        room = float((self.weights[tied] * self.values[tied] * (before - after)).sum())
        missing = goal - fsum(part[0] for part in parts)
        share = float(np.clip(missing / room, 0.0, 1.0)) if room > 0 else 0.0
        beliefs[tied] = after + share * (before - after)
        return beliefs[:, None]

    def _ends(self, part: slice | IntArray, multiplier: float) -> tuple[FloatArray, FloatArray, IntArray]:
        """Minimisers of ``val(p) + multiplier h p`` just after a multiplier; where they differ, those just before.

        Growing multipliers push the moment ``w h q`` down, so "before" is the
        end of the minimising segment with the larger ``h q``. A row is tied
        when the multiplier is the very quotient ``-slope / h`` that was selected.
        """
        values, slopes = self.values[part], self.slopes_of(part)
        level = -multiplier * values
        margin = _MARGIN * np.abs(slopes)
        behind = _count(np.less, slopes + margin, level)  # envelope segments surely to the left of the belief
        rows = np.flatnonzero((behind != _count(np.less_equal, slopes - margin, level)) & (values != 0))
        exact, some = values[rows], np.broadcast_to(slopes, (values.size, slopes.shape[1]))[rows]
        ahead = -some / exact[:, None] - multiplier
        rising = exact > 0
        behind[rows] = np.where(rising[:, None], ahead > 0, ahead < 0).sum(axis=1)
        ties = (ahead == 0).sum(axis=1)
        tied = rows[ties > 0]
        low = behind[tied]
        high = low + ties[ties > 0]
        up = rising[ties > 0]
        after = self.points.take(behind)
        after[tied] = self.points[np.where(up, low, high)]
        return after, self.points[np.where(up, high, low)], tied


def _count(compare: np.ufunc, limits: FloatArray, numbers: FloatArray) -> IntArray:
    """How many limits, ``(M,)`` or ``(1 or n, M)``, lie below each number; limit by limit, as there are few."""
    limits = np.atleast_2d(limits)
    counts = np.zeros(numbers.size, dtype=np.int32)
    for j in range(limits.shape[1]):
        counts += compare(limits[:, j], numbers)
    return counts.astype(np.int64)


def _bracket(positions: FloatArray, sizes: FloatArray, distance: float) -> tuple[float, float]:
    """Estimate from a sample of jumps where all of them add up to a distance (given at the sample's scale)."""
    if positions.size == 0:
        return 0.0, np.inf
    order = np.argsort(positions)
    covered = np.cumsum(sizes[order])
    spread = _DEVIATIONS * float(np.sqrt((sizes**2).sum()))
    first = int(np.searchsorted(covered, distance - spread)) - 1
    last = int(np.searchsorted(covered, distance + spread))
    low = 0.0 if first < 0 else float(positions[order[first]])
    return low, np.inf if last >= order.size else float(positions[order[last]])


def _quantile(positions: FloatArray, sizes: FloatArray, distance: float) -> float:
    """Smallest position up to which the sizes add up to a distance; narrowed by buckets, then sorted."""
    while positions.size > _FEW:
        low, high = positions.min(), positions.max()
        with np.errstate(divide="ignore", over="ignore"):
            scale = _BUCKETS / (high - low)
        if not np.isfinite(scale):
            break
        bucket = ((positions - low) * scale).astype(np.int64)  # rounding keeps the order of positions
        covered = np.cumsum(np.bincount(bucket, weights=sizes))
        chosen = min(int(np.searchsorted(covered, distance)), covered.size - 1)
        inside = np.flatnonzero(bucket == chosen)
        if inside.size > 0.7 * positions.size:
            break
        distance -= float(covered[chosen - 1]) if chosen else 0.0
        positions, sizes = positions[inside], sizes[inside]
    order = np.argsort(positions)
    covered = np.cumsum(sizes[order])
    return float(positions[order[min(int(np.searchsorted(covered, distance)), order.size - 1)]])
