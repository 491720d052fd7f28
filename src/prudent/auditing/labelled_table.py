"""Rows of a lazy table with their outcomes: measured, fitted and scored in the engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.ambiguity import Slack, SlackSet
from prudent.arrays import FloatArray
from prudent.auditing.evidence import Evidence, Measurement, Utilities
from prudent.auditing.labelled import outcome_space, read_labelled
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.policies import PlugInPolicy, RobustPolicy
from prudent.policies.from_tables import allowed_worlds
from prudent.policies.played_columns import played_columns
from prudent.policies.table_cells import TableCells, gather_table
from prudent.policies.table_games import BestPolicy, GivenPolicy
from prudent.policies.table_solver import Worlds, solve_table
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate
from prudent.spaces import Space
from prudent.tables.columns import Columns
from prudent.tables.moment_sums import measure_table
from prudent.tables.outcomes import with_known_outcomes
from prudent.tables.quantiles import resolve_in_table
from prudent.tables.rows import Rows, n_without_weight, place_rows
from prudent.tables.utilities import table_utilities

__all__ = ["LabelledTable", "read_evidence"]


def read_evidence(
    forecasts: Any,
    outcomes: Any,
    *,
    problem: DecisionProblem | None,
    space: Space | None,
    sample_weight: Any,
    groups: Any,
    missing: str,
) -> Evidence:
    """Read rows in memory, or take a lazy table, whose columns say everything else."""
    if not isinstance(forecasts, Columns):
        return read_labelled(
            forecasts,
            outcomes,
            problem=problem,
            space=space,
            sample_weight=sample_weight,
            groups=groups,
            missing=missing,
        )
    given = {"outcomes": outcomes, "sample_weight": sample_weight, "groups": groups}
    twice = [name for name, value in given.items() if value is not None]
    if twice or missing != "refuse":
        what = ", ".join(twice) or "missing"
        raise InputError(f"{what} of a table: say it in prudent.columns(), and pass None here.")
    return LabelledTable(forecasts, outcome_space(len(forecasts.forecasts), problem, space))


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A lazy table with outcomes."""

    columns: Columns
    space: Space

    @cached_property
    def _rows(self) -> Rows:
        return place_rows(self.columns, self.space, outcomes=True, groups=self.columns.group is not None)

    @cached_property
    def _known(self) -> Columns:
        """Without the rows that an audit leaves out, so that everything speaks of the same rows."""
        return with_known_outcomes(self.columns, self.space)

    @property
    def some_forecasts(self) -> FloatArray:
        """One point of the space."""
        return self.space.support_minimizer(np.ones((1, self.space.dimension)))

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        return resolve_in_table(guarantee, self._rows)

    def measure(self, guarantee: Guarantee, confidence: float, method: str) -> Measurement:
        """Measure the moments of a resolved guarantee."""
        found = measure_table(guarantee, self._rows, confidence, method)
        dropped = found.n_left_out
        if dropped and self.columns.weight is not None:
            dropped -= n_without_weight(self._rows)
        return Measurement(found.estimates, found.n_rows, dropped)

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

    def stakes(self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack) -> TableStakes:
        """Look at one decision under a resolved guarantee."""
        played = played_columns([PlugInPolicy(problem)], self._known, problem)
        rows = place_rows(played.columns, self.space, played=played.expressions)
        cells = gather_table(rows, guarantee, played.apart(0))
        return TableStakes(problem, guarantee, cells, played.names[0], slack)


@dataclass(frozen=True, eq=False)
class TableStakes:
    """One decision in the worlds that a guarantee allows on a table; cells tell best responses apart."""

    problem: DecisionProblem
    guarantee: Guarantee
    cells: TableCells
    played: list[str]
    allowance: Slack

    @cached_property
    def _worlds(self) -> Worlds:
        return self._with(self.allowance)

    def _with(self, slack: Slack) -> Worlds:
        confidence = 0.95  # of slack that is to be measured, which this is not
        return allowed_worlds(self.problem, self.guarantee, self.cells, slack, confidence)

    @property
    def slack(self) -> SlackSet:
        """The allowed moments."""
        return self._worlds.slack

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which scalar tests are not zero everywhere, ``(k,)``."""
        means = self.cells.tests.assemble(self.cells.labels, self.cells.sums.mean_numbers(self.cells.tests))
        seen: NDArray[np.bool_] = np.abs(means.values).max(axis=0) > 0
        return seen

    def best_responding(self) -> Certificate:
        """What best responding guarantees."""
        game = GivenPolicy(self.problem, self.played, constant=True)
        return solve_table(game, self.cells, self._worlds).solution.certificate

    def best(self, slack: Slack) -> Certificate:
        """What the best policy guarantees, with other slack."""
        return solve_table(BestPolicy(self.problem), self.cells, self._with(slack)).solution.certificate
