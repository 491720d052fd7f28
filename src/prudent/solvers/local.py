"""Solve the tilted local game of every row: which mixture to play, which belief hurts most."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.envelope import upper_envelope
from prudent.solvers.game import Game

if TYPE_CHECKING:
    from prudent.solvers.vertices import VertexGame

__all__ = ["LocalGame", "local_game"]

#: Past this many vertices the local game is solved by interior point instead of by table.
VERTEX_LIMIT = 20_000
_MOST_KEPT_VERTICES = 1_000  # larger tables are not worth their memory
_MOST_TABLES = 8
_tables: dict[Hashable, VertexGame] = {}
_turn = Lock()


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
        table = _tabulated(game)
        if table is not None:
            return table
    from prudent.solvers.interior_game import InteriorGame  # late, here and below: keeps `import prudent` fast

    return InteriorGame(game)


def _tabulated(game: Game) -> VertexGame | None:
    """Tabulate a shared game; the same decision is asked about again and again, for every rung of a ladder."""
    from prudent.solvers.vertex_enumeration import enumerate_vertices

    bounds = b"".join(bound.tobytes() for bound in game.space.bounds)
    key = type(game.space), bounds, game.n_actions, game.rewards.tobytes(), game.offsets.tobytes()
    with _turn:
        known = _tables.get(key)
    if known is not None:
        return known
    table = enumerate_vertices(game, VERTEX_LIMIT)
    if table is not None and table.n_vertices <= _MOST_KEPT_VERTICES:
        with _turn:
            _tables[key] = table
            while len(_tables) > _MOST_TABLES:
                del _tables[next(iter(_tables))]
    return table


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
