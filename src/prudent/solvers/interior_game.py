"""The tilted local game without a table: rows with rewards of their own, or too many vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.game import Game
from prudent.solvers.interior_point import interior_point
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.units import normalize_game
from prudent.spaces import Simplex

__all__ = ["InteriorGame"]

_CHUNK_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class InteriorGame:
    """Rows with rewards of their own, or too many vertices to tabulate."""

    game: Game

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        """Return maximin mixtures ``(n, m)``."""
        mixtures = self._solve(tilts)[0]
        mixtures[mixtures < 1e-9] = 0.0
        mixtures /= mixtures.sum(axis=1, keepdims=True)
        return mixtures

    def settled(self, tilts: FloatArray) -> bool:
        """False: rows are solved together, and each to the last digits only with its neighbours."""
        return False

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        """Return minimisers of ``val(p) + s.p``, shape ``(n, d)``."""
        return self._solve(tilts)[1]

    def _solve(self, tilts: FloatArray) -> tuple[FloatArray, FloatArray]:
        n, d = tilts.shape
        mixtures, beliefs = np.empty((n, self.game.n_actions)), np.empty((n, d))
        low, high = self.game.space.bounds
        center = 1.0 / d if isinstance(self.game.space, Simplex) else 0.5
        for first in range(0, n, _CHUNK_ROWS):
            rows = np.arange(first, min(first + _CHUNK_ROWS, n))
            part = self.game.take(rows)
            offsets = np.broadcast_to(part.offsets, (rows.size, part.n_actions))
            tilted = Game(part.rewards + tilts[rows, None, :], offsets, part.space, shared=False)
            start = np.full((rows.size, d), center)
            proposal = interior_point(normalize_game(tilted), _no_moments(rows.size, d), start)
            mixtures[rows], beliefs[rows] = proposal.mixtures, low + (high - low) * proposal.beliefs
        return mixtures, beliefs


def _no_moments(n: int, d: int) -> MomentSystem:
    none = np.zeros(0, dtype=np.int64)
    return MomentSystem(
        np.zeros((0, n)),
        np.full(n, 1.0 / n),
        d,
        np.zeros((0, 0)),
        np.zeros(0),
        none,
        none,
        np.zeros(0),
        np.zeros((0, d), dtype=np.int64),
        np.zeros(0),
        gauge=False,
    )
