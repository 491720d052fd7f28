"""Moments of a guarantee and utilities of policies, added up in the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.arrays.lazy_narwhals import Expr, Frame, nw
from prudent.cases.engine import collect
from prudent.cases.engine_rows import Rows, kinds_of, require_total, sums_by_key
from prudent.cases.intervals import Measurement, estimate_moments, require_method
from prudent.cases.moment_sums import POWERS, Arithmetic, MomentSums, raised, row_terms, scalar_terms, unit_terms
from prudent.guarantees import Guarantee
from prudent.guarantees.elementary import Nothing
from prudent.guarantees.engine_tests import EngineTests, coordinate, engine_tests, joined, linear, split
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.spaces import Space

_ONE = "1"


def measure_table(guarantee: Guarantee, rows: Rows, confidence: float, method: str = "auto") -> Measurement:
    """Estimate the moments of a resolved guarantee in one pass; periods are units where there are periods."""
    require_method(method)
    tests = engine_tests(guarantee, rows.space)
    labels = np.zeros((1, len(tests.labels)), dtype=np.int64)
    names = tests.assemble(labels, {name: np.zeros(1) for name in tests.numbers}).without_rows()
    add_up = _by_label if names.scalar and not rows.grouped else _by_moment
    sums, left_out = add_up(rows, tests, names)
    found = estimate_moments(names, sums.spread, confidence, method, "period" if rows.grouped else "row")
    return Measurement(found, sums.n_rows, left_out)


def _by_label(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[MomentSums, int]:
    """Scalar tests: within one label each is a number times a constant, so sums by label serve all of them."""
    space, d = rows.space, rows.space.dimension
    weight = nw.col("w") if rows.weighted else None
    counts = [label.n_labels for label in tests.labels]

    def column(name: str, factor: str, j: int) -> str:
        """Name a column of sums; without weights some are the same."""
        if factor == _ONE and (name == "reach" or (name == "squared_reach" and weight is None)):
            return "w"
        if name in ("reach", "squared_reach"):
            return f"{name}_{factor}"
        return f"{'first' if name == 'cross' and weight is None else name}_{factor}_{j}"

    def query(rows: Rows) -> tuple[Frame, dict[str, Expr]]:
        extra = {name: number for name, number in tests.numbers.items() if name not in rows.coordinates}
        frame = rows.frame.with_columns(
            kinds_of(tests, joined([label.expression for label in tests.labels], counts)).alias("key"),
            *(number.alias(f"f_{name}") for name, number in extra.items()),
            *_errors(d),
        )
        factors = {_ONE: weight}
        for name in tests.numbers:
            number = nw.col(f"f_{name}" if name in extra else name)
            factors[name] = number if weight is None else number * weight
        columns = _off_the_ends(space)
        for j, (low, high) in enumerate(_bounds(space)):
            terms = scalar_terms(weight, nw.col(f"r{j}"), nw.col(coordinate(j)), low, high)
            for factor, share in factors.items():
                columns |= {column(name, factor, j): _product(share, POWERS[name].test, terms[name]) for name in POWERS}
        if weight is None:
            columns.pop("w")  # the number of rows
        return frame, columns

    found = sums_by_key(rows, tests, query, "measuring moments")
    if weight is None:
        found.sums["w"] = found.counts.astype(np.float64)
    labels = split(found.keys, counts)
    # Multiply sums by label with the tests' constants.
    zero = {name: np.zeros(len(labels)) for name in tests.numbers}
    constants = {_ONE: tests.assemble(labels, zero).values}
    for name in tests.numbers:
        constants[name] = tests.assemble(labels, {**zero, name: np.ones(len(labels))}).values - constants[_ONE]

    def moments(name: str, j: int) -> FloatArray:
        power = POWERS[name].test
        powers = {factor: raised(values if power else np.abs(values), power) for factor, values in constants.items()}
        return np.sum([table.T @ found.sums[column(name, factor, j)] for factor, table in powers.items()], axis=0)

    total = float(found.sums["w"].sum())
    require_total(total)
    n_rows = int(found.counts.sum())
    sums = MomentSums(
        names,
        space,
        n_rows,
        n_rows,
        1.0 if weight is None else float(found.sums["max_w"].max()),
        float(found.sums[column("squared_reach", _ONE, 0)].sum()),
        {name: np.stack([moments(name, j) for j in range(d)], axis=1).reshape(-1) for name in POWERS},
        np.array([not found.sums[f"ends_{j}"].any() for j in range(d)]),
    )
    return sums.divided(total), found.n_left_out


def _by_moment(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[MomentSums, int]:
    """Vector tests or periods of rows: every moment has columns of its own."""
    space, d, count = rows.space, rows.space.dimension, names.n_moments
    counted = sums_by_key(rows, tests, lambda rows: (_in_one(rows, tests), {}), "counting rows")
    added, named = tests.as_columns()
    # A scalar test has one coordinate that is not zero.
    coordinates = [[k % d] if names.scalar else list(range(d)) for k in range(count)]
    written = [named.tilts(one) for one in np.eye(count)]
    frame = counted.rows.used.with_columns(*_errors(d), *added)
    frame = frame.with_columns(*(written[k][j].alias(f"b{k}_{j}") for k in range(count) for j in coordinates[k]))
    classes = space.is_simplex and not names.scalar
    arithmetic = Arithmetic(lambda value: value.abs(), lambda value: value.sqrt(), nw.max_horizontal)
    weight = nw.col("w") if rows.weighted else nw.lit(1.0)
    columns = {"w": weight, **_off_the_ends(space)}
    units = []
    for k, own in enumerate(coordinates):
        terms = row_terms(
            [nw.col(f"b{k}_{j}") for j in own],
            [nw.col(f"r{j}") for j in own],
            [nw.col(coordinate(j)) for j in own],
            [_bounds(space)[j] for j in own],
            classes=classes,
            arithmetic=arithmetic,
        )
        fourth = terms.pop("fourth", None)
        weighed = {name: weight * term for name, term in terms.items()}
        if fourth is not None and not rows.grouped and (names.scalar or classes):
            weighed["fourth"] = raised(weight, 4) * fourth
        columns |= {f"{name}_{k}": term for name, term in weighed.items()}
        units.append(unit_terms(nw.col("w"), **{name: nw.col(f"{name}_{k}") for name in weighed}))
    chosen = [column.alias(name) for name, column in columns.items()]
    if rows.grouped:
        frame = frame.select(nw.col("g"), *chosen).group_by("g").agg(*(nw.col(name).sum() for name in columns))
    else:
        frame = frame.select(*chosen)
    sums = {"w": nw.col("w"), "ww": nw.col("w") * nw.col("w"), **{f"ends_{j}": nw.col(f"ends_{j}") for j in range(d)}}
    sums |= {f"{name}_{k}": term for k, terms in enumerate(units) for name, term in terms.items()}
    frame = frame.select(*(column.alias(f"s_{name}") for name, column in sums.items()))
    totals = [nw.len().alias("units"), nw.col("s_w").max().alias("max_w")]
    found = collect(frame.select(*totals, *(nw.col(f"s_{name}").sum() for name in sums)), "measuring moments")
    read = {name: float(found[f"s_{name}"][0]) for name in sums}
    require_total(read["w"])
    summed = MomentSums(
        names,
        space,
        int(counted.counts.sum()),
        int(found["units"][0]),
        float(found["max_w"][0]),
        read["ww"],
        {name: np.array([read[f"{name}_{k}"] for k in range(count)]) for name in POWERS},
        np.array([read[f"ends_{j}"] == 0.0 for j in range(d)]),
    )
    return summed.divided(read["w"]), counted.n_left_out


def table_utilities(
    rows: Rows, problem: DecisionProblem, played: Sequence[Sequence[str]]
) -> tuple[FloatArray, FloatArray | None, float]:
    """Add up utilities in one query; each policy is a list of the rows' columns of probabilities.

    Returns mean utilities of every policy if the forecasts are right, on the outcomes where rows have them, and of best
    responding if the forecasts are right.
    """
    nothing, nominal = engine_tests(Nothing(), rows.space), _utilities(problem, "v")
    columns = {"total": nw.lit(1.0), "best": nw.max_horizontal(*nominal) if len(nominal) > 1 else nominal[0]}
    for which in ("v", "y") if rows.measured else ("v",):
        utilities = _utilities(problem, which)
        columns |= {f"{which}{k}": linear(utilities, [nw.col(name) for name in own]) for k, own in enumerate(played)}
    weighed = {name: rows.weigh(column) for name, column in columns.items()}
    found = sums_by_key(rows, nothing, lambda rows: (_in_one(rows, nothing), weighed), "adding up utilities").sums
    mean = {name: float(column[0] / found["total"][0]) for name, column in found.items()}
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


def _errors(dimension: int) -> list[Expr]:
    """Write outcome minus forecast, coordinate by coordinate."""
    return [(nw.col(f"y{j}") - nw.col(coordinate(j))).alias(f"r{j}") for j in range(dimension)]


def _bounds(space: Space) -> list[tuple[float, float]]:
    return list(zip(*(end.tolist() for end in space.bounds), strict=True))


def _off_the_ends(space: Space) -> dict[str, Expr]:
    """Expressions that are zero for every row exactly where all outcomes are extreme points of the space."""
    return {
        f"ends_{j}": (nw.col(f"y{j}") - low if low else nw.col(f"y{j}")) * (high - nw.col(f"y{j}"))
        for j, (low, high) in enumerate(_bounds(space))
    }


def _product(share: Any, power: int, term: Any) -> Any:
    """A power of a test times a term of a sum; None stands for one."""
    if share is None:
        return nw.lit(1.0) if term is None else term
    share = raised(share if power else share.abs(), power)
    return share if term is None else share * term
