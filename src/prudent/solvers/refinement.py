"""Many rows: solve on few cells, look where the cells lose, split there, go on (docs/theory.md, section 6).

The interior point resumes on the split cells where it stopped, and is only
ever driven as far as the cells are worth: its path and the partition get
finer together, and most of the work is done on a small part of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray
from prudent.compiled import worth_compiling
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
