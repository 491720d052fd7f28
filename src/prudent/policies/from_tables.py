"""Robust policies on lazy tables: fitted there, and given policies in their worst world, certified on all rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.arrays import EPSILON, FloatArray, frozen
from prudent.cases.ambiguity import build_ambiguity
from prudent.cases.engine_moments import measure_table
from prudent.cases.engine_quantiles import resolve_in_table
from prudent.cases.engine_rows import Rows, place_rows, some_rows
from prudent.cases.engine_utilities import TableUtilities, table_utilities
from prudent.cases.scan import Columns
from prudent.errors import InputError
from prudent.guarantees import DecisionCalibrated, Guarantee
from prudent.policies.played_columns import PlayedColumns, played_columns
from prudent.policies.robust import PureRobustPolicy, TiltedPolicy
from prudent.policies.table_cells import TableCells, gather_table
from prudent.policies.table_games import BestPolicy, GivenPolicy
from prudent.policies.table_solver import TableSolution, Worlds, rounding_of_sums, solve_pure_table, solve_table
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate, Game, Status, solve


def fit_table(policy: TiltedPolicy, columns: Columns, confidence: float) -> None:
    """Find multipliers for the rows of a table, with bounds that hold for all of them, and let a policy keep them."""
    problem, guarantee, allowance = policy.problem, policy._specified(), Slack.read(policy.slack)
    rows = place_rows(columns, problem.space)
    if guarantee.full:
        _fit_fully_calibrated(policy, rows, allowance)
        return
    resolved = resolve_in_table(guarantee, rows)
    cells = gather_table(rows, resolved)
    worlds = allowed_worlds(problem, resolved, cells, allowance, confidence)
    found = solve_table(BestPolicy(problem), cells, worlds)
    if isinstance(policy, PureRobustPolicy):
        found = solve_pure_table(problem, found, worlds)
    seen = some_rows(cells.rows)
    policy._keep(resolved, found.ambiguity, worlds.slack, found.solution, seen, None, cells.n_snapped)


def allowed_worlds(
    problem: DecisionProblem, guarantee: Guarantee, cells: TableCells, slack: Any, confidence: float
) -> Worlds:
    """Put slack around a resolved guarantee, measured on the table's outcomes where it is to be."""
    allowance, names, columns = Slack.read(slack), cells.mean_tests.without_rows(), cells.rows.columns
    measured = None
    if allowance.needs_outcomes:
        grouped = columns.group is not None
        found = measure_table(guarantee, place_rows(columns, problem.space, outcomes=True, groups=grouped), confidence)
        measured = found.estimates.estimates
        if found.n_rows != int(cells.counts.sum()):
            raise InputError("slack that is measured needs the outcome of every row; filter the table first.")
        if allowance.audited:
            allowance = found.estimates.slack(allowance, confidence)
    plug_in = guarantee.plug_in_multipliers(problem, cells.means[:1])
    return Worlds(allowance.resolve(names, measured), allowance.settle(names, measured), plug_in)


def _fit_fully_calibrated(policy: TiltedPolicy, rows: Rows, allowance: Slack) -> None:
    """The one world is the forecast: utilities are linear where one action is best, so regions say all."""
    problem, guarantee = policy.problem, policy._specified()
    cells = gather_table(rows, DecisionCalibrated((problem,)))
    empty = build_ambiguity(problem, guarantee, cells.means, cells.weights / cells.total_weight, allowance)
    solution = solve(Game.of_problem(problem), empty)
    found = solution.certificate
    far = float((np.abs(problem.rewards) @ np.abs(problem.space.bounds).max(axis=0)).max())
    margin = rounding_of_sums(cells, empty) * BestPolicy(problem).size + 2 * EPSILON * far  # means are rounded, too
    certificate = replace(found, lower=found.lower - margin, upper=found.upper + margin)
    solution = replace(solution, certificate=certificate)
    policy._keep(guarantee, empty, empty.slack, solution, some_rows(cells.rows), None, cells.n_snapped)


@frozen
class TableWorld:
    """A world on cells of a table, what it proves, and what each policy gets in it."""

    beliefs: FloatArray
    certificate: Certificate
    utilities: FloatArray


@frozen
class TableSample:
    """Policies on a table with the worlds that a guarantee allows there."""

    problem: DecisionProblem
    guarantee: Guarantee
    played: PlayedColumns
    rows: Rows
    cells: TableCells
    worlds: Worlds | None  # None where full calibration leaves one world

    def worst(self, number: int) -> TableWorld:
        """Find the worst world for a policy."""
        if self.worlds is None:
            return self._as_forecast(self.utilities(measured=False).nominal[number])
        apart = self.played.apart(number)
        cells = gather_table(self.rows, self.guarantee, apart) if apart else self.cells
        constant = self.played.fixed[number] or self.played.certain[number]
        game = GivenPolicy(self.problem, self.played.names[number], constant)
        return self._world(solve_table(game, cells, self.worlds))

    def optimum(self) -> TableWorld:
        """Find the worst world for the best policy."""
        if self.worlds is None:
            return self._as_forecast(self.utilities(measured=False).best)
        return self._world(solve_table(BestPolicy(self.problem), self.cells, self.worlds))

    def utilities(self, *, measured: bool) -> TableUtilities:
        """Add up what every policy gets if forecasts are right and, where asked for, on the outcomes."""
        rows = self.rows
        if measured:
            rows = place_rows(rows.columns, rows.space, outcomes=True, played=rows.played)
        return table_utilities(rows, self.problem, self.played.names)

    def _world(self, found: TableSolution) -> TableWorld:
        beliefs, cells = found.solution.beliefs, found.cells
        weights = cells.weights / cells.total_weight
        at_beliefs = self.problem.linear_utility(beliefs)
        utilities = [weights @ (cells.mixtures(names) * at_beliefs).sum(axis=1) for names in self.played.names]
        return TableWorld(beliefs, found.solution.certificate, np.array(utilities))

    def _as_forecast(self, value: float) -> TableWorld:
        message = "Method: full, because full calibration leaves one world, the forecasts themselves."
        certificate = Certificate(value, value, Status.OPTIMAL, message)
        return TableWorld(self.cells.means, certificate, self.utilities(measured=False).nominal)


def gather_table_sample(
    policies: Sequence[Any],
    columns: Columns,
    problem: DecisionProblem,
    guarantee: Guarantee,
    slack: Any,
    confidence: float,
) -> TableSample:
    """Gather the rows of a table into cells, with what policies play there."""
    played = played_columns(policies, columns, problem)
    rows = place_rows(played.columns, problem.space, played=played.expressions)
    if guarantee.full:
        if Slack.read(slack) != Slack(0.0):
            raise InputError("slack has no meaning for FullyCalibrated; use a finite guarantee or slack=0.")
        cells = gather_table(rows, DecisionCalibrated((problem,)))
        return TableSample(problem, guarantee, played, cells.rows, cells, None)
    resolved = resolve_in_table(guarantee, rows)
    cells = gather_table(rows, resolved)
    worlds = allowed_worlds(problem, resolved, cells, slack, confidence)
    return TableSample(problem, resolved, played, cells.rows, cells, worlds)
