"""Moments of a guarantee and utilities of policies, added up in the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.arrays.lazy_narwhals import Expr, Frame, nw
from prudent.cases.engine_rows import Rows, Sums, kinds_of, require_total, sums_by_key, sums_of_all
from prudent.cases.intervals import Measurement, estimate_moments
from prudent.cases.mean_bounds import Means, PeriodSums
from prudent.cases.moment_sums import POWERS, largest_integrands, means_of_sums, row_terms
from prudent.guarantees import Guarantee
from prudent.guarantees.elementary import Nothing
from prudent.guarantees.engine_tests import EngineTests, coordinate, engine_tests, joined, linear, split
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.spaces import Space


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
