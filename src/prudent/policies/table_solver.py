"""Solve on a lazy table: cells propose, all rows certify, cells that lose are divided (docs/theory.md, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum

import numpy as np

from prudent.ambiguity import Ambiguity, Slack, SlackSet
from prudent.arrays import FloatArray, IntArray
from prudent.errors import InfeasibleError
from prudent.policies.table_cells import TableCells
from prudent.policies.table_games import RowGame, TableGame
from prudent.solvers import Certificate, Game, LocalGame, Solution, Status, solve
from prudent.solvers.dispatch import TOLERANCE
from prudent.tables.dual import dual_sums, tilt_expressions

__all__ = [
    "MOST_ROUNDS",
    "Proof",
    "TableSolution",
    "Worlds",
    "certify",
    "divided_cells",
    "losing_cells",
    "rounding_of_sums",
    "solve_table",
]

#: Rounds of solving, certifying and dividing; after that the status says that a gap is left.
MOST_ROUNDS = 8

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_CELLS = 200_000
_DIVIDED_LOSS = 0.99
_MOST_DIVIDED = 2_000
_SAME = 1e-13
_NEGLIGIBLE = 1e-12  # moments off by this share of their size are rounding; the upper bound charges for them
_MOST_NAMED = 0.5  # past this share of cells a query over all rows is shorter


@dataclass(frozen=True, eq=False)
class Worlds:
    """The worlds that are allowed: the set of moments, as it was specified, and multipliers known beforehand."""

    slack: SlackSet
    allowance: Slack
    plug_in: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class TableSolution:
    """Multipliers and a world, certified on all rows.

    Attributes
    ----------
    solution : Solution
        ``beliefs`` is a world on ``cells``.
    ambiguity : Ambiguity
        On ``cells``.
    cells, finest : TableCells
        Those of the world, and the last, from which another solution may start.
    """

    solution: Solution
    ambiguity: Ambiguity
    cells: TableCells
    finest: TableCells


def solve_table(game: TableGame, cells: TableCells, worlds: Worlds) -> TableSolution:
    """Solve on cells and certify on all rows, dividing cells until the gap is closed."""
    scale = game.problem.utility_range or 1.0
    best: _Bounds | None = None
    passes, rounds = 1, 0
    while True:
        rounds += 1
        ambiguity = cells.ambiguity(worlds.slack, worlds.allowance, worlds.plug_in)
        played, local = game.on_cells(cells)
        solution = _solved(played, ambiguity, local)
        if isinstance(solution, InfeasibleError) or _astray(ambiguity, solution):
            # Rows that lie close together share too few cells for a world that is constant on them.
            finer = cells.finer(rounds) if rounds < MOST_ROUNDS and len(cells.sums.keys) <= _MOST_CELLS else None
            if finer is not None:
                cells = finer
                passes += 1
                continue
        if isinstance(solution, InfeasibleError):
            raise solution
        multipliers = np.zeros(0) if solution.multipliers is None else solution.multipliers
        proof = certify(game, cells, ambiguity, worlds.slack, multipliers, scale)
        passes += proof.queries
        found = _Bounds(solution, ambiguity, cells, proof.lower, solution.certificate.upper + proof.upper_margin)
        best = found if best is None else best.improved(found)
        gap = best.upper - best.lower
        if gap <= TOLERANCE * scale or rounds == MOST_ROUNDS or len(cells.sums.keys) > _MOST_CELLS:
            break
        losing = losing_cells(proof.loss, TOLERANCE * scale)
        if not losing.size:
            break
        divided = divided_cells(game, cells, cells.sums.keys[losing], multipliers)
        if divided is None:
            break
        cells = divided
        passes += 1
    return TableSolution(best.solution_of(scale, len(cells.sums.keys), passes), best.ambiguity, best.cells, cells)


def _solved(played: Game, ambiguity: Ambiguity, local: LocalGame) -> Solution | InfeasibleError:
    try:
        return solve(played, ambiguity, local)
    except InfeasibleError as refusal:
        return refusal


def _astray(ambiguity: Ambiguity, solution: Solution) -> bool:
    """True if a world misses its moments by more than rounding, as where hardly any is constant on cells.

    With few cells the price of a miss is not known, so there less is let pass.
    """
    moments = ambiguity.moments(solution.beliefs)
    low, high = ambiguity.space.bounds
    missed = float(np.abs(moments - ambiguity.slack.project(moments)).max(initial=0.0))
    size = float(ambiguity.tests.sizes.max(initial=0.0) * (high - low).max())
    few = ambiguity.n_rows < 4 * ambiguity.tests.n_moments
    return missed > (64 * _EPSILON if few else _NEGLIGIBLE) * size


def divided_cells(game: RowGame, cells: TableCells, keys: IntArray, multipliers: FloatArray) -> TableCells | None:
    """Divide cells by a finer grid, or by where rows are least; None where keys would leave whole numbers."""
    if cells.partition.grid_divides:
        return cells.divided(keys) if cells.partition.has_room() else None
    label, count = game.label(tilt_expressions(cells.tests, multipliers, cells.rows.space.dimension))
    return cells.divided(keys, label, count) if cells.partition.has_room(count) else None


@dataclass(frozen=True, eq=False)
class _Bounds:
    """The best multipliers and the best world so far."""

    solution: Solution
    ambiguity: Ambiguity
    cells: TableCells
    lower: float
    upper: float
    multipliers: FloatArray | None = None

    def improved(self, other: _Bounds) -> _Bounds:
        upper = other if other.upper <= self.upper else self
        lower = other if other.lower >= self.lower else self
        return replace(upper, lower=lower.lower, multipliers=lower.multipliers_found)

    @property
    def multipliers_found(self) -> FloatArray | None:
        return self.solution.multipliers if self.multipliers is None else self.multipliers

    def solution_of(self, scale: float, count: int, passes: int) -> Solution:
        upper = max(self.upper, self.lower)
        relative = (upper - self.lower) / scale
        last_digits = 16 * _EPSILON * max(abs(self.lower), abs(upper))
        closed = relative <= TOLERANCE or upper - self.lower <= last_digits
        message = (
            f"Method: cells of a table ({self.solution.method} on {count:,} cells), because the rows stay in their "
            f"engine; {passes} {'pass' if passes == 1 else 'passes'}, and all rows certify."
        )
        if not closed:
            message += f" The gap is {relative:.1e} of the utility range; both bounds hold, optimality is not proven."
        status = Status.OPTIMAL if closed else Status.NOT_PROVEN
        certificate = Certificate(self.lower, upper, status, message)
        return replace(
            self.solution, multipliers=self.multipliers_found, certificate=certificate, method="cells of a table"
        )


@dataclass(frozen=True, eq=False)
class Proof:
    """A lower bound from all rows, what the aggregated upper bound may be off by, and how it was found."""

    lower: float
    upper_margin: float
    loss: FloatArray  # (cells,) how far each cell's mean is from its rows
    queries: int


def certify(
    game: RowGame,
    cells: TableCells,
    ambiguity: Ambiguity,
    slack: SlackSet,
    multipliers: FloatArray,
    scale: float,
) -> Proof:
    """Compute the dual value at multipliers on all rows, rounded down.

    Where one point is least for all rows of a cell its means say all; the rows of the other cells are summed up by the
    engine.
    """
    low, high = game.problem.space.bounds
    tilts = ambiguity.tests.tilts(multipliers)
    own = game.of_means(cells, tilts)
    phi = ambiguity.weights * own
    open_cells = game.hidden(cells, multipliers) > _SAME * scale
    queries = int(open_cells.any())
    if queries:
        keys = None if open_cells.mean() > _MOST_NAMED else cells.sums.keys[open_cells]
        found, sums = dual_sums(cells.rows, cells.tests, cells.partition, multipliers, game.of_rows, keys)
        phi[_positions(cells.sums.keys, found)] = sums / cells.sums.total_weight
    loss = np.abs(ambiguity.weights * own - phi)
    linear = float(multipliers @ cells.linear_term)
    penalty = slack.support(multipliers)
    rounding = rounding_of_sums(cells, ambiguity) + (game.problem.n_actions + game.problem.dimension) * _EPSILON
    reach = ambiguity.tests.reach(multipliers, ambiguity.weights, high - low)
    margin = rounding * (game.size + 2 * reach + abs(penalty)) + _SAME * scale
    margin += game.shortfall(tilts, own)
    common = game.common
    lower = fsum(phi) - linear - penalty - margin + common - 2 * _EPSILON * abs(common)
    return Proof(lower, rounding * (game.size + 2 * reach), loss, queries)


def rounding_of_sums(cells: TableCells, ambiguity: Ambiguity) -> float:
    """Relative rounding of the engine's sums, and of adding up cells.

    It adds up the rows of a cell in an order of its own: ``n`` numbers err by at most ``n`` epsilon of their sizes.
    """
    return (float(cells.sums.counts.max()) + len(cells.sums.keys) + ambiguity.tests.n_moments + 64) * _EPSILON


def losing_cells(loss: FloatArray, tolerance: float) -> IntArray:
    """Cells that together hide nearly all that is lost."""
    total = float(loss.sum())
    if total <= 0.01 * tolerance:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(-loss)
    enough = int(np.searchsorted(np.cumsum(loss[order]), _DIVIDED_LOSS * total)) + 1
    return order[: min(enough, _MOST_DIVIDED)]


def _positions(keys: IntArray, wanted: IntArray) -> IntArray:
    order = np.argsort(keys)
    return order[np.searchsorted(keys[order], wanted)]
