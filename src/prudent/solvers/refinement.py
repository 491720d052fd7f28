"""Many rows: solve on few cells, look where the cells lose, split there, go on (docs/theory.md, section 6).

The interior point resumes on the split cells where it stopped, and is only
ever driven as far as the cells are worth: its path and the partition get
finer together, and most of the work is done on a small part of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.compiled import compiled, worth_compiling
from prudent.solvers import cell_loops
from prudent.solvers.cells import Cells
from prudent.solvers.first_cells import first_cells
from prudent.solvers.game import Game
from prudent.solvers.interior_point import Iterate, interior_point
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.vertex_table import VertexTable

__all__ = ["Refined", "refined"]

# What cells and interior point may lose together, as a share of the utility range; less than what is called optimal.
_GOAL = 7e-7
_FIRST_TARGET = 2e-3
_MOST_ROUNDS = 14
_SPLIT_LOSS = 0.99  # cells with this share of the loss are split
_SUITED = 0.25  # a vertex suits a row if it loses at most this share of the mean loss
_LEAST_RESTART = 5e-5
_SMALL_NUMBERS = 1 << 16


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
    # A single action's rewards act like a tilt; with several, the table knows them.
    own = np.ascontiguousarray(game.rewards[:, 0]) if game.n_actions == 1 else np.zeros((0, game.dimension))
    many = worth_compiling(forecasts.size)
    start: Iterate | None = None
    target, iterations = _FIRST_TARGET, 0
    for _ in range(_MOST_ROUNDS):
        part, part_game, part_forecasts = cells.system, cells.game, cells.forecasts
        proposal = interior_point(part_game, part, part_forecasts, target=target, start=start, many=many)
        iterations += proposal.iterations
        stuck = proposal.merit > 10 * target or (proposal.merit > target and proposal.iterations == 0)
        if stuck and start is not None:  # where it resumed: begin afresh
            proposal = interior_point(part_game, part, part_forecasts, target=target, many=many)
            iterations += proposal.iterations
        if proposal.merit > 10 * target:
            return None
        sums = _sums_in_cells(system, own, table, proposal.multipliers, cells)
        cell_tilts = part.tilts(proposal.multipliers)
        if game.n_actions == 1:
            cell_tilts = cell_tilts + part_game.rewards[:, 0].T
        loss = cells.weights * table.least(cell_tilts) - sums
        total = float(loss.sum())
        if total + proposal.merit <= _GOAL:
            return Refined(proposal.multipliers, proposal.beliefs, cells, iterations)
        # The interior point goes as far as the cells are worth.
        target = float(np.clip(total, 0.2 * _GOAL, 0.5 * target))
        start = proposal.best
        if total > 0.5 * _GOAL:
            before = cells.count
            rows = _rows_that_lose(cells, loss)
            tilts = _tilts_of(rows, cells, system, own, proposal.multipliers)
            labels = table.labels(tilts, table.least(tilts), cells.index[rows], _SUITED * total, many=many)
            cells.split(rows, labels)
            if 2 * cells.count > len(forecasts):
                return None
            if cells.count > before:  # else go on from where it stopped
                mu = max(total, _LEAST_RESTART)
                start = start.resumed(cells.game, cells.system, cells.forecasts, mu, many)
    return None


def _sums_in_cells(
    system: MomentSystem, own: FloatArray, table: VertexTable, multipliers: FloatArray, cells: Cells
) -> FloatArray:
    """Weighted sums of ``phi`` at the tilts of all rows, which their own rewards are added to, in each cell."""
    loop = compiled(cell_loops.lose_in_cells, cells.index.size) if system.values.ndim == 2 and table.few else None
    if loop is None:
        tilts = system.tilts(multipliers)
        if own.size:
            tilts = tilts + own.T
        totals = np.bincount(cells.index, weights=system.weights * table.least(tilts), minlength=cells.count)
        return totals.astype(np.float64, copy=False)
    sums, weights = np.zeros(cells.count), np.ascontiguousarray(system.weights)
    loop(system.values, system.factors(multipliers), own, table.corners, table.heights, weights, cells.index, sums)
    return sums


def _tilts_of(
    rows: IntArray, cells: Cells, system: MomentSystem, own: FloatArray, multipliers: FloatArray
) -> FloatArray:
    """The same tilts for some rows, ``(d, rows)``."""
    tests = cells.tests_of(rows)
    if system.values.ndim == 2:
        tilts = tests @ system.factors(multipliers)
    else:
        tilts = multipliers @ tests.reshape(rows.size, -1, system.dimension)
    if own.size:
        tilts += own.take(rows, axis=0) if len(own) > 1 else own
    return np.ascontiguousarray(tilts.T)


def _rows_that_lose(cells: Cells, loss: FloatArray) -> IntArray:
    """Rows of the cells that lose most, cell by cell."""
    order = np.argsort(-loss)
    marked = np.zeros(cells.count, dtype=bool)
    marked[order[: int(np.searchsorted(np.cumsum(loss[order]), _SPLIT_LOSS * float(loss.sum()))) + 1]] = True
    rows = np.flatnonzero(marked[cells.index])
    inside = cells.index[rows]
    # Small numbers are sorted by their digits, in one sweep.
    small = cells.count <= _SMALL_NUMBERS
    by_cell: IntArray = rows[np.argsort(inside.astype(np.uint16) if small else inside, kind="stable")]
    return by_cell
