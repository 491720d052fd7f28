"""Solve the tilted local game of every row: which mixture to play, which belief hurts most."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from prudent.arrays import FloatArray, IntArray, frozen
from prudent.solvers.game import Game
from prudent.spaces import Space

if TYPE_CHECKING:
    from prudent.solvers.vertices import VertexGame


@frozen
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

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        """Return the maximin mixture for each tilt ``(n, 1)``, shape ``(n, m)``; action by action, in long columns."""
        target = np.clip(-tilts[:, 0], self.slopes[0], self.slopes[-1])
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
        return columns.T

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
    low, high = game.space.interval
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
            start = low + max(lead / rise, 0.0)
            if start - starts[-1] > negligible:
                break
            kept.pop()
            starts.pop()
            start = low
        if not kept or start < high:
            kept.append(action)
            starts.append(start)
    actions = np.array(kept, dtype=np.int64)
    return Envelope(slopes[actions], np.array([*starts, high]), actions, slopes.size)


#: Past this many vertices the local game is solved by interior point instead of by table.
VERTEX_LIMIT = 20_000
_CHUNK_ROWS = 20_000


#: ``phi(s) = min_p { val(p) + s.p }`` and its optimal mixture, row by row: ``mixtures`` ``(n, m)`` of tilts, ties by
#: nominal utility at forecasts, where these are given; ``beliefs`` ``(n, d)`` that minimise ``val(p) + s.p``; and
#: ``settled``, true where mixtures are the same whatever the forecast, because no tie is left to it.
LocalGame: TypeAlias = "Envelope | VertexGame | SingleAction | InteriorGame"


def local_game(game: Game) -> LocalGame:
    """Choose the closed form, the vertex table, or interior point for a game."""
    if game.n_actions == 1:
        return SingleAction(game)
    if game.shared and game.dimension == 1:
        return upper_envelope(game)
    if game.shared:
        table = _tabulated(game.space, game.n_actions, game.rewards.tobytes(), game.offsets.tobytes())
        if table is not None:
            return table
    return InteriorGame(game)


@lru_cache(maxsize=4)
def _tabulated(space: Space, m: int, rewards: bytes, offsets: bytes) -> VertexGame | None:
    """Tabulate a shared game, by value: every rung of a ladder asks about the same decision."""
    from prudent.solvers.vertex_enumeration import enumerate_vertices  # late: keeps `import prudent` fast

    table = np.frombuffer(rewards).reshape(1, m, space.dimension)
    return enumerate_vertices(Game(table, np.frombuffer(offsets).reshape(1, m), space, shared=True), VERTEX_LIMIT)


@frozen
class SingleAction:
    """Nothing to choose; the adversary takes the least point."""

    game: Game

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        return np.ones((tilts.shape[0], 1))

    def settled(self, tilts: FloatArray) -> bool:
        return True

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        return self.game.space.support_minimizer(self.game.rewards[:, 0] + tilts)


@frozen
class InteriorGame:
    """Rows with rewards of their own, or too many vertices to tabulate."""

    game: Game

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        mixtures = self._solve(tilts)[0]
        mixtures[mixtures < 1e-9] = 0.0
        mixtures /= mixtures.sum(axis=1, keepdims=True)
        return mixtures

    def settled(self, tilts: FloatArray) -> bool:  # rows are solved together, and agree to the last digits only so
        return False

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        return self._solve(tilts)[1]

    def _solve(self, tilts: FloatArray) -> tuple[FloatArray, FloatArray]:
        from prudent.solvers.game import normalize_game
        from prudent.solvers.interior_point import interior_point  # late: keeps `import prudent` fast
        from prudent.solvers.moment_system import no_moments

        n, d = tilts.shape
        mixtures, beliefs = np.empty((n, self.game.n_actions)), np.empty((n, d))
        low, widths = self.game.space.bounds[0], self.game.space.widths
        center = 1.0 / d if self.game.space.is_simplex else 0.5
        for first in range(0, n, _CHUNK_ROWS):
            rows = np.arange(first, min(first + _CHUNK_ROWS, n))
            part = self.game.take(rows)
            offsets = np.broadcast_to(part.offsets, (rows.size, part.n_actions))
            tilted = Game(part.rewards + tilts[rows, None, :], offsets, part.space, shared=False)
            start = np.full((rows.size, d), center)
            proposal = interior_point(normalize_game(tilted), no_moments(rows.size, d), start)
            mixtures[rows], beliefs[rows] = proposal.mixtures, low + widths * proposal.beliefs
        return mixtures, beliefs
