"""The tilted local game in one dimension, in closed form (docs/theory.md, section 4).

The upper envelope of the utility lines on ``[lo, hi]`` has slopes
``sigma_1 < ... < sigma_M`` and points ``lo = b_0 < ... < b_M = hi``. The
maximin policy has mean slope ``clip(-s, sigma_1, sigma_M)`` and mixes the two
adjacent envelope actions; among tied mixtures this one has the highest
nominal utility. Actions off the envelope are never used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.solvers.game import Game

__all__ = ["Envelope", "upper_envelope"]

_FEW_SEGMENTS = 8
_LONG = 1_000


@dataclass(frozen=True, eq=False)
class Envelope:
    """Upper envelope of lines on an interval.

    Attributes
    ----------
    slopes : array of shape (M,)
        Increasing.
    points : array of shape (M + 1,)
        Where the best action changes, from ``lo`` to ``hi``.
    actions : array of shape (M,)
        The action of each segment; of equal lines the one declared first.
    n_actions : int
    """

    slopes: FloatArray
    points: FloatArray
    actions: IntArray
    n_actions: int

    @property
    def chords(self) -> FloatArray:
        """How offsets fall along slopes, ``(M - 1,)``: where neighbouring lines cross, seen from ``lo``."""
        return self.points[0] - self.points[1:-1]

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        """Return the maximin mixture for each tilt ``(n, 1)``, shape ``(n, m)``."""
        target = np.minimum(np.maximum(-tilts[:, 0], self.slopes[0]), self.slopes[-1])
        if self.slopes.size <= _FEW_SEGMENTS and target.size >= _LONG:
            return self._mixtures_by_segment(target)
        mixtures = np.zeros((target.size, self.n_actions))
        upper = np.minimum(np.searchsorted(self.slopes, target), len(self.slopes) - 1)
        lower = np.maximum(upper - 1, 0)
        width = self.slopes[upper] - self.slopes[lower]
        share = np.divide(target - self.slopes[lower], width, out=np.ones_like(target), where=width > 0)
        rows = np.arange(target.size)
        mixtures[rows, self.actions[lower]] = 1.0 - share
        mixtures[rows, self.actions[upper]] += share
        return mixtures

    def _mixtures_by_segment(self, target: FloatArray) -> FloatArray:
        """The same numbers for many rows: action by action along long columns, without looking up segments."""
        columns = np.zeros((self.n_actions, target.size))
        columns[self.actions[0]] = 1.0
        for lower, upper, start, end in zip(
            self.actions[:-1], self.actions[1:], self.slopes[:-1], self.slopes[1:], strict=True
        ):
            share = target - start
            share /= end - start
            np.clip(share, 0.0, 1.0, out=share)
            columns[lower] -= share  # exact: where this share is not zero, that of the lower action was one
            columns[upper] = share
        return np.ascontiguousarray(columns.T)

    def mixed(self, tilts: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the played mixtures' mean offset and mean slope plus tilt, both ``(n,)``, for tilts ``(n,)``.

        Offsets are utilities at the lower end of the interval.
        """
        slope = np.clip(-tilts, self.slopes[0], self.slopes[-1])
        heights = offsets[self.actions]
        # Along an upper envelope offsets are concave in slopes: the chord to interpolate on is the lowest.
        constant = np.full(slope.size, heights[0])
        for j, chord in enumerate(self.chords):
            line = heights[j] + (slope - self.slopes[j]) * chord
            constant = line if j == 0 else np.minimum(constant, line, out=constant)
        return constant, slope + tilts

    def settled(self, tilts: FloatArray) -> bool:  # mixtures depend on tilts alone
        """True: no mixture depends on the forecast."""
        return True

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        """Return a minimiser of ``val(p) + s p`` for each tilt, shape ``(n, 1)``.

        Where a whole segment minimises (``-s`` equals a slope), its middle.
        """
        target = -tilts[:, 0]
        left = self.points[np.searchsorted(self.slopes, target, side="left")]
        right = self.points[np.searchsorted(self.slopes, target, side="right")]
        middle: FloatArray = ((left + right) / 2)[:, None]
        return middle


def upper_envelope(game: Game) -> Envelope:
    """Find the envelope of a shared game with one coordinate."""
    slopes, offsets = game.rewards[0, :, 0], game.offsets[0]
    low, high = (float(bound[0]) for bound in game.space.bounds)
    # Heights at the lower end describe each line without reference to a far-away origin.
    at_low = offsets + slopes * low
    order = np.lexsort((np.arange(slopes.size), -at_low, slopes))
    negligible = 1e-12 * (high - low)
    kept: list[int] = []
    starts: list[float] = []
    for action in order.tolist():
        start = low
        while kept:
            last = kept[-1]
            rise = slopes[action] - slopes[last]
            lead = at_low[last] - at_low[action]
            if rise <= 0 or lead >= rise * (high - low) - rise * negligible:
                start = high  # never strictly better than the line before it
                break
            start = low + max(lead / rise, 0.0) if lead > 0 else low
            if start - starts[-1] > negligible:
                break
            kept.pop()
            starts.pop()
            start = low
        if not kept or start < high:
            kept.append(action)
            starts.append(start if kept[:-1] else low)
    actions = np.array(kept, dtype=np.int64)
    points = np.array([*starts, high])
    points[0] = low
    return Envelope(slopes[actions], points, actions, slopes.size)
