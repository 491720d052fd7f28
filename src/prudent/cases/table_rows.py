"""Rows of a lazy table on an outcome space: their engine adds up moments, utilities of policies and sums by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from operator import mul
from typing import Any

import numpy as np

from prudent.arrays import Expr, FloatArray, Frame, frozen, nw
from prudent.cases.cases import Cases
from prudent.cases.engine import collect
from prudent.cases.engine_rows import Rows, Sums, kinds_of, require_total, stacked, sums_by_key, sums_of_all
from prudent.cases.mean_bounds import Means, PeriodSums
from prudent.cases.moment_sums import (
    POWERS,
    Measurement,
    MomentEstimates,
    estimate_moments,
    largest_integrands,
    means_of_sums,
    row_terms,
)
from prudent.cases.table_cells import TableCells, gather_table
from prudent.errors import InputError
from prudent.guarantees import Guarantee
from prudent.guarantees.base import parts_of, symbolic_tests
from prudent.guarantees.elementary import Nothing
from prudent.guarantees.engine_tests import (
    EngineLabel,
    EngineTests,
    context_column,
    coordinate,
    engine_tests,
    joined,
    linear,
    split,
)
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.slack import Slack, SlackSet
from prudent.spaces import Space

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


def measure_table(guarantee: Guarantee, rows: Rows, confidence: float) -> Measurement:
    """Estimate the moments of a resolved guarantee in one pass; periods are units where there are periods."""
    tests = engine_tests(guarantee, rows.space)
    names = tests.stated.layout
    by_label = names.scalar and not rows.grouped and bool(np.isfinite(names.bounds).all())
    means, counted = (_by_label if by_label else _by_moment)(rows, tests, names)
    found = estimate_moments(names, means, confidence)
    return Measurement(found, int(counted.counts.sum()), counted.n_left_out)


def _by_label(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[Means, Sums]:
    """Scalar tests: within one label each is a constant, or a number times one, so sums by label serve all of them."""
    counts = [label.n_labels for label in tests.labels]
    weight = nw.col("w") if rows.weighted else None

    def query(rows: Rows) -> tuple[Frame, dict[str, Expr]]:
        frame = rows.frame.with_columns(
            kinds_of(tests, joined([label.expression for label in tests.labels], counts)).alias("key"),
            *(number.alias(f"f_{name}") for name, number in tests.numbers.items()),
            *_errors(rows.space),
        )
        columns: dict[str, Expr] = {}
        for j in range(names.dimension):
            for factor in set(tests.factors):
                share = weight if factor is None else rows.weigh(nw.col(f"f_{factor}"))
                for name, term in row_terms(nw.col(f"r{j}"), weight).items():
                    power = reduce(mul, [share] * POWERS[name]) if share is not None else None
                    columns[f"{name}_{factor}_{j}"] = term if power is None else term * power
        return frame, {name: column.sum() for name, column in columns.items()}

    found = sums_by_key(rows, tests, query, "measuring moments")
    labels = split(found.keys, counts)
    constants = tests.assemble(labels, dict.fromkeys(tests.numbers, np.ones(len(labels)))).values.T

    def moments(name: str) -> FloatArray:
        """Multiply sums by label with the tests' constants."""
        pairs = zip(tests.factors, constants ** POWERS[name], strict=True)
        places = range(names.dimension)
        return np.array([[own @ found.sums[f"{name}_{factor}_{j}"] for j in places] for factor, own in pairs]).reshape(
            -1
        )

    return _means({name: moments(name) for name in POWERS}, found, largest_integrands(names, rows.space)), found


def _by_moment(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[Means, Sums]:
    """Vector tests, tests without a bound, or periods of rows: every moment has columns of its own."""
    space, moments = rows.space, range(names.n_moments)
    added, named = tests.as_columns()
    weight = nw.col("w") if rows.weighted else None
    terms: Callable[[Any, Any], dict[str, Any]] = PeriodSums.terms if rows.grouped else row_terms

    def query(rows: Rows) -> tuple[Frame, dict[str, Expr]]:
        frame = rows.frame.with_columns(*_errors(space), *added)
        columns, chosen = dict[str, Expr](), {"key": kinds_of(tests, nw.lit(0))}
        for k, one in enumerate(np.eye(names.n_moments)):
            own, written = np.flatnonzero(names.source[k] >= 0).tolist(), named.tilts(one)
            chosen[f"u{k}"] = rows.weigh(linear([nw.col(f"r{j}") for j in own], [written[j] for j in own]))
            chosen[f"reach{k}"] = linear([written[j].abs() for j in own], space.widths[own].tolist())
            columns |= {f"{name}_{k}": term.sum() for name, term in terms(nw.col(f"u{k}"), weight).items()}
            columns[f"reach{k}"] = nw.col(f"reach{k}").max()
        return frame.with_columns(*(each.alias(name) for name, each in chosen.items())), columns

    found = sums_by_key(rows, tests, query, "measuring moments", ["key", "g"] if rows.grouped else ["key"])
    reach = np.array([found.sums[f"reach{k}"].max() for k in moments])
    most = largest_integrands(names, space, reach)
    kinds = {
        name: np.array([found.sums[f"{name}_{k}"] for k in moments]).reshape(len(moments), found.counts.size).T
        for name in terms(1.0, None)
    }
    if not rows.grouped:
        return _means({name: column[0] for name, column in kinds.items()}, found, most), found
    require_total(float(found.sums["w"].sum()))
    weights, squared, largest = (found.sums[name] for name in ("w", "squared_w", "max_w"))
    return PeriodSums(weights, found.counts.astype(np.float64), squared, largest, **kinds).means(-most, most), found


def _means(sums: dict[str, Any], found: Sums, most: FloatArray) -> Means:
    """Describe means by their sums over all rows."""
    total = float(found.sums["w"].sum())
    require_total(total)
    sums |= {"units": found.counts.sum(), "squared_weights": found.sums["squared_w"].sum()}
    return means_of_sums(sums, most, float(found.sums["max_w"].max()), total)


def table_utilities(
    rows: Rows, problem: DecisionProblem, played: Sequence[Sequence[str]]
) -> tuple[FloatArray, FloatArray | None, float]:
    """Add up utilities in one query; each policy is a list of the rows' columns of probabilities.

    Returns mean utilities of every policy if the forecasts are right, on the outcomes where rows have them, and of best
    responding if the forecasts are right.
    """
    nothing, nominal = engine_tests(Nothing(), rows.space), _utilities(problem, "v")
    columns = {"best": nw.max_horizontal(*nominal) if len(nominal) > 1 else nominal[0]}
    for which in ("v", "y") if rows.measured else ("v",):
        utilities = _utilities(problem, which)
        columns |= {f"{which}{k}": linear(utilities, [nw.col(name) for name in own]) for k, own in enumerate(played)}
    weighed = {name: rows.weigh(column).sum() for name, column in columns.items()}
    found = sums_of_all(rows, nothing, weighed, "adding up utilities").sums
    mean = {name: float(column[0] / found["w"][0]) for name, column in found.items()}
    right = np.array([mean[f"v{k}"] for k in range(len(played))])
    realised = np.array([mean[f"y{k}"] for k in range(len(played))]) if rows.measured else None
    return right, realised, mean["best"]


def _utilities(problem: DecisionProblem, which: str) -> list[Expr]:
    """Write the utility of every action at the forecast ``v`` or the outcome ``y``."""
    point = [nw.col(f"{which}{j}") for j in range(problem.dimension)]
    pairs = zip(problem.rewards.tolist(), problem.costs.tolist(), strict=True)
    return [linear(point, rewards, -cost) for rewards, cost in pairs]


def _errors(space: Space) -> list[Expr]:
    """Write outcome minus forecast, coordinate by coordinate."""
    return [(nw.col(f"y{j}") - nw.col(coordinate(j))).alias(f"r{j}") for j in range(space.dimension)]
