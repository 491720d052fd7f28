"""Rows of a lazy table on an outcome space: measured and gathered into cells in their engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, frozen, require_values
from prudent.arrays.lazy_narwhals import Expr, Frame, nw, where
from prudent.cases.cases import Cases
from prudent.cases.engine import collect, numbers
from prudent.cases.engine_rows import (
    Rows,
    kinds_of,
    outcome_columns,
    place_rows,
    refuse_broken_rows,
    stacked,
    sums_by_key,
)
from prudent.cases.engine_sums import measure_table
from prudent.cases.intervals import Measurement, MomentEstimates
from prudent.cases.scan import TableCases
from prudent.cases.table_cells import TableCells, gather_table
from prudent.errors import InputError
from prudent.guarantees import Bins, DecisionCalibrated, Guarantee, Nothing, Within
from prudent.guarantees.base import And, symbolic_tests
from prudent.guarantees.engine_tests import (
    EngineLabel,
    Narwhals,
    context_column,
    engine_tests,
    in_group,
    number_of_cuts,
)
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import Group
from prudent.guarantees.within import Values
from prudent.problem import DecisionProblem
from prudent.slack import Slack, SlackSet
from prudent.spaces import Space

_MOST_IN_MEMORY = 5_000_000
_PARTS = 4096  # of the space, where a quantile is looked for


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
    measured : MomentEstimates or None
        Where the slack was measured.
    """

    guarantee: Guarantee
    cells: TableCells
    slack: SlackSet
    allowance: Slack
    plug_in_multipliers: FloatArray | None = None
    full: bool = False
    measured: MomentEstimates | None = None

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
    def placed(self) -> Rows:
        """Forecasts on the space, without those whose outcome is missing if such rows are left out."""
        if self.cases.outcomes and self.cases.missing == "drop":
            return self.labelled
        return place_rows(self.cases, self.space, played=self.played)

    @cached_property
    def labelled(self) -> Rows:
        """Forecasts and outcomes on the space."""
        return place_rows(self.cases, self.space, outcomes=True, played=self.played)

    @property
    def n_units(self) -> int:
        """Number of rows; periods are not counted."""
        return len(self.cases)

    def some(self) -> FloatArray:
        """Fetch a few forecasts, to tell later whether rows are those of a fit."""
        rows = self.placed
        return stacked(collect(rows.used.select(*rows.coordinates).head(1_000), "reading a few rows"), rows.coordinates)

    def groups(self, guarantee: Within, _: tuple[str, ...]) -> Iterator[tuple[int, int, float, TableRows, slice]]:
        """Rows of every group that has some: its place, their number and share of the weight, and they."""
        group = Group(guarantee.columns, tuple(guarantee.known))
        tests = engine_tests(guarantee, self.space)

        def query(rows: Rows) -> tuple[Frame, dict[str, Expr]]:
            return rows.frame.with_columns(kinds_of(tests, Narwhals()(group)).cast(nw.Int64).alias("key")), {}

        found = sums_by_key(self.placed, tests, query, "counting groups")
        conditions, total = [*group.conditions()], fsum(found.sums["w"])
        for place, count, weight in zip(found.keys.tolist(), found.counts.tolist(), found.sums["w"], strict=True):
            own = self.cases.frame.filter(in_group(conditions[place]))
            yield place, count, weight / total, replace(self, cases=replace(self.cases, frame=own)), slice(None)

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        return guarantee if guarantee.full else _resolved(guarantee, self.placed)

    def layout(self, guarantee: Guarantee) -> EvaluatedTests:
        """Names and units of the tests of a resolved guarantee, without rows."""
        return symbolic_tests(guarantee, self.space).layout

    def measure(self, guarantee: Guarantee, confidence: float) -> Measurement:
        """Measure the moments of a resolved guarantee."""
        return measure_table(guarantee, self.labelled, confidence)

    def in_memory(self) -> Cases:
        """Read the rows that take part, with outcomes where there are any, weights, periods and context."""
        count, rows = len(self.cases), self.labelled if self.cases.has_outcomes else self.placed
        if count > _MOST_IN_MEMORY:
            raise InputError(
                f"this reads rows into memory, at most {_MOST_IN_MEMORY:,}; the table has {count:,}. Take a sample of "
                f"its rows."
            )
        refuse_broken_rows(rows)
        outcomes = [f"y{j}" for j in range(self.space.dimension)] if self.cases.has_outcomes else []
        others = [name for name, there in (("w", rows.weighted), ("g", rows.grouped)) if there]
        known = {name: context_column(name) for name in self.cases.context}
        found = collect(rows.used.select(*rows.coordinates, *outcomes, *others, *known.values()), "reading rows")
        tables = [stacked(found, names) for names in (rows.coordinates, outcomes) if names]
        context = {name: found[column] for name, column in known.items()}
        return Cases(*tables, weights=found.get("w"), periods=found.get("g"), context=context)

    def in_order(self) -> Iterator[tuple[FloatArray, FloatArray | None, list[Any]]]:
        """Read forecasts ``(n, d)``, outcomes ``(n, d)`` or None and ids by increasing id, in parts, a query for each.

        For what is sequential by nature. Outcomes are NaN where they are missing; whatever can be refused is refused
        before the first part.
        """
        columns, space = self.cases, self.space
        _check_order(columns, space)
        wanted = [nw.col(str(columns.ids)).alias("id")]
        wanted += [nw.col(name).cast(nw.Float64).alias(f"v{j}") for j, name in enumerate(columns.forecasts)]
        if columns.outcomes:
            wanted += [outcome.alias(f"y{j}") for j, outcome in enumerate(outcome_columns(columns, space))]
        frame = columns.frame.select(*wanted)
        last: Any = None
        parts = "vy" if columns.outcomes else "v"
        while True:
            rest = frame if last is None else frame.filter(nw.col("id") > last)
            found = collect(rest.sort("id").head(50_000), "reading rows in order")
            ids = found["id"].tolist()
            if not ids and last is None:
                raise InputError("the table has no row that takes part.")
            if not ids:
                return
            points = [stacked(found, [f"{which}{j}" for j in range(space.dimension)]) for which in parts]
            yield points[0], points[1] if columns.outcomes else None, ids
            last = ids[-1]

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


def _resolved(guarantee: Guarantee, rows: Rows) -> Guarantee:
    """Fix everything that depends on the sample, by queries: quantile bins are those that the rows have in memory."""
    if isinstance(guarantee, And):
        return And(tuple(_resolved(part, rows) for part in guarantee.parts))
    rows.columns.require_context(guarantee.context_columns)
    if isinstance(guarantee, Within):
        return Within(
            guarantee.columns, _resolved(guarantee.guarantee, rows), guarantee.groups or _groups(guarantee, rows)
        )
    if isinstance(guarantee, Bins) and guarantee.of_sample:
        values, weights = _around_quantiles(rows, guarantee)
        return guarantee.resolve(values[:, None], weights, rows.space)
    symbolic_tests(guarantee, rows.space)  # refuses what an engine cannot evaluate
    return guarantee.resolve(np.zeros((0, rows.space.dimension)), np.zeros(0), rows.space)


def _groups(guarantee: Within, rows: Rows) -> tuple[Values, ...]:
    """Find the groups that rows have, by a query; for every column with cuts one of its numbers is enough."""
    keys, held = [], []
    for name, cuts in guarantee.columns:
        value = nw.col(context_column(name))
        keys.append((number_of_cuts(value.cast(nw.Float64), cuts) if cuts else value).alias(f"key_{name}"))
        held.append(value.min().alias(name))
    named = [f"key_{name}" for name, _ in guarantee.columns]
    found = collect(rows.carefully().used.with_columns(*keys).group_by(*named).agg(*held), "finding groups")
    for name, _ in guarantee.columns:
        require_values(found[f"key_{name}"], name)
    return tuple(sorted(guarantee.occurring(found, len(found[named[0]]))[0]))


def _around_quantiles(rows: Rows, bins: Bins) -> tuple[FloatArray, FloatArray]:
    """Distinct forecasts near the quantiles with their weights; all others are lumped together in between.

    Zooms into the parts of a grid that hold a quantile until they have few rows, then reads their distinct values.
    """
    bins.resolve(np.zeros((1, rows.space.dimension)), np.ones(1), rows.space)  # refuses more than one coordinate
    low, high = rows.space.interval
    value, parts = nw.col("v"), 1
    frame = rows.carefully().used.select(nw.col("v0").alias("v"), rows.weigh(nw.lit(1.0)).alias("w"))
    lumps = np.zeros((2, 0))  # first forecasts and weights of parts without a quantile
    while True:
        parts *= _PARTS
        part = ((value - low) * (parts / (high - low))).floor()
        part = where(part < parts, part, float(parts - 1)).cast(nw.Int64)
        sums = frame.with_columns(part.alias("part")).group_by("part")
        found = collect(sums.agg(nw.len().alias("rows"), nw.col("w").sum(), value.min()), "finding quantiles")
        own = np.stack([numbers(found["v"]), numbers(found["w"])])
        values, weights = np.concatenate([lumps, own], axis=1)
        order = np.argsort(values, kind="stable")
        cumulative = np.cumsum(weights[order])
        cumulative *= fsum(weights) / cumulative[-1]
        levels = bins.levels(cumulative[-1])
        around = np.concatenate([levels * (1 - 1e-12), levels * (1 + 1e-12)])
        holding = order[np.minimum(np.searchsorted(cumulative, around), len(order) - 1)]
        wanted = np.isin(np.arange(len(order)), holding)[lumps.shape[1] :]
        lumps = np.concatenate([lumps, own[:, ~wanted]], axis=1)
        frame = frame.filter(part.is_in(np.asarray(found["part"])[wanted].tolist()))
        if np.asarray(found["rows"])[wanted].sum() <= 200_000 or parts > 2**48:
            break
    found = collect(frame.group_by("v").agg(nw.col("w").sum()), "reading values at quantiles")
    values, weights = np.concatenate([lumps, [numbers(found["v"]), numbers(found["w"])]], axis=1)
    return values, weights


def _check_order(columns: TableCases, space: Space) -> None:
    """Refuse tables whose rows have no order, and rows that cannot be used."""
    if columns.ids is None:
        raise InputError(
            "the rows of a lazy table have no order of their own, and here the order matters: name a column of ids "
            "that grow with time in prudent.scan(ids=...)."
        )
    for name, value in (("weights", columns.weights), ("periods", columns.periods)):
        if value is not None:
            raise InputError(f"{name} has no meaning where rows are taken one after the other; leave {name}= out.")
    kind = columns.frame.collect_schema()[columns.ids]
    if not (kind.is_integer() or kind == nw.String):
        raise InputError(
            f"id must be a column of text or whole numbers; {columns.ids!r} has type {kind}. Cast it first."
        )
    missing = replace(columns, missing="drop")  # outcomes may follow
    refuse_broken_rows(place_rows(missing, space, outcomes=bool(columns.outcomes), careful=True))
    _check_ids(columns, columns.ids)


def _check_ids(columns: TableCases, name: str) -> None:
    counts = {"rows": nw.len(), "known": nw.col(name).count(), "distinct": nw.col(name).n_unique()}
    wanted = columns.frame.select(*(count.alias(what) for what, count in counts.items()))
    rows, known, distinct = (int(count[0]) for count in collect(wanted, "checking ids").values())
    if known < rows:
        raise InputError(f"id must be known in every row; {name!r} is NULL in {rows - known:,}.")
    if distinct < rows:
        raise InputError(
            f"id must be different in every row, or their order is not known; {rows - distinct:,} in {name!r} repeat "
            f"another."
        )
