"""Moments of a guarantee and utilities of policies, added up in the engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.arrays.lazy_narwhals import Expr, Frame, nw
from prudent.cases.engine import collect
from prudent.cases.engine_rows import Rows, Sums, kinds_of, require_total, sums_by_key
from prudent.cases.intervals import Measurement, Spread, estimate_moments, require_method
from prudent.cases.moment_sums import (
    POWERS,
    Arithmetic,
    by_chance,
    raised,
    row_terms,
    scalar_terms,
    spread_of_sums,
    unit_terms,
)
from prudent.guarantees import Guarantee
from prudent.guarantees.elementary import Nothing
from prudent.guarantees.engine_tests import EngineTests, coordinate, engine_tests, joined, linear, split
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.spaces import Space


def measure_table(guarantee: Guarantee, rows: Rows, confidence: float, method: str = "auto") -> Measurement:
    """Estimate the moments of a resolved guarantee in one pass; periods are units where there are periods."""
    require_method(method)
    tests = engine_tests(guarantee, rows.space)
    names = tests.stated.layout
    add_up = _by_label if names.scalar and not rows.grouped else _by_moment
    spread, counted = add_up(rows, tests, names)
    found = estimate_moments(names, spread, confidence, method, "period" if rows.grouped else "row")
    return Measurement(found, int(counted.counts.sum()), counted.n_left_out)


def _by_label(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[Spread, Sums]:
    """Scalar tests: within one label each is a constant, or a number times one, so sums by label serve all of them."""
    counts = [label.n_labels for label in tests.labels]
    places = range(names.dimension)
    weight = nw.col("w") if rows.weighted else None

    def query(rows: Rows) -> tuple[Frame, dict[str, Expr]]:
        frame = rows.frame.with_columns(
            kinds_of(tests, joined([label.expression for label in tests.labels], counts)).alias("key"),
            *(number.alias(f"f_{name}") for name, number in tests.numbers.items()),
            *_errors(rows.space),
        )
        columns: dict[str, Any] = {**_off_the_ends(rows.space), "squared_weights": _share(weight, 2)}
        for j, ends in enumerate(_bounds(rows.space)):
            terms = scalar_terms(weight, nw.col(f"r{j}"), nw.col(coordinate(j)), *ends)
            for factor in set(tests.factors):
                share = weight if factor is None else rows.weigh(nw.col(f"f_{factor}"))
                for name, power in POWERS.items():
                    parts = [part for part in (_share(share, power), terms[name]) if part is not None]
                    columns[f"{name}_{factor}_{j}"] = reduce(mul, parts) if parts else None
        return frame, {name: column for name, column in columns.items() if column is not None}

    found = sums_by_key(rows, tests, query, "measuring moments")
    labels, total = split(found.keys, counts), found.sums["w"]
    constants = tests.assemble(labels, dict.fromkeys(tests.numbers, np.ones(len(labels)))).values.T

    def moments(name: str) -> FloatArray:
        """Multiply sums by label with the tests' constants; what is one in every row adds up to the weight."""
        powers = raised(constants, POWERS[name]) if POWERS[name] else np.abs(constants)
        pairs = zip(tests.factors, powers, strict=True)
        sums = [[own @ found.sums.get(f"{name}_{factor}_{j}", total) for j in places] for factor, own in pairs]
        return np.array(sums).reshape(-1)

    squared, weight_of_all = found.sums.get("squared_weights", total).sum(), float(total.sum())
    require_total(weight_of_all)
    sums = {name: moments(name) for name in POWERS} | {"units": found.counts.sum(), "squared_weights": squared}
    extreme = np.array([not found.sums[f"ends_{j}"].any() for j in places])
    largest = float(found.sums["max_w"].max())
    return spread_of_sums(names, rows.space, sums, largest, extreme, weight_of_all), found


def _by_moment(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[Spread, Sums]:
    """Vector tests or periods of rows: every moment has columns of its own."""
    space, d, count = rows.space, rows.space.dimension, names.n_moments
    counted = sums_by_key(rows, tests, lambda rows: (_in_one(rows, tests), {}), "counting rows")
    added, named = tests.as_columns()
    classes = space.is_simplex and not names.scalar
    coordinates = [range(d) if classes else np.flatnonzero(columns >= 0).tolist() for columns in names.source]
    written = [named.tilts(one) for one in np.eye(count)]
    frame = counted.rows.used.with_columns(*_errors(space), *added)
    frame = frame.with_columns(*(written[k][j].alias(f"b{k}_{j}") for k in range(count) for j in coordinates[k]))
    arithmetic = Arithmetic(lambda value: value.abs(), lambda value: value.sqrt(), nw.max_horizontal)
    weight = nw.col("w") if rows.weighted else nw.lit(1.0)
    columns = {"w": weight, **_off_the_ends(space)}
    sums = {name: nw.col(name) for name in columns} | {"squared_weights": nw.col("w") * nw.col("w")}
    for k, own in enumerate(coordinates):
        terms = row_terms(
            weight,
            [nw.col(f"b{k}_{j}") for j in own],
            [nw.col(f"r{j}") for j in own],
            [nw.col(coordinate(j)) for j in own],
            [_bounds(space)[j] for j in own],
            classes=classes,
            alone=classes and not rows.grouped,
            arithmetic=arithmetic,
        )
        columns |= {f"{name}_{k}": term for name, term in terms.items()}
        units = unit_terms(nw.col("w"), **{name: nw.col(f"{name}_{k}") for name in terms})
        sums |= {f"{name}_{k}": term for name, term in units.items()}
    chosen = [column.alias(name) for name, column in columns.items()]
    if rows.grouped:
        frame = frame.select(nw.col("g"), *chosen).group_by("g").agg(*(nw.col(name).sum() for name in columns))
    else:
        frame = frame.select(*chosen)
    totals = [nw.len().alias("units"), nw.col("w").max().alias("max_w")]
    totals += [column.sum().alias(f"s_{name}") for name, column in sums.items()]
    found = {name: float(column[0]) for name, column in collect(frame.select(*totals), "measuring moments").items()}
    require_total(found["s_w"])
    read = {name: np.array([found[f"s_{name}_{k}"] for k in range(count)]) for name in POWERS}
    extreme = np.array([found[f"s_ends_{j}"] == 0.0 for j in range(d)])
    every = {**read, "units": found["units"], "squared_weights": found["s_squared_weights"]}
    return spread_of_sums(names, space, every, found["max_w"], extreme, found["s_w"]), counted


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
    found = sums_by_key(rows, nothing, lambda rows: (_in_one(rows, nothing), weighed), "adding up utilities").sums
    mean = {name: float(column[0] / found["w"][0]) for name, column in found.items()}
    right = np.array([mean[f"v{k}"] for k in range(len(played))])
    realised = np.array([mean[f"y{k}"] for k in range(len(played))]) if rows.measured else None
    return right, realised, mean["best"]


def _in_one(rows: Rows, tests: EngineTests) -> Frame:
    """Give all rows that take part the same key."""
    return rows.frame.with_columns(kinds_of(tests, nw.lit(0)).alias("key"))


def _utilities(problem: DecisionProblem, which: str) -> list[Expr]:
    """Write the utility of every action at the forecast ``v`` or the outcome ``y``."""
    point = [nw.col(f"{which}{j}") for j in range(problem.dimension)]
    pairs = zip(problem.rewards.tolist(), problem.costs.tolist(), strict=True)
    return [linear(point, rewards, -cost) for rewards, cost in pairs]


def _errors(space: Space) -> list[Expr]:
    """Write outcome minus forecast, coordinate by coordinate."""
    return [(nw.col(f"y{j}") - nw.col(coordinate(j))).alias(f"r{j}") for j in range(space.dimension)]


def _bounds(space: Space) -> list[tuple[float, float]]:
    return list(zip(*(end.tolist() for end in space.bounds), strict=True))


def _off_the_ends(space: Space) -> dict[str, Expr]:
    """Expressions that are zero for every row exactly where all outcomes are extreme points of the space."""
    return {f"ends_{j}": by_chance(nw.col(f"y{j}"), *ends)[0] for j, ends in enumerate(_bounds(space))}


def _share(share: Any, power: int) -> Any:
    """A power of a test, its absolute value for 0; None stands for one."""
    return None if share is None else raised(share if power else share.abs(), power)
