"""Solve the tilted local game of every row: which mixture to play, which belief hurts most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.envelope import upper_envelope
from prudent.solvers.game import Game

__all__ = ["LocalGame", "local_game"]

#: Past this many vertices the local game is solved by interior point instead of by table.
VERTEX_LIMIT = 20_000


class LocalGame(Protocol):
    """``phi(s) = min_p { val(p) + s.p }`` and its optimal mixture, row by row."""

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        """Return maximin mixtures ``(n, m)``; ties by nominal utility at ``forecasts``."""
        ...

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        """Return minimisers of ``val(p) + s.p``, shape ``(n, d)``."""
        ...

    def settled(self, tilts: FloatArray) -> bool:
        """True if at these tilts mixtures are the same whatever the forecast: no tie is left to it."""
        ...


def local_game(game: Game) -> LocalGame:
    """Choose the closed form, the vertex table, or interior point for a game."""
    if game.n_actions == 1:
        return _SingleAction(game)
    if game.shared:
        if game.dimension == 1:
            return upper_envelope(game)
        from prudent.solvers.vertices import enumerate_vertices  # late, here and below: keeps `import prudent` fast

        table = enumerate_vertices(game, VERTEX_LIMIT)
        if table is not None:
            return table
    from prudent.solvers.interior_game import InteriorGame

    return InteriorGame(game)


@dataclass(frozen=True, eq=False)
class _SingleAction:
    """Nothing to choose; the adversary takes the least point."""

    game: Game

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        return np.ones((tilts.shape[0], 1))

    def settled(self, tilts: FloatArray) -> bool:  # there is nothing to choose
        return True

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        return self.game.space.support_minimizer(self.game.rewards[:, 0] + tilts)
