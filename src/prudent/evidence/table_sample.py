"""Rows of a lazy table with their outcomes: measured, fitted and scored in the engine."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from prudent.arrays import BoolArray, frozen
from prudent.cases.engine_moments import measure_table
from prudent.cases.engine_quantiles import resolve_in_table
from prudent.cases.engine_rows import Rows, n_without_weight, place_rows, with_known_outcomes
from prudent.cases.engine_utilities import table_utilities
from prudent.cases.moment_estimates import Measurement
from prudent.cases.scan import Columns
from prudent.errors import InputError
from prudent.evidence.sample import AuditSample, Utilities, outcome_space, read_rows
from prudent.guarantees import Guarantee
from prudent.policies import PlugInPolicy, RobustPolicy, allowed_worlds
from prudent.policies.played_columns import played_columns
from prudent.policies.table_cells import TableCells, gather_table
from prudent.policies.table_games import BestPolicy, GivenPolicy
from prudent.policies.table_solver import solve_table
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate
from prudent.spaces import Space


def read_sample(
    forecasts: Any,
    outcomes: Any,
    *,
    problem: DecisionProblem | None,
    space: Space | None = None,
    **options: Any,
) -> AuditSample | AuditTable:
    """Read rows in memory (options as in :func:`~prudent.evidence.sample.read_rows`), or take a lazy table."""
    if not isinstance(forecasts, Columns):
        return read_rows(forecasts, outcomes, problem=problem, space=space, **options)
    given = {"outcomes": outcomes, **options}
    missing = given.pop("missing")
    twice = [name for name, value in given.items() if value is not None]
    if twice or missing != "refuse":
        what = ", ".join(twice) or "missing"
        raise InputError(f"{what} of a table: say it in prudent.columns(), and pass None here.")
    return AuditTable(forecasts, outcome_space(len(forecasts.forecasts), problem, space))


@frozen
class AuditTable:
    """A lazy table with outcomes."""

    columns: Columns
    space: Space

    @cached_property
    def _rows(self) -> Rows:
        return place_rows(self.columns, self.space, outcomes=True, groups=self.columns.group is not None)

    @cached_property
    def _known(self) -> Columns:
        """Without the rows that an audit leaves out: everything is computed on the same rows."""
        return with_known_outcomes(self.columns, self.space)

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        return resolve_in_table(guarantee, self._rows)

    def measure(self, guarantee: Guarantee, confidence: float, method: str) -> Measurement:
        """Measure the moments of a resolved guarantee."""
        found = measure_table(guarantee, self._rows, confidence, method)
        if found.n_dropped and self.columns.weight is not None:
            return replace(found, n_dropped=found.n_dropped - n_without_weight(self._rows))
        return found

    def fit(self, policy: RobustPolicy) -> RobustPolicy:
        """Fit a policy whose slack is given in numbers."""
        return policy.fit(self._known)

    def utilities(self, policy: RobustPolicy) -> Utilities:
        """Add up what a policy gets."""
        problem = policy._problem
        played = played_columns([policy], self._known, problem)
        rows = place_rows(played.columns, self.space, outcomes=True, played=played.expressions)
        found = table_utilities(rows, problem, played.names)
        realised = np.zeros(1) if found.realised is None else found.realised
        return Utilities(float(found.nominal[0]), float(realised[0]), found.best)

    def decision(self, problem: DecisionProblem, guarantee: Guarantee) -> DecisionOnTable:
        """Look at one decision under a resolved guarantee."""
        played = played_columns([PlugInPolicy(problem)], self._known, problem)
        rows = place_rows(played.columns, self.space, played=played.expressions)
        cells = gather_table(rows, guarantee, played.apart(0))
        return DecisionOnTable(problem, guarantee, cells, played.names[0])


@frozen
class DecisionOnTable:
    """One decision in the worlds that a guarantee allows on a table; cells tell best responses apart."""

    problem: DecisionProblem
    guarantee: Guarantee
    cells: TableCells
    played: list[str]

    @property
    def seen(self) -> BoolArray:
        """Which scalar tests are not zero everywhere, ``(k,)``."""
        return np.abs(self.cells.mean_tests.values).max(axis=0) > 0

    def best_responding(self, slack: Slack) -> Certificate:
        """Certify what best responding guarantees, with slack in numbers."""
        return self._solve(GivenPolicy(self.problem, self.played, constant=True), slack)

    def best(self, slack: Slack) -> Certificate:
        """Certify what the best policy guarantees, with slack in numbers."""
        return self._solve(BestPolicy(self.problem), slack)

    def _solve(self, game: BestPolicy | GivenPolicy, slack: Slack) -> Certificate:
        confidence = 0.95  # of slack that is to be measured, which this is not
        worlds = allowed_worlds(self.problem, self.guarantee, self.cells, slack, confidence)
        return solve_table(game, self.cells, worlds).solution.certificate
