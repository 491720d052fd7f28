"""Solve on cells of a table, refined until the bounds computed on all rows meet (docs/theory.md, section 6).

For every row the dual has the concave part ``phi(s)``, a least value over finitely many points: the vertices of
``epi(val)``, or those of the space where a policy is given. On cells it is computed from means, on rows by the engine.
Outcomes are measured from the lower corner of the space and utilities from their mean there, so that a far-away origin
costs no digits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import product
from math import fsum

import numpy as np

from prudent.arrays import EPSILON, Expr, Exprs, FloatArray, IntArray, frozen, nw
from prudent.cases.engine import collect, numbers
from prudent.cases.memory_rows import Ambiguity
from prudent.cases.table_cells import TableCells
from prudent.cases.table_rows import TableAmbiguity
from prudent.errors import InfeasibleError, InputError
from prudent.guarantees.engine_tests import linear
from prudent.problem import DecisionProblem
from prudent.slack import SlackSet
from prudent.solvers.bounds import rounded_down
from prudent.solvers.game import Envelope, Game, LocalGame, local_game
from prudent.solvers.row_clusters import parts_that_lose
from prudent.solvers.solution import Certificate, Solution, Status
from prudent.solvers.solve import TOLERANCE, certificate_of, solve
from prudent.solvers.vertices import VertexGame, space_corners
from prudent.spaces import Space

# Rounds of solving, certifying and dividing; after that the status says that a gap is left.
_MOST_ROUNDS = 8
_MOST_CELLS = 200_000
_MOST_DIVIDED = 2_000
_SAME = 1e-13
_MOST_NAMED = 0.5  # past this share of cells a query over all rows is shorter


@frozen
class TableSolution:
    """Multipliers and a world, certified on all rows.

    Attributes
    ----------
    solution : Solution
        ``beliefs`` is a world on ``cells``.
    cells : TableCells
    """

    solution: Solution
    cells: TableCells


def certify_on_table(problem: DecisionProblem, worlds: TableAmbiguity, multipliers: FloatArray) -> Certificate:
    """Certify multipliers that were fitted elsewhere on the rows of a table."""
    cells, scale = worlds.cells, problem.utility_range or 1.0
    ambiguity = cells.ambiguity(worlds.slack, worlds.allowance, worlds.plug_in_multipliers)
    game = BestPolicy(problem)
    lower = certify(game, cells, ambiguity, worlds.slack, multipliers.reshape(-1), scale)[0]
    upper = solve_table(game, worlds).solution.upper
    message = "Lower: the fitted multipliers on these cases. Upper: what the best policy for them guarantees."
    return certificate_of(lower, upper, scale, message)


def solve_table(game: TableGame, worlds: TableAmbiguity) -> TableSolution:
    """Solve on cells and certify on all rows, dividing the cells that lose until the gap is closed."""
    scale, cells, passes = game.problem.utility_range or 1.0, worlds.cells, 1
    lower, upper, multipliers = -np.inf, np.inf, None
    for left in reversed(range(_MOST_ROUNDS)):
        more = left > 0 and len(cells.keys) <= _MOST_CELLS
        ambiguity = cells.ambiguity(worlds.slack, worlds.allowance, worlds.plug_in_multipliers)
        played, local = game.on_cells(cells)
        solution = _solved(played, ambiguity, local)
        unsolved = isinstance(solution, InfeasibleError) or solution.status is Status.NOT_PROVEN
        # Rows that lie close together share too few cells for a world that is constant on them.
        divided = cells.finer() if unsolved and more else None
        if divided is None:
            if isinstance(solution, InfeasibleError):
                raise solution
            found = np.zeros(0) if solution.multipliers is None else solution.multipliers
            proven, loss, queries = certify(game, cells, ambiguity, worlds.slack, found, scale)
            passes += queries
            if proven >= lower:
                lower, multipliers = proven, solution.multipliers
            if solution.upper <= upper:
                upper, best = solution.upper, TableSolution(solution, cells)
            closed = upper - lower <= TOLERANCE * scale
            if more and not closed and loss.sum() > 0.01 * TOLERANCE * scale:
                divided = cells.divided(cells.keys[parts_that_lose(loss)[:_MOST_DIVIDED]])
        if divided is None:
            break
        cells, passes = divided, passes + 1
    message = (
        f"Method: cells of a table ({best.solution.method} on {len(best.cells.keys):,} cells), because the rows stay "
        f"in their engine; {passes} {'pass' if passes == 1 else 'passes'}, with bounds from all rows."
    )
    certificate = certificate_of(lower, upper, scale, message)
    whole = replace(best.solution, multipliers=multipliers, certificate=certificate, method="cells of a table")
    return replace(best, solution=whole)


def _solved(played: Game, ambiguity: Ambiguity, local: LocalGame) -> Solution | InfeasibleError:
    try:
        return solve(played, ambiguity, local)
    except InfeasibleError as refusal:
        return refusal


def certify(
    game: TableGame,
    cells: TableCells,
    ambiguity: Ambiguity,
    slack: SlackSet,
    multipliers: FloatArray,
    scale: float,
) -> tuple[float, FloatArray, int]:
    """Compute the dual value at multipliers on all rows, rounded down.

    Returns it, how far the mean of each cell is from its rows, and how many queries that took.
    Where one point is least for all rows of a cell its means say all; the rows of the other cells are summed up by the
    engine.
    """
    tilts = ambiguity.tests.tilts(multipliers)
    own = game.of_means(cells, tilts)
    phi = ambiguity.weights * own
    open_cells = game.hidden(cells, multipliers) > _SAME * scale
    queries = int(open_cells.any())
    if queries:
        keys = None if open_cells.mean() > _MOST_NAMED else cells.keys[open_cells]
        found, sums = _dual_sums(game, cells, multipliers, keys)
        order = np.argsort(cells.keys)
        phi[order[np.searchsorted(cells.keys, found, sorter=order)]] = sums / cells.total_weight
    loss = np.abs(ambiguity.weights * own - phi)
    linear = float(multipliers @ cells.linear_term)
    rounding = rounding_of_sums(cells, ambiguity) + (game.problem.n_actions + game.problem.dimension) * EPSILON
    reach = ambiguity.tests.reach(multipliers, ambiguity.weights, ambiguity.space.widths)
    margin = rounding * (game.size + 2 * reach + slack.support_size(multipliers)) + _SAME * scale
    margin += game.shortfall(cells, tilts, own)
    lower = rounded_down(fsum(phi) - linear - slack.support(multipliers) - margin, game.common)
    return lower, loss, queries


def rounding_of_sums(cells: TableCells, ambiguity: Ambiguity) -> float:
    """Relative rounding of the engine's sums, and of adding up cells.

    It adds up the rows of a cell in an order of its own: ``n`` numbers err by at most ``n`` epsilon of their sizes.
    """
    return (float(cells.counts.max()) + len(cells.keys) + ambiguity.tests.n_moments + 64) * EPSILON


def _dual_sums(
    game: TableGame, cells: TableCells, multipliers: FloatArray, keys: IntArray | None
) -> tuple[IntArray, FloatArray]:
    """Return cells and their ``sum w phi(s)`` over all rows; of some cells, or of all."""
    added, named = cells.tests.as_columns()
    frame = cells.partition.with_key(cells.rows, keys)
    frame = frame.with_columns(*added) if added else frame
    tilts = {f"s{j}": tilt for j, tilt in enumerate(named.tilts(multipliers))}
    frame = frame.with_columns(*(tilt.alias(name) for name, tilt in tilts.items()))
    phi = cells.rows.weigh(game.of_rows([nw.col(name) for name in tilts]))
    frame = frame.select("key", phi.alias("phi")).group_by("key").agg(nw.col("phi").sum())
    found = collect(frame, "certifying on all rows")
    keys = np.asarray(found["key"], dtype=np.int64)
    return keys[keys >= 0], numbers(found["phi"])[keys >= 0]


@frozen
class _Measured:
    """A problem with utilities measured from their mean at the lower corner of the space."""

    problem: DecisionProblem

    @cached_property
    def game(self) -> Game:
        """The problem in the user's units."""
        return Game.of_problem(self.problem)

    @property
    def _heights(self) -> FloatArray:
        return self.game.from_corner[0].offsets[0]

    @property
    def common(self) -> float:
        """What utilities are measured from."""
        return self.game.from_corner[1]

    @property
    def size(self) -> float:
        """Largest size of what is added up: the unit of rounding errors."""
        reach = np.abs(self.problem.rewards) @ self.problem.space.widths
        return float((np.abs(self._heights) + reach).max())

    def _least(self, directions: FloatArray) -> FloatArray:
        """``min_p p . x`` over the space, from its lower corner, for directions ``(..., d)``."""
        return self.game.from_corner[0].space.support_minimum(directions)

    def shortfall(self, cells: TableCells, tilts: FloatArray, values: FloatArray) -> float:
        """The most by which mixtures, as they are played in floats, miss the value of their local game."""
        return 0.0


@frozen
class BestPolicy(_Measured):
    """The problem itself: the adversary meets the best mixture at every row."""

    @cached_property
    def _local(self) -> LocalGame:
        """The tilted game that a policy plays."""
        return local_game(self.game)

    @cached_property
    def _vertices(self) -> tuple[FloatArray, FloatArray]:
        """Vertices ``(N, d)`` of ``epi(val)`` in the user's units, and ``val`` there."""
        game, local, corners = self.game, self._local, space_corners(self.problem.space)
        if isinstance(local, Envelope):
            points = local.points[:, None]
        elif isinstance(local, VertexGame):
            points = np.unique(local.points, axis=0)
        elif game.n_actions == 1 and corners is not None:
            points = game.space.bounds[0] + game.space.widths * corners
        else:
            raise InputError(
                f"this decision has too many vertices to be certified inside an engine ({game.n_actions} actions in "
                f"{game.dimension} coordinates). Fit on a sample in memory."
            )
        return points, game.utilities(points).max(axis=1)

    @property
    def _measured(self) -> tuple[FloatArray, FloatArray]:
        points, values = self._vertices
        return points - self.problem.space.bounds[0], values - self.common

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        """The game between mean utilities of cells."""
        return self.game, self._local

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        """``phi`` at the means of cells, ``(cells,)``."""
        points, heights = self._measured
        least: FloatArray = (tilts @ points.T + heights).min(axis=1)
        return least

    def of_rows(self, tilts: Exprs) -> Expr:
        """Write ``phi`` of a row."""
        scores = _scores(tilts, *self._measured)
        return nw.min_horizontal(*scores) if len(scores) > 1 else scores[0]  # Spark takes the least of several only

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        """The most by which a row can lie below its cell's linear piece, ``(cells,)``; infinite where unknown."""
        return _hidden(cells, multipliers, *self._measured)

    def shortfall(self, cells: TableCells, tilts: FloatArray, values: FloatArray) -> float:
        mixtures = self._local.mixtures(tilts)
        played = mixtures @ self._heights + self._least(mixtures @ self.problem.rewards + tilts)
        return max(0.0, float((values - played).max()))


@frozen
class GivenPolicy(_Measured):
    """One policy, whose probabilities are columns of the rows: the adversary meets what it plays.

    ``constant`` says that it plays the same at all rows of a cell.
    """

    columns: list[str]
    constant: bool

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        game = self.game.against(cells.mixtures(self.columns))
        return game, local_game(game)

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        mixtures = cells.mixtures(self.columns)
        least = self._least(mixtures @ self.problem.rewards + tilts)
        return mixtures @ self._heights + least

    def of_rows(self, tilts: Exprs) -> Expr:
        moved = [tilt + _mixed(self.columns, self.problem.rewards[:, j]) for j, tilt in enumerate(tilts)]
        return _mixed(self.columns, self._heights) + _least_point(moved, self.problem.space)

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        corners = space_corners(self.problem.space)
        if corners is None or not self.constant or self.problem.dimension > 3:
            return np.full(len(cells.keys), np.inf)
        points = self.problem.space.widths * corners
        return _hidden(cells, multipliers, points, cells.mixtures(self.columns) @ self.problem.rewards @ points.T)


#: What solving and certifying on a table ask of a game.
TableGame = BestPolicy | GivenPolicy


def _hidden(cells: TableCells, multipliers: FloatArray, points: FloatArray, heights: FloatArray) -> FloatArray:
    """The most by which any row of a cell can lie below its cell's linear piece.

    Infinite where unknown: with many coordinates, and where tests are not affine in the forecast.
    Where one point is least at all corners of a cell, it is least for all its rows: each score minus ``phi`` is convex
    in the tilt, and the tilt affine in the forecast.
    """
    names, d, worst = cells.rows.coordinates, cells.rows.space.dimension, np.zeros((len(cells.keys), len(points)))
    if not set(cells.tests.numbers) <= set(names) or d > 3:
        return np.full(len(worst), np.inf)
    labels, lower, upper = cells.partition.decode(cells.keys)
    for choice in product((False, True), repeat=d):
        corner = dict(zip(names, np.where(choice, upper, lower).T, strict=True))
        tests = cells.tests.assemble(labels, corner)
        scores = tests.tilts(multipliers) @ points.T + heights
        np.maximum(worst, scores - scores.min(axis=1, keepdims=True), out=worst)
    return worst.min(axis=1)


def _mixed(columns: list[str], numbers: FloatArray) -> Expr:
    """Write the mean of a number per action under what is played."""
    return linear([nw.col(name) for name in columns], numbers.tolist())


def _least_point(directions: Exprs, space: Space) -> Expr:
    """Write ``min_p p . x`` over a space, from its lower corner."""
    if space.is_simplex:
        return nw.min_horizontal(*directions)
    return linear([nw.min_horizontal(direction, nw.lit(0.0)) for direction in directions], space.widths.tolist())


def _scores(tilts: Exprs, points: FloatArray, heights: FloatArray) -> Exprs:
    """Write ``heights_j + s . points_j`` for every point."""
    return [linear(tilts, point, height) for point, height in zip(points.tolist(), heights.tolist(), strict=True)]
