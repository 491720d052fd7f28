"""Vertices of ``epi(val)``, which are the same for every row, and what a row's tilted game is at each of them.

``phi(s) = min_j { heights_j + s.corners_j }`` (docs/theory.md, section 6), in natural units.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.compiled import ROWS_WORTH_COMPILING, compiled
from prudent.narrow import smallest_in_rows
from prudent.solvers import vertex_loops
from prudent.solvers.envelope import upper_envelope
from prudent.solvers.game import Game
from prudent.solvers.local import LocalGame
from prudent.solvers.vertices import VertexGame
from prudent.spaces import Simplex, Space

__all__ = ["VertexTable", "vertex_table"]

_MOST_CHOICES = 3
_MOST_CORNERS = 10  # dimensions up to which all corners of a box are listed
_CHUNK_ELEMENTS = 1 << 22
_CHUNK_ROWS = 1 << 15


@dataclass(frozen=True, eq=False)
class VertexTable:
    """Vertices of ``epi(val)`` in natural units: ``phi(s) = min_j { heights_j + s.corners_j }``."""

    corners: FloatArray  # (N, d)
    heights: FloatArray  # (N,)

    @property
    def few(self) -> bool:
        """True if there are so few vertices that finding the least is no work beside reading a row."""
        return self.heights.size <= vertex_loops.FEW_VERTICES

    def least(self, tilts: FloatArray) -> FloatArray:
        """Compute ``phi`` for tilts ``(d, n)``."""
        result = np.empty(tilts.shape[1])
        work = result.size * self.heights.size // vertex_loops.VERTICES_LIKE_A_PASS
        loop = compiled(vertex_loops.least_two, work) if tilts.shape[0] > 1 else None

        def fill(part: slice) -> None:
            if loop is not None:
                nearest, second = np.empty(len(result[part]), dtype=np.int64), np.empty(len(result[part]))
                loop(np.ascontiguousarray(tilts[:, part]), self.corners, self.heights, nearest, result[part], second)
            elif tilts.shape[0] == 1:  # one coordinate: vertex by vertex, without a table of all
                best = self.heights[0] + tilts[0, part] * self.corners[0, 0]
                for height, corner in zip(self.heights[1:], self.corners[1:, 0], strict=True):
                    np.minimum(best, height + tilts[0, part] * corner, out=best)
                result[part] = best
            else:
                result[part] = smallest_in_rows(self.scores(tilts[:, part]))

        over_rows(fill, result.size, max(1, min(_CHUNK_ROWS, _CHUNK_ELEMENTS // self.heights.size)))
        return result

    def scores(self, tilts: FloatArray) -> FloatArray:
        """Value of every vertex for tilts ``(d, n)``, shape ``(n, N)``."""
        scores = tilts.T @ self.corners.T
        scores += self.heights
        return scores

    def labels(
        self, tilts: FloatArray, least: FloatArray, cells: IntArray, tolerance: float, *, many: bool = False
    ) -> IntArray:
        """Give every row a vertex that is optimal for it up to a tolerance, with few different ones per cell.

        Greedy: the vertex that suits most rows of a cell, then the one that suits most of those left. ``cells``
        is sorted. ``many`` rows, of which these may be few, are worth a compiled loop.
        """
        result = np.empty(cells.size, dtype=np.int64)
        limits = least + tolerance
        work = cells.size * self.heights.size // vertex_loops.VERTICES_LIKE_A_PASS
        loop = compiled(vertex_loops.cover_cells, max(work, ROWS_WORTH_COMPILING) if many else work)
        if loop is not None:
            starts = np.append(_starts(cells), cells.size)
            loop(np.ascontiguousarray(tilts), self.corners, self.heights, limits, starts, _MOST_CHOICES, result)
            return result
        most = max(1, _CHUNK_ELEMENTS // self.heights.size)
        first = 0
        while first < cells.size:
            last = min(first + most, cells.size)
            if last < cells.size:  # never cut a cell in two, unless it is larger than a chunk
                start = int(np.searchsorted(cells, cells[last]))
                last = start if start > first else last
            part = slice(first, last)
            near = self.scores(tilts[:, part]) <= limits[part, None]
            result[part] = _few_choices(near, cells[part])
            first = last
        return result


def vertex_table(game: Game, local: LocalGame) -> VertexTable | None:
    """Tabulate a game in natural units, given its local game; None where there are too many vertices."""
    if game.n_actions == 1:
        corners = _space_corners(game.space)
        return None if corners is None else VertexTable(corners, np.zeros(len(corners)))
    if not game.shared:
        return None
    if game.dimension == 1:
        points = upper_envelope(game).points
        return VertexTable(points[:, None], game.utilities(points[:, None]).max(axis=1))
    return VertexTable(local.corners, local.heights) if isinstance(local, VertexGame) else None


def _space_corners(space: Space) -> FloatArray | None:
    d = space.dimension
    if isinstance(space, Simplex):
        return np.eye(d)
    return None if d > _MOST_CORNERS else np.array(list(product((0.0, 1.0), repeat=d)))


def _starts(cells: IntArray) -> IntArray:
    """Where each of the cells, which are sorted, begins."""
    return np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))


def _few_choices(near: NDArray[np.bool_], cells: IntArray) -> IntArray:
    """Cover the rows of every cell by few vertices that are near-optimal for them."""
    choice = np.empty(cells.size, dtype=np.int64)
    left = np.arange(cells.size)
    for _ in range(_MOST_CHOICES):
        inside = cells[left]
        starts = _starts(inside)
        suited = np.add.reduceat(near[left], starts, axis=0, dtype=np.int32).argmax(axis=1)
        picked = np.repeat(suited, np.diff(np.append(starts, left.size)))
        served = near[left, picked]
        choice[left[served]] = picked[served]
        left = left[~served]
        if left.size == 0:
            return choice
    choice[left] = near.shape[1]  # the rest stays together until the next round
    return choice
