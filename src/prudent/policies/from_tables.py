"""Fit on a lazy table: what is measured, what is allowed, and what a policy keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.ambiguity import Ambiguity, Slack, SlackSet, build_ambiguity
from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.decisions import DecisionCalibrated
from prudent.policies.table_cells import TableCells, gather_table
from prudent.policies.table_games import BestPolicy
from prudent.policies.table_pure import solve_pure_table
from prudent.policies.table_solver import Worlds, rounding_of_sums, solve_table
from prudent.problem import DecisionProblem
from prudent.solvers import Game, Solution, solve
from prudent.tables.columns import Columns
from prudent.tables.moment_sums import measure_table
from prudent.tables.quantiles import resolve_in_table
from prudent.tables.rows import Rows, place_rows, some_rows

__all__ = ["FittedTable", "allowed_worlds", "fit_table"]

_EPSILON = float(np.finfo(np.float64).eps)


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
    problem: DecisionProblem, guarantee: Guarantee, columns: Columns, slack: Any, confidence: float, *, pure: bool
) -> FittedTable:
    """Find multipliers for the rows of a table, with bounds that hold for all of them; of a ``pure`` rule if asked."""
    allowance = Slack.read(slack)
    rows = place_rows(columns, problem.space)
    if guarantee.full:
        return _fully_calibrated(problem, guarantee, rows, allowance)
    resolved = resolve_in_table(guarantee, rows)
    cells = gather_table(rows, resolved)
    worlds = allowed_worlds(problem, resolved, cells, allowance, confidence)
    found = solve_table(BestPolicy(problem), cells, worlds)
    if pure:
        found = solve_pure_table(problem, found, worlds)
    return FittedTable(resolved, found.ambiguity, worlds.slack, found.solution, cells.n_snapped, some_rows(cells.rows))


def allowed_worlds(
    problem: DecisionProblem, guarantee: Guarantee, cells: TableCells, slack: Any, confidence: float
) -> Worlds:
    """Put slack around a resolved guarantee, measured on the table's outcomes where it is to be."""
    allowance, names, columns = Slack.read(slack), cells.names, cells.rows.columns
    measured = None
    if allowance.needs_outcomes:
        grouped = columns.group is not None
        found = measure_table(guarantee, place_rows(columns, problem.space, outcomes=True, groups=grouped), confidence)
        measured = found.estimates.estimates
        if found.n_rows != int(cells.sums.counts.sum()):
            raise InputError("slack that is measured needs the outcome of every row; filter the table first.")
        if allowance.audited:
            allowance = allowance.measure(found.estimates, confidence)
    plug_in = guarantee.plug_in_multipliers(problem, cells.means[:1])
    return Worlds(allowance.resolve(names, measured), allowance.settle(names, measured), plug_in)


def _fully_calibrated(problem: DecisionProblem, guarantee: Guarantee, rows: Rows, allowance: Slack) -> FittedTable:
    """The one world is the forecast: utilities are linear where one action is best, so regions say all."""
    cells = gather_table(rows, DecisionCalibrated((problem,)))
    empty = build_ambiguity(problem, guarantee, cells.means, cells.sums.weights / cells.sums.total_weight, allowance)
    solution = solve(Game.of_problem(problem), empty)
    found = solution.certificate
    far = float((np.abs(problem.rewards) @ np.abs(problem.space.bounds).max(axis=0)).max())
    margin = rounding_of_sums(cells, empty) * BestPolicy(problem).size + 2 * _EPSILON * far  # means are rounded, too
    certificate = replace(found, lower=found.lower - margin, upper=found.upper + margin)
    solution = replace(solution, certificate=certificate)
    return FittedTable(guarantee, empty, empty.slack, solution, cells.n_snapped, some_rows(cells.rows))
