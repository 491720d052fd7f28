"""Solve on cells of a table, refined until the bounds computed on all rows meet (docs/theory.md, section 6)."""

from dataclasses import replace
from math import fsum

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen
from prudent.arrays.lazy_narwhals import nw
from prudent.cases.ambiguity import Ambiguity
from prudent.cases.engine import collect, numbers
from prudent.cases.table_cells import TableCells
from prudent.cases.table_rows import TableAmbiguity
from prudent.errors import InfeasibleError
from prudent.problem import DecisionProblem
from prudent.slack import SlackSet
from prudent.solvers.bounds import rounded_down
from prudent.solvers.game import Game
from prudent.solvers.local_games import LocalGame
from prudent.solvers.row_clusters import parts_that_lose
from prudent.solvers.solution import Certificate, Solution, Status
from prudent.solvers.solve import TOLERANCE, certificate_of, solve
from prudent.solvers.table_games import BestPolicy, TableGame

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
