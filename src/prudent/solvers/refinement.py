"""Many rows: solve on few cells, look where the cells lose, split there, go on (docs/theory.md, section 6).

The interior point resumes on the split cells where it stopped, and is only
ever driven as far as the cells are worth: its path and the partition get
finer together, and most of the work is done on a small part of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.compiled import compiled, worth_compiling
from prudent.solvers import vertex_loops
from prudent.solvers.cells import Cells
from prudent.solvers.envelope import upper_envelope
from prudent.solvers.first_cells import first_cells
from prudent.solvers.game import Game
from prudent.solvers.interior_point import Iterate, interior_point
from prudent.solvers.local import LocalGame
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.vertices import VertexGame
from prudent.spaces import Simplex, Space

__all__ = ["Refined", "VertexTable", "refined", "vertex_table"]

# What cells and interior point may lose together, as a share of the utility range; less than what is called optimal.
_GOAL = 7e-7
_FIRST_TARGET = 2e-3
_MOST_ROUNDS = 14
_SPLIT_LOSS = 0.99  # cells with this share of the loss are split
_SUITED = 0.25  # a vertex suits a row if it loses at most this share of the mean loss
_LEAST_RESTART = 5e-5
_MOST_CHOICES = 3
_MOST_CORNERS = 10  # dimensions up to which all corners of a box are listed
_CHUNK_ELEMENTS = 1 << 22
_CHUNK_ROWS = 1 << 15
_SMALL_NUMBERS = 1 << 16


@dataclass(frozen=True, eq=False)
class VertexTable:
    """Vertices of ``epi(val)`` in natural units: ``phi(s) = min_j { heights_j + s.corners_j }``."""

    corners: FloatArray  # (N, d)
    heights: FloatArray  # (N,)

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
                self.scores(tilts[:, part]).min(axis=1, out=result[part])

        over_rows(fill, result.size, max(1, min(_CHUNK_ROWS, _CHUNK_ELEMENTS // self.heights.size)))
        return result

    def scores(self, tilts: FloatArray) -> FloatArray:
        """Value of every vertex for tilts ``(d, n)``, shape ``(n, N)``."""
        scores = tilts.T @ self.corners.T
        scores += self.heights
        return scores

    def labels(self, tilts: FloatArray, least: FloatArray, cells: IntArray, tolerance: float) -> IntArray:
        """Give every row a vertex that is optimal for it up to a tolerance, with few different ones per cell.

        Greedy: the vertex that suits most rows of a cell, then the one that suits most of those left. ``cells``
        is sorted.
        """
        result = np.empty(cells.size, dtype=np.int64)
        limits = least + tolerance
        loop = compiled(vertex_loops.cover_cells, cells.size * self.heights.size // vertex_loops.VERTICES_LIKE_A_PASS)
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


@dataclass(frozen=True, eq=False)
class Refined:
    """A solution on cells: reduced multipliers and a world ``(cells, d)``."""

    multipliers: FloatArray
    beliefs: FloatArray
    cells: Cells
    iterations: int


def refined(game: Game, system: MomentSystem, forecasts: FloatArray, table: VertexTable) -> Refined | None:
    """Solve to a loss well below 1e-6 of the utility range.

    None where the cells stop helping: the rows themselves are then to be solved.
    """
    cells = first_cells(game, system, forecasts)
    many = worth_compiling(forecasts.size)
    start: Iterate | None = None
    target, iterations = _FIRST_TARGET, 0
    for _ in range(_MOST_ROUNDS):
        part, part_game, part_forecasts = cells.system, cells.game, cells.forecasts
        proposal = interior_point(part_game, part, part_forecasts, target=target, start=start, many=many)
        iterations += proposal.iterations
        if proposal.merit > 10 * target and start is not None:  # stuck where it resumed: begin afresh
            proposal = interior_point(part_game, part, part_forecasts, target=target, many=many)
            iterations += proposal.iterations
        if proposal.merit > 10 * target:
            return None
        tilts, cell_tilts = system.tilts(proposal.multipliers), part.tilts(proposal.multipliers)
        if game.n_actions == 1:
            tilts, cell_tilts = tilts + _own_rewards(game), cell_tilts + _own_rewards(part_game)
        least = table.least(tilts)
        loss = cells.weights * table.least(cell_tilts)
        loss -= np.bincount(cells.index, weights=system.weights * least, minlength=cells.count)
        total = float(loss.sum())
        if total + proposal.merit <= _GOAL:
            return Refined(proposal.multipliers, proposal.beliefs, cells, iterations)
        # The interior point goes as far as the cells are worth.
        target = float(np.clip(total, 0.2 * _GOAL, 0.5 * target))
        start = proposal.best
        if total > 0.5 * _GOAL:
            before = cells.count
            _split(cells, loss, table, tilts, least)
            if 2 * cells.count > len(forecasts):
                return None
            if cells.count > before:  # else go on from where it stopped
                mu = max(total, _LEAST_RESTART)
                start = start.resumed(cells.game, cells.system, cells.forecasts, mu, many)
    return None


def _own_rewards(game: Game) -> FloatArray:
    """A single action's rewards act like a tilt, ``(d, 1 or n)``; with several, the table knows them."""
    return game.rewards[:, 0].T


def _split(cells: Cells, loss: FloatArray, table: VertexTable, tilts: FloatArray, least: FloatArray) -> None:
    """Split the cells that lose most by the vertices that suit their rows."""
    total = float(loss.sum())
    order = np.argsort(-loss)
    marked = np.zeros(cells.count, dtype=bool)
    marked[order[: int(np.searchsorted(np.cumsum(loss[order]), _SPLIT_LOSS * total)) + 1]] = True
    rows = np.flatnonzero(marked[cells.index])
    inside = cells.index[rows]
    # Small numbers are sorted by their digits, in one sweep.
    rows = rows[np.argsort(inside.astype(np.uint16) if cells.count <= _SMALL_NUMBERS else inside, kind="stable")]
    cells.split(rows, table.labels(tilts[:, rows], least[rows], cells.index[rows], _SUITED * total))
