"""The worst world for given policies on a lazy table, certified on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.ambiguity import Slack
from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.decisions import DecisionCalibrated
from prudent.policies.from_tables import allowed_worlds
from prudent.policies.played_columns import PlayedColumns, played_columns
from prudent.policies.table_cells import TableCells, gather_table
from prudent.policies.table_games import BestPolicy, GivenPolicy
from prudent.policies.table_solver import TableSolution, Worlds, solve_table
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Status
from prudent.tables.columns import Columns
from prudent.tables.quantiles import resolve_in_table
from prudent.tables.rows import Rows, place_rows
from prudent.tables.utilities import TableUtilities, table_utilities

__all__ = ["TableSample", "TableWorld", "gather_table_sample"]


@dataclass(frozen=True, eq=False)
class TableWorld:
    """A world on cells of a table, what it proves, and what each policy gets in it."""

    beliefs: FloatArray
    certificate: Certificate
    utilities: FloatArray


@dataclass(frozen=True, eq=False)
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
        weights = cells.sums.weights / cells.sums.total_weight
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
