"""Moments of a guarantee and utilities of policies, added up in the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.arrays.lazy_narwhals import Expr, Frame, nw
from prudent.cases.engine import collect
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
        columns: dict[str, Expr] = {} if weight is None else {"squared_weights": weight * weight}
        for j in range(names.dimension):
            for factor in set(tests.factors):
                share = weight if factor is None else rows.weigh(nw.col(f"f_{factor}"))
                for name, term in row_terms(nw.col(f"r{j}"), weight).items():
                    power = reduce(mul, [share] * POWERS[name]) if share is not None else None
                    columns[f"{name}_{factor}_{j}"] = term if power is None else term * power
        return frame, columns

    found = sums_by_key(rows, tests, query, "measuring moments")
    labels, total = split(found.keys, counts), found.sums["w"]
    constants = tests.assemble(labels, dict.fromkeys(tests.numbers, np.ones(len(labels)))).values.T

    def moments(name: str) -> FloatArray:
        """Multiply sums by label with the tests' constants."""
        pairs = zip(tests.factors, constants ** POWERS[name], strict=True)
        places = range(names.dimension)
        return np.array([[own @ found.sums[f"{name}_{factor}_{j}"] for j in places] for factor, own in pairs]).reshape(
            -1
        )

    weight_of_all = float(total.sum())
    require_total(weight_of_all)
    sums = {name: moments(name) for name in POWERS}
    sums |= {"units": found.counts.sum(), "squared_weights": found.sums.get("squared_weights", total).sum()}
    largest = float(found.sums["max_w"].max())
    return means_of_sums(sums, largest_integrands(names, rows.space), largest, weight_of_all), found


def _by_moment(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[Means, Sums]:
    """Vector tests, tests without a bound, or periods of rows: every moment has columns of its own."""
    space, count = rows.space, names.n_moments
    counted = sums_of_all(rows, tests, {}, "counting rows")
    added, named = tests.as_columns()
    frame = counted.rows.used.with_columns(*_errors(space), *added)
    w, chosen = nw.col("w"), {"w": nw.col("w") if rows.weighted else nw.lit(1.0)}
    terms: Callable[[Any, Any], dict[str, Any]] = PeriodSums.terms if rows.grouped else row_terms
    for k, one in enumerate(np.eye(count)):
        own, written = np.flatnonzero(names.source[k] >= 0).tolist(), named.tilts(one)
        chosen[f"u{k}"] = linear([nw.col(f"r{j}") for j in own], [written[j] for j in own]) * chosen["w"]
        chosen[f"reach{k}"] = linear([written[j].abs() for j in own], space.widths[own].tolist())
    frame = frame.select(*(["g"] if rows.grouped else []), *(each.alias(name) for name, each in chosen.items()))
    summed = {f"{name}_{k}": term for k in range(count) for name, term in terms(nw.col(f"u{k}"), w).items()}
    summed |= {"weights": w, "squared_weights": w * w}
    frame = frame.with_columns(*(term.alias(f"t_{name}") for name, term in summed.items()))
    sums = [nw.col(f"t_{name}").sum().alias(name) for name in summed]
    sums += [nw.len().alias("sizes"), w.max().alias("largest"), *(nw.col(f"reach{k}").max() for k in range(count))]
    found = collect(frame.group_by("g").agg(*sums) if rows.grouped else frame.select(*sums), "measuring moments")
    read = {name: np.asarray(column, dtype=np.float64) for name, column in found.items() if name != "g"}
    require_total(float(read["weights"].sum()))
    reach = np.array([read[f"reach{k}"].max() for k in range(count)])
    most = largest_integrands(names, space, reach)

    def by_moment(name: str) -> FloatArray:
        return np.array([read[f"{name}_{k}"] for k in range(count)]).reshape(count, read["weights"].size).T

    if rows.grouped:
        kinds = {name: by_moment(name) for name in PeriodSums.terms(1.0, 1.0)}
        plain = {name: read[name] for name in ("weights", "sizes", "squared_weights", "largest")}
        return PeriodSums(**plain, **kinds).means(-most, most), counted
    every: dict[str, Any] = {name: by_moment(name)[0] for name in POWERS}
    every |= {"units": read["sizes"][0], "squared_weights": read["squared_weights"][0]}
    return means_of_sums(every, most, float(read["largest"][0]), float(read["weights"][0])), counted


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
    weighed = {name: rows.weigh(column) for name, column in columns.items()}
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
