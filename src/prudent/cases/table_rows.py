"""Rows of a lazy table on an outcome space: measured and gathered into cells in their engine."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.cases.cases import Cases
from prudent.cases.engine import collect
from prudent.cases.engine_rows import Rows, stacked, sums_of_all
from prudent.cases.engine_sums import measure_table
from prudent.cases.intervals import Measurement, MomentEstimates
from prudent.cases.table_cells import TableCells, gather_table
from prudent.errors import InputError
from prudent.guarantees import Guarantee
from prudent.guarantees.base import parts_of, symbolic_tests
from prudent.guarantees.elementary import Nothing
from prudent.guarantees.engine_tests import EngineLabel, context_column, engine_tests
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.slack import Slack, SlackSet

_MOST_IN_MEMORY = 5_000_000


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
    measured : MomentEstimates or None
        Where the slack was measured.
    """

    guarantee: Guarantee
    cells: TableCells
    slack: SlackSet
    allowance: Slack
    plug_in_multipliers: FloatArray | None = None
    measured: MomentEstimates | None = None

    @cached_property
    def tests(self) -> EvaluatedTests:
        """Means of the tests on cells."""
        return self.cells.mean_tests

    @property
    def n_snapped(self) -> int:
        """Rows moved onto the space by at most 1e-6 of its width."""
        return self.cells.n_snapped

    def telling_apart(self, labels: tuple[EngineLabel, ...]) -> TableAmbiguity:
        """Gather the rows anew into cells that tell some labels apart."""
        return replace(self, cells=gather_table(self.cells.rows, self.guarantee, labels)) if labels else self


@frozen
class TableRows(Rows):
    """Rows of a table that take part, and what is asked about them."""

    @property
    def placed(self) -> Rows:
        """Forecasts on the space, without those whose outcome is missing if such rows are left out."""
        return self.labelled if self.cases.outcomes and self.cases.missing == "drop" else self

    @cached_property
    def labelled(self) -> Rows:
        """Forecasts and outcomes on the space."""
        return replace(self, measured=True)

    @property
    def n_units(self) -> int:
        """Number of rows; periods are not counted."""
        return len(self.cases)

    def some(self) -> FloatArray:
        """Fetch a few forecasts, to tell later whether rows are those of a fit."""
        rows = self.placed
        return stacked(collect(rows.used.select(*rows.coordinates).head(1_000), "reading a few rows"), rows.coordinates)

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        in_memory = any(getattr(part, "of_sample", False) for part in parts_of(guarantee))
        if in_memory or guarantee.context_columns:  # quantiles and groups are those of memory
            return self.in_memory().on(self.space).resolve(guarantee)
        symbolic_tests(guarantee, self.space)  # refuses what an engine cannot evaluate
        return guarantee.resolve(np.zeros((0, self.space.dimension)), np.zeros(0), self.space)

    def layout(self, guarantee: Guarantee) -> EvaluatedTests:
        """Names and units of the tests of a resolved guarantee, without rows."""
        return symbolic_tests(guarantee, self.space).layout

    def measure(self, guarantee: Guarantee, confidence: float) -> Measurement:
        """Measure the moments of a resolved guarantee."""
        return measure_table(guarantee, self.labelled, confidence)

    def in_memory(self) -> Cases:
        """Read the rows that take part, with outcomes where there are any, weights, periods and context."""
        count, rows = len(self.cases), (self.labelled if self.cases.has_outcomes else self.placed).carefully()
        if count > _MOST_IN_MEMORY:
            raise InputError(
                f"this reads rows into memory, at most {_MOST_IN_MEMORY:,}; the table has {count:,}. Take a sample of "
                f"its rows."
            )
        sums_of_all(rows, engine_tests(Nothing(), self.space), {}, "counting rows")  # refuses what cannot be used
        outcomes = [f"y{j}" for j in range(self.space.dimension)] if self.cases.has_outcomes else []
        others = [name for name, there in (("w", rows.weighted), ("g", rows.grouped)) if there]
        known = {name: context_column(name) for name in self.cases.context}
        found = collect(rows.used.select(*rows.coordinates, *outcomes, *others, *known.values()), "reading rows")
        tables = [stacked(found, names) for names in (rows.coordinates, outcomes) if names]
        context = {name: found[column] for name, column in known.items()}
        return Cases(*tables, weights=found.get("w"), periods=found.get("g"), context=context)

    def worlds(
        self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack, confidence: float = 0.95
    ) -> TableAmbiguity:
        """Build the worlds that a resolved guarantee allows; slack that is measured has the given confidence."""
        cells = gather_table(self.placed, guarantee)
        names, measured, audited = cells.tests.stated.layout, None, None
        if slack.needs_outcomes:
            found = self.measure(guarantee, confidence)
            measured = found.estimates.estimates
            if found.n_rows != int(cells.counts.sum()):
                raise InputError("slack that is measured needs the outcome of every row; filter the table first.")
            audited = found.estimates if slack.audited else None
            slack = found.estimates.slack() if slack.audited else slack
        plug_in, resolved = guarantee.plug_in_multipliers(problem), slack.resolve(names, measured)
        settled = slack.settle(names, measured)
        return TableAmbiguity(guarantee, cells, resolved, settled, plug_in, measured=audited)
