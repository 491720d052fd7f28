"""Rows of a lazy table on an outcome space: measured and gathered into cells in their engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

from prudent.arrays import FloatArray, frozen
from prudent.arrays.lazy_narwhals import Expr
from prudent.cases.engine_moments import measure_table
from prudent.cases.engine_quantiles import resolve_in_table
from prudent.cases.engine_rows import Rows, n_without_weight, place_rows, some_rows, with_known_outcomes
from prudent.cases.moment_estimates import Measurement
from prudent.cases.scan import TableCases
from prudent.cases.table_cells import TableCells, gather_table
from prudent.errors import InputError
from prudent.guarantees import DecisionCalibrated, Guarantee, Nothing
from prudent.guarantees.engine_tests import EngineLabel
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.slack import Slack, SlackSet
from prudent.spaces import Space


@frozen
class TableAmbiguity:
    """All worlds that a guarantee allows on the rows of a table.

    Attributes
    ----------
    guarantee : Guarantee
    cells : TableCells
    slack : SlackSet
    allowance : Slack
        The slack set in the units that users give it in, all numbers.
    plug_in_multipliers : array of shape (K,) or None
        Multipliers that make best responding optimal, where the tests contain them.
    full : bool
        True if the only world is the forecast itself; cells then tell best responses apart.
    """

    guarantee: Guarantee
    cells: TableCells
    slack: SlackSet
    allowance: Slack
    plug_in_multipliers: FloatArray | None = None
    full: bool = False

    @cached_property
    def tests(self) -> EvaluatedTests:
        """Means of the tests on cells; none under full calibration."""
        return Nothing().evaluate(self.cells.means, self.cells.rows.space) if self.full else self.cells.mean_tests

    @property
    def n_snapped(self) -> int:
        """Rows moved onto the space by at most 1e-6 of its width."""
        return self.cells.n_snapped

    def telling_apart(self, labels: tuple[EngineLabel, ...]) -> TableAmbiguity:
        """Gather the rows anew into cells that tell some labels apart."""
        return replace(self, cells=gather_table(self.cells.rows, self.guarantee, labels)) if labels else self


@frozen
class TableRows:
    """Rows of a table that take part.

    Attributes
    ----------
    cases : TableCases
    space : Box or Simplex
    played : mapping
        Columns of what policies play, as in :class:`~prudent.cases.engine_rows.Rows`.
    """

    cases: TableCases
    space: Space
    played: Mapping[str, Expr | None] = field(default_factory=dict)

    @cached_property
    def known(self) -> TableCases:
        """Without the rows that are left out because their outcome is missing."""
        return with_known_outcomes(self.cases, self.space) if self.cases.outcomes else self.cases

    @cached_property
    def placed(self) -> Rows:
        """Forecasts on the space."""
        return place_rows(self.known, self.space, played=self.played)

    @cached_property
    def labelled(self) -> Rows:
        """Forecasts and outcomes on the space; rows without an outcome are counted."""
        grouped = self.cases.periods is not None
        return place_rows(self.cases, self.space, outcomes=True, groups=grouped, played=self.played)

    def some(self) -> FloatArray:
        """Fetch a few forecasts, to tell later whether rows are those of a fit."""
        return some_rows(self.placed)

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        return guarantee if guarantee.full else resolve_in_table(guarantee, self.placed)

    def measure(self, guarantee: Guarantee, confidence: float, method: str = "auto") -> Measurement:
        """Measure the moments of a resolved guarantee."""
        found = measure_table(guarantee, self.labelled, confidence, method)
        if found.n_dropped and self.cases.weights is not None:
            return replace(found, n_dropped=found.n_dropped - n_without_weight(self.labelled))
        return found

    def worlds(
        self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack, confidence: float = 0.95
    ) -> TableAmbiguity:
        """Build the worlds that a resolved guarantee allows; slack that is measured has the given confidence."""
        if guarantee.full:
            if slack != Slack(0.0):
                raise InputError("slack has no meaning for FullyCalibrated; use a finite guarantee or slack=0.")
            cells = gather_table(self.placed, DecisionCalibrated((problem,)))
            empty = slack.resolve(Nothing().evaluate(cells.means[:1], self.space), None)
            return TableAmbiguity(guarantee, cells, empty, slack, full=True)
        cells = gather_table(self.placed, guarantee)
        names, measured = cells.mean_tests.without_rows(), None
        if slack.needs_outcomes:
            found = self.measure(guarantee, confidence)
            measured = found.estimates.estimates
            if found.n_rows != int(cells.counts.sum()):
                raise InputError("slack that is measured needs the outcome of every row; filter the table first.")
            slack = found.estimates.slack() if slack.audited else slack
        plug_in = guarantee.plug_in_multipliers(problem)
        return TableAmbiguity(guarantee, cells, slack.resolve(names, measured), slack.settle(names, measured), plug_in)
