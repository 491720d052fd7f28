"""Fit on a lazy table: cells propose, all rows certify, cells that lose are divided (docs/theory.md, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import fsum
from typing import Any

import numpy as np

from prudent.ambiguity import Ambiguity, Slack, SlackSet, build_ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.decisions import DecisionCalibrated
from prudent.guarantees.written import WrittenTests
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, LocalGame, Solution, Status, local_game, solve
from prudent.solvers.dispatch import TOLERANCE
from prudent.solvers.envelope import Envelope
from prudent.solvers.vertices import VertexGame
from prudent.spaces import Simplex
from prudent.tables.aggregates import CellSums, gather_cells
from prudent.tables.columns import Columns
from prudent.tables.dual import corner_tests, dual_sums, vertex_label
from prudent.tables.moment_sums import measure_table
from prudent.tables.partition import Partition, first_partition
from prudent.tables.quantiles import resolve_in_table
from prudent.tables.rows import Rows, place_rows, some_rows

__all__ = ["MOST_ROUNDS", "FittedTable", "TableCells", "fit_table", "gather_table", "solve_table"]

#: Rounds of solving, certifying and dividing; after that the status says that a gap is left.
MOST_ROUNDS = 8

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_CELLS = 200_000
_DIVIDED_LOSS = 0.99
_MOST_DIVIDED = 2_000
_SAME = 1e-13
_MOST_NAMED = 0.5  # past this share of cells a query over all rows is shorter


@dataclass(frozen=True, eq=False)
class TableCells:
    """Cells of a table with what they are made of."""

    rows: Rows
    tests: WrittenTests
    partition: Partition
    sums: CellSums

    def ambiguity(self, slack: SlackSet, allowance: Slack, plug_in: FloatArray | None) -> Ambiguity:
        """The set of worlds that are constant on cells, with moments exact over all rows."""
        sums, space = self.sums, self.rows.space
        total = sums.total_weight
        weights = sums.weights / total
        forecasts = np.clip(sums.forecasts / sums.weights[:, None], *space.bounds)
        tests = self.tests.assemble(self.labels, sums.mean_numbers(self.tests))
        shift = self.linear_term - tests.moments(forecasts, weights)
        # Where tests are constant on cells the two sums are one, and differ by rounding only.
        reach = (np.abs(tests.as_vector().values) @ np.abs(space.bounds).max(axis=0)).max(axis=0, initial=0.0)
        shift[np.abs(shift) <= 64 * _EPSILON * np.log2(sums.counts.sum() + 2) * reach] = 0.0
        moved = SlackSet(slack.center + shift, slack.radius, slack.groups, slack.ball)
        return Ambiguity(space, forecasts, weights, tests, moved, plug_in_multipliers=plug_in, allowance=allowance)

    @property
    def labels(self) -> IntArray:
        """Labels of the tests, ``(cells, labels)``."""
        return self.partition.decode(self.sums.keys)[0]

    @property
    def n_snapped(self) -> int:
        """Rows that were moved onto the space."""
        return int(self.sums.counts[self.partition.moved(self.sums.keys)].sum())

    @property
    def linear_term(self) -> FloatArray:
        """``E[B_j(v) . v]`` over all rows, for every moment."""
        return self.sums.linear_term(self.tests, self.labels) / self.sums.total_weight

    def divided(self, keys: IntArray, label: Any = None, n_labels: int = 0) -> TableCells:
        """Divide some cells, by one query over their rows."""
        partition = self.partition.divided(keys, label, n_labels)
        parts = gather_cells(self.rows, self.tests, partition, keys, "dividing cells")
        return replace(self, partition=partition, sums=self.sums.with_parts(parts, keys))


def gather_table(rows: Rows, guarantee: Guarantee) -> TableCells:
    """Gather the rows of a table into cells for a resolved guarantee: one pass."""
    tests = guarantee.write(rows.space)
    partition = first_partition(rows.space, tests)
    sums = gather_cells(rows, tests, partition, doing="gathering rows into cells")
    return TableCells(sums.rows or rows, tests, partition, sums)


def solve_table(
    problem: DecisionProblem,
    cells: TableCells,
    slack: SlackSet,
    allowance: Slack,
    plug_in: FloatArray | None,
) -> tuple[Solution, Ambiguity]:
    """Solve on cells and certify on all rows, dividing cells until the gap is closed."""
    game = Game.of_problem(problem)
    local = local_game(game)
    corners, heights = vertices_of(game, local)
    best: _Bounds | None = None
    passes, rounds = 1, 0
    while True:
        rounds += 1
        ambiguity = cells.ambiguity(slack, allowance, plug_in)
        solution = solve(game, ambiguity, local)
        multipliers = np.zeros(0) if solution.multipliers is None else solution.multipliers
        proof = _certify(cells, ambiguity, slack, multipliers, local, game)
        passes += proof.queries
        found = _Bounds(solution, ambiguity, proof.lower, solution.certificate.upper + proof.upper_margin)
        best = found if best is None else best.improved(found)
        gap = best.upper - best.lower
        if gap <= TOLERANCE * game.scale or rounds == MOST_ROUNDS or len(cells.sums.keys) > _MOST_CELLS:
            break
        losing = _losing(proof.loss, TOLERANCE * game.scale)
        if not losing.size:
            break
        keys = cells.sums.keys[losing]
        if cells.partition.grid_divides:
            cells = cells.divided(keys)
        else:
            label = vertex_label(cells.tests, multipliers, corners, heights)
            cells = cells.divided(keys, label, len(heights))
        passes += 1
    return best.solution_of(game, len(cells.sums.keys), passes), best.ambiguity


@dataclass(frozen=True, eq=False)
class _Bounds:
    """The best multipliers and the best world so far."""

    solution: Solution
    ambiguity: Ambiguity
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

    def solution_of(self, game: Game, count: int, passes: int) -> Solution:
        upper = max(self.upper, self.lower)
        relative = (upper - self.lower) / game.scale
        last_digits = 16 * _EPSILON * max(abs(self.lower), abs(upper))
        closed = relative <= TOLERANCE or upper - self.lower <= last_digits
        message = (
            f"Method: cells of a table ({self.solution.method} on {count:,} cells), because the rows stay in their "
            f"engine; {passes} passes, and all rows certify."
        )
        if not closed:
            message += f" The gap is {relative:.1e} of the utility range; both bounds hold, optimality is not proven."
        status = Status.OPTIMAL if closed else Status.NOT_PROVEN
        certificate = Certificate(self.lower, upper, status, message)
        return replace(
            self.solution, multipliers=self.multipliers_found, certificate=certificate, method="cells of a table"
        )


@dataclass(frozen=True, eq=False)
class _Proof:
    lower: float
    upper_margin: float
    loss: FloatArray  # (cells,) what each cell's mean hides
    queries: int


def vertices_of(game: Game, local: LocalGame) -> tuple[FloatArray, FloatArray]:
    """Vertices ``(N, d)`` of ``epi(val)`` in the user's units, and ``val`` there."""
    if isinstance(local, Envelope):
        points = local.points[:, None]
    elif isinstance(local, VertexGame):
        points = np.unique(local.points, axis=0)
    elif game.n_actions == 1 and game.dimension <= 10:
        low, high = game.space.bounds
        points = np.array(list(product(*zip(low, high, strict=True))))
    else:
        raise InputError(
            f"this decision has too many vertices to be certified inside an engine ({game.n_actions} actions in "
            f"{game.dimension} coordinates). Fit on a sample in memory."
        )
    return points, game.utilities(points).max(axis=1)


def _certify(
    cells: TableCells,
    ambiguity: Ambiguity,
    slack: SlackSet,
    multipliers: FloatArray,
    local: LocalGame,
    game: Game,
) -> _Proof:
    """Compute the dual value at multipliers on all rows, rounded down.

    Where one vertex is least at all corners of a cell, it is least for all its rows (each score minus ``phi`` is
    convex in the tilt, and the tilt affine in the forecast), and the cell's means say all; the rows of the other
    cells are summed up by the engine.
    """
    low, high = game.space.bounds
    corners, heights = vertices_of(game, local)
    common = float(heights.mean())
    corners, heights = corners - low, heights - common
    tilts = ambiguity.tests.tilts(multipliers)
    own = (tilts @ corners.T + heights).min(axis=1)
    phi = ambiguity.weights * own
    open_cells = _hidden(cells, multipliers, corners, heights) > _SAME * game.scale
    queries = int(open_cells.any())
    if queries:
        keys = None if open_cells.mean() > _MOST_NAMED else cells.sums.keys[open_cells]
        found, sums = dual_sums(cells.rows, cells.tests, cells.partition, multipliers, corners, heights, keys)
        phi[_positions(cells.sums.keys, found)] = sums / cells.sums.total_weight
    loss = np.maximum(ambiguity.weights * own - phi, 0.0)
    linear = float(multipliers @ cells.linear_term) - float(ambiguity.weights @ (tilts @ low))
    penalty = slack.support(multipliers)
    rounding = rounding_of_sums(cells, ambiguity)
    size = float(np.abs(heights).max() + np.abs(game.rewards).max(axis=(0, 1)) @ (high - low))
    reach = ambiguity.tests.reach(multipliers, ambiguity.weights, high - low + np.abs(low))
    margin = rounding * (size + 2 * reach + abs(penalty)) + _SAME * game.scale
    margin += _shortfall(game, local, tilts, own + common)
    lower = fsum(phi) - linear - penalty - margin + common - 2 * _EPSILON * abs(common)
    upper = rounding * (size + 2 * reach)
    return _Proof(lower, upper, loss, queries)


def rounding_of_sums(cells: TableCells, ambiguity: Ambiguity) -> float:
    """Relative rounding of the engine's sums.

    It adds up the rows of a cell in an order of its own: ``n`` numbers err by at most ``n`` epsilon of their sizes.
    """
    return (float(cells.sums.counts.max()) + ambiguity.tests.n_moments + 64) * _EPSILON


def _hidden(cells: TableCells, multipliers: FloatArray, corners: FloatArray, heights: FloatArray) -> FloatArray:
    """The most by which any row of a cell can lie below its cell's linear piece; infinite where unknown."""
    labels, lower, upper = cells.partition.decode(cells.sums.keys)
    d = cells.rows.space.dimension
    coordinates = {f"v{j}" for j in range(d)}
    if not set(cells.tests.numbers) <= coordinates or d > 3:
        return np.full(len(labels), np.inf)
    worst = np.zeros((len(labels), len(heights)))
    for choice in product((False, True), repeat=d):
        points = np.where(np.array(choice), upper, lower)
        scores = corner_tests(cells.tests, labels, points).tilts(multipliers) @ corners.T + heights
        np.maximum(worst, scores - scores.min(axis=1, keepdims=True), out=worst)
    hidden: FloatArray = worst.min(axis=1)
    return hidden


def _shortfall(game: Game, local: LocalGame, tilts: FloatArray, values: FloatArray) -> float:
    """The most by which mixtures, as they are played in floats, miss the value of their local game; on all cells."""
    low, high = game.space.bounds
    mixtures = local.mixtures(tilts)
    direction = game.mixed_rewards(mixtures) + tilts
    simplex = isinstance(game.space, Simplex)
    least = direction.min(axis=1) if simplex else np.minimum(direction, 0.0) @ (high - low)
    played = mixtures @ (game.offsets + game.rewards_at(low))[0] + least
    return max(0.0, float((values - played).max()))


def _losing(loss: FloatArray, tolerance: float) -> IntArray:
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


@dataclass(frozen=True, eq=False)
class FittedTable:
    """What a policy keeps of a table it was fitted on."""

    guarantee: Guarantee
    ambiguity: Ambiguity
    slack: SlackSet
    solution: Solution
    n_snapped: int
    some_rows: FloatArray


def fit_table(
    problem: DecisionProblem, guarantee: Guarantee, columns: Columns, slack: Any, confidence: float
) -> FittedTable:
    """Find multipliers for the rows of a table, with bounds that hold for all of them."""
    allowance = Slack.read(slack)
    rows = place_rows(columns, problem.space)
    if guarantee.full:
        return _fully_calibrated(problem, guarantee, rows, allowance)
    resolved = resolve_in_table(guarantee, rows)
    cells = gather_table(rows, resolved)
    names = cells.tests.assemble(cells.labels[:1], cells.sums.mean_numbers(cells.tests, slice(1))).without_rows()
    measured = None
    if allowance.needs_outcomes:
        grouped = columns.group is not None
        found = measure_table(resolved, place_rows(columns, problem.space, outcomes=True, groups=grouped), confidence)
        measured = found.estimates.estimates
        if found.n_rows != int(cells.sums.counts.sum()):
            raise InputError(
                "slack that is measured needs the outcome of every row that is fitted on; filter the table first."
            )
        if allowance.audited:
            allowance = allowance.measure(found.estimates, confidence)
    plug_in = resolved.plug_in_multipliers(problem, _means(cells)[:1])
    resolved_slack = allowance.resolve(names, measured)
    solution, ambiguity = solve_table(problem, cells, resolved_slack, allowance.settle(names, measured), plug_in)
    return FittedTable(resolved, ambiguity, resolved_slack, solution, cells.n_snapped, some_rows(cells.rows))


def _fully_calibrated(problem: DecisionProblem, guarantee: Guarantee, rows: Rows, allowance: Slack) -> FittedTable:
    """The one world is the forecast: utilities are linear where one action is best, so regions say all."""
    cells = gather_table(rows, DecisionCalibrated((problem,)))
    empty = build_ambiguity(problem, guarantee, _means(cells), cells.sums.weights / cells.sums.total_weight, allowance)
    solution = solve(Game.of_problem(problem), empty)
    return FittedTable(guarantee, empty, empty.slack, solution, cells.n_snapped, some_rows(cells.rows))


def _means(cells: TableCells) -> FloatArray:
    return np.clip(cells.sums.forecasts / cells.sums.weights[:, None], *cells.rows.space.bounds)
