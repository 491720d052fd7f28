"""Cases where the optimum can be written down (docs/theory.md, section 4).

Each returns multipliers and a world; the bounds are certified like all others.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen
from prudent.arrays.chunks import over_rows
from prudent.cases.memory_rows import Ambiguity
from prudent.errors import InfeasibleError
from prudent.solvers.game import Envelope, Game, LocalGame, upper_envelope
from prudent.solvers.solution import Found


def no_tests(ambiguity: Ambiguity, local: LocalGame) -> Found:
    """Without tests the tilt is zero: every row is a game of its own, equal ones were merged."""
    return np.zeros(0), local.beliefs(np.zeros_like(ambiguity.forecasts))


def plug_in_regions(ambiguity: Ambiguity) -> Found | None:
    """Where the tests contain the tilt ``-r_BR(v)``, its multipliers make best responding exact.

    With exact tests they are optimal, and the forecasts are a worst world. With slack other worlds are worse, found by
    other algorithms; where these multipliers are optimal still, they are kept free of rounding. Tests that are zero on
    all rows get none: they would only pay for their slack.
    """
    known, slack = ambiguity.plug_in_multipliers, ambiguity.slack
    world = ambiguity.forecasts if slack.contains_zero else ambiguity.member
    if known is None or world is None:
        return None
    return np.where(ambiguity.tests.seen, known, 0.0), world


def separated_rows(game: Game, ambiguity: Ambiguity, local: LocalGame) -> Found | None:
    """Where exact tests tell all (merged) rows apart, every row's belief is its mean forecast.

    Covers bins, cells, regions, zero bias and forecasts with few values: with
    linearly independent test vectors ``sum_i w_i h_i (q_i - v_i) = 0`` forces
    ``q = v``. Rows on which all tests vanish are free: safety.
    """
    tests = ambiguity.tests
    if not (ambiguity.slack.exact and tests.scalar and game.shared):
        return None
    values = tests.values
    if ambiguity.n_rows > values.shape[1] + 1:  # merged rows: at most one of them is free
        return None
    free = ~values.any(axis=1)
    held = np.flatnonzero(~free)
    best = game.utilities(ambiguity.forecasts).argmax(axis=1)
    wanted = -game.rewards[0][best[held]]
    if _one_test_per_row(values[held]):
        column = np.abs(values[held]).argmax(axis=1)
        table = np.zeros((values.shape[1], game.dimension))
        table[column] = wanted / values[held, column][:, None]
    else:
        if np.linalg.matrix_rank(values[held], tol=1e-9 * np.abs(values[held]).max()) < held.size:
            return None
        table = np.linalg.lstsq(values[held], wanted, rcond=None)[0]
    beliefs = ambiguity.forecasts.copy()
    if free.any():
        beliefs[free] = local.beliefs(np.zeros((1, game.dimension)))
    return table.reshape(-1), beliefs


def _one_test_per_row(values: FloatArray) -> bool:
    """True if every row has exactly one nonzero test and every test at most one row."""
    nonzero = values != 0
    return bool((nonzero.sum(axis=1) == 1).all() and (nonzero.sum(axis=0) <= 1).all())


_DEVIATIONS = 4.0
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_MARGIN = 4 * EPSILON  # quotients and products of the same numbers differ by less


def scalar_dual(game: Game, ambiguity: Ambiguity, local: LocalGame | None = None, sample: int = 2_048) -> Found:
    """Return the optimal multiplier ``(1,)`` and a worst world ``(n, 1)``.

    ``local`` is the envelope, if it is known already; the multiplier of four ``sample`` rows and more is bracketed.
    """
    rows = _Rows.of(game, ambiguity, local)
    positive, negative, target = rows.totals(ambiguity.forecasts[:, 0])
    target += float(ambiguity.slack.center[0])
    radius = float(ambiguity.slack.radius[0])
    most, least = rows.moments_around_zero(positive, negative)
    if least <= target + radius and most >= target - radius:
        return np.zeros(1), rows.world(0.0, float(np.clip(target, least, most)))
    rising = least > target + radius  # the multiplier is positive
    goal = target + radius if rising else target - radius
    multiplier = rows.select(rising, abs(goal - (least if rising else most)), goal, sample)
    return np.array([multiplier]), rows.world(multiplier, goal)


@frozen
class _Rows:
    """Rows with their test values, weights and the slopes of ``val`` that they may cross."""

    values: FloatArray  # (n,)
    weights: FloatArray  # (n,)
    slopes: FloatArray  # (1, M) shared, or (n, 1)
    points: FloatArray  # (M + 1,)
    shared: bool

    @classmethod
    def of(cls, game: Game, ambiguity: Ambiguity, local: LocalGame | None = None) -> _Rows:
        values = ambiguity.tests.values.reshape(ambiguity.n_rows)
        if game.shared:
            envelope = local if isinstance(local, Envelope) else upper_envelope(game)
            return cls(values, ambiguity.weights, envelope.slopes[None], envelope.points, shared=True)
        return cls(values, ambiguity.weights, game.rewards[:, :, 0], np.array(game.space.interval), shared=False)

    def slopes_of(self, part: slice | IntArray) -> FloatArray:
        """Slopes of some rows, shape ``(1 or rows, M)``."""
        return self.slopes if self.shared else self.slopes[part]

    def totals(self, forecasts: FloatArray) -> tuple[float, float, float]:
        """Sums of ``w h`` over positive and over negative tests, and the moment ``sum w h v``."""

        def sums(part: slice) -> tuple[float, float, float]:
            strength = self.weights[part] * self.values[part]
            return float(strength.sum()), float(np.abs(strength).sum()), float((strength * forecasts[part]).sum())

        total, size, moment = map(fsum, zip(*over_rows(sums, self.values.size), strict=True))
        return (size + total) / 2, (total - size) / 2, moment

    def moments_around_zero(self, positive: float, negative: float) -> tuple[float, float]:
        """Moments of the worlds just before and just after the multiplier zero."""
        if self.shared:
            left, right = self.points[[(self.slopes < 0).sum(), (self.slopes <= 0).sum()]].tolist()
            return positive * right + negative * left, positive * left + negative * right

        def sums(part: slice) -> tuple[float, float]:
            after, before, tied = self._ends(part, 0.0)
            strength = self.weights[part] * self.values[part]
            jump = float((strength[tied] * (before - after[tied])).sum())
            least = float((strength * after).sum())
            return least + jump, least

        most, least = map(fsum, zip(*over_rows(sums, self.values.size), strict=True))
        return most, least

    def select(self, rising: bool, distance: float, goal: float, sample: int) -> float:
        """Find the multiplier at which the jumps away from zero add up to a distance."""
        n = self.values.size
        brackets = [(0.0, np.inf)]
        if n > 4 * sample:
            # Evenly spread rows without a period; if they mislead, that costs one more pass, never the result.
            steps = np.arange(1.0, np.clip(n // 32, sample, 32 * sample) + 1.0)
            chosen = (steps * _GOLDEN_RATIO % 1.0 * n).astype(np.int64)
            brackets.insert(0, _bracket(*self._jumps(chosen, rising), distance / n * chosen.size))
        for bracket in brackets:
            found = self._search(bracket, rising, distance)
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

        def collect(part: slice) -> tuple[float, FloatArray, FloatArray]:
            positions, sizes = self._jumps(part, rising, high)
            early = positions < low
            return float(sizes[early].sum()), positions[~early], sizes[~early]

        parts = over_rows(collect, self.values.size)
        left = distance - fsum(part[0] for part in parts)
        positions, sizes = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        order = np.argsort(positions)
        covered = np.cumsum(sizes[order])
        if positions.size == 0 or not 0 <= left <= covered[-1]:
            return None
        position = float(positions[order[np.searchsorted(covered, left)]])
        return position if rising else -position

    def _jumps(self, part: slice | IntArray, rising: bool, most: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Sizes of multipliers up to ``most``, on one side of zero, where rows jump, and how far the moment moves."""
        values, weights = self.values[part], self.weights[part]
        slopes = self.slopes_of(part)
        found, moved = [], []
        for j, width in enumerate(np.diff(self.points)):
            with np.errstate(divide="ignore", invalid="ignore"):
                jumps = (-slopes[:, j] if rising else slopes[:, j]) / values
            inside = np.flatnonzero((jumps > 0) & (jumps <= most) & (values != 0))
            found.append(jumps[inside])
            moved.append(weights[inside] * np.abs(values[inside]) * width)
        return np.concatenate(found), np.concatenate(moved)

    def world(self, multiplier: float, goal: float) -> FloatArray:
        """Best beliefs at a multiplier, shape ``(n, 1)``; rows at a jump share it so that the moment hits its goal."""
        beliefs = np.empty(self.values.size)

        def fill(part: slice) -> tuple[float, IntArray, FloatArray, FloatArray]:
            after, before, tied = self._ends(part, multiplier)
            beliefs[part] = after
            strength = self.weights[part] * self.values[part]
            return float((strength * after).sum()), part.start + tied, after[tied], before

        parts = over_rows(fill, self.values.size)
        tied, after, before = (np.concatenate([part[i] for part in parts]) for i in (1, 2, 3))
        room = float((self.weights[tied] * self.values[tied] * (before - after)).sum())
        missing = goal - fsum(part[0] for part in parts)
        share = float(np.clip(missing / room, 0.0, 1.0)) if room > 0 else 0.0
        beliefs[tied] = after + share * (before - after)
        return beliefs[:, None]

    def _ends(self, part: slice | IntArray, multiplier: float) -> tuple[FloatArray, FloatArray, IntArray]:
        """Minimisers of ``val(p) + multiplier h p`` just after a multiplier; where they differ, those just before.

        Growing multipliers push the moment ``w h q`` down, so "before" is the end of the minimising segment with the
        larger ``h q``. Rows whose jump is as close as rounding count as tied.
        """
        values, slopes = self.values[part], self.slopes_of(part)
        level, margin = -multiplier * values, _MARGIN * np.abs(slopes)
        low, high = _count(np.less, slopes + margin, level), _count(np.less_equal, slopes - margin, level)
        after, tied = self.points.take(low), np.flatnonzero(low != high)
        rising, (first, last) = values[tied] > 0, self.points.take([low[tied], high[tied]])
        after[tied] = np.where(rising, first, last)
        return after, np.where(rising, last, first), tied


def _count(compare: np.ufunc, limits: FloatArray, numbers: FloatArray) -> IntArray:
    """How many limits ``(1 or n, M)`` lie below each number; limit by limit, as there are few."""
    counts = np.zeros(numbers.size, dtype=np.int32)
    for limit in limits.T:
        counts += compare(limit, numbers)
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
