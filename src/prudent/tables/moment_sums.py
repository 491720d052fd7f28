"""The sums that an audit needs, added up in the engine; see :mod:`prudent.moments.sums` for their meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.written import WrittenTests, coordinate
from prudent.moments.estimates import MomentEstimates, estimates_from_sums
from prudent.moments.radii import METHODS
from prudent.moments.sums import MomentSums, largest_integrands
from prudent.spaces import Simplex, Space
from prudent.tables.dual import tilt_expressions
from prudent.tables.engine import collect, numbers
from prudent.tables.partition import UNCLEAR
from prudent.tables.row_errors import error_by_chance, off_the_ends, row_residuals, spread_by_chance, sum_of
from prudent.tables.rows import Rows, require_total
from prudent.tables.taking_part import counted_rows, kinds_of

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["MeasuredTable", "TableMoments", "measure_table", "table_moment_sums"]

_MOST_PRODUCTS = 60
_ONE = "1"


@dataclass(frozen=True, eq=False)
class TableMoments:
    """Sums for an audit, and how many rows took part or were left out."""

    sums: MomentSums
    n_rows: int
    n_left_out: int
    rows: Rows


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Estimates from a table, and how many rows they rest on."""

    estimates: MomentEstimates
    n_rows: int
    n_left_out: int


def measure_table(guarantee: Guarantee, rows: Rows, confidence: float, method: str = "auto") -> MeasuredTable:
    """Estimate the moments of a resolved guarantee on the rows of a table."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    found = table_moment_sums(guarantee, rows, products=method == "bootstrap")
    if found.sums.n_units < 2:
        unit = "group" if rows.grouped else "row"
        raise InputError(f"an interval needs at least two independent {unit}s; got one {unit}.")
    return MeasuredTable(estimates_from_sums(found.sums, confidence, method), found.n_rows, found.n_left_out)


def table_moment_sums(guarantee: Guarantee, rows: Rows, *, products: bool = False) -> TableMoments:
    """Add up a resolved guarantee's moments in one pass; groups of rows are units where there are groups."""
    tests = guarantee.write(rows.space)
    rows.require_labels(tests.blocks)
    names = _names(tests)
    if names.scalar and not rows.grouped and not products:
        return _by_label(rows, tests, names)
    return _moment_by_moment(rows, tests, names, products=products)


def _names(tests: WrittenTests) -> EvaluatedTests:
    labels = np.zeros((1, len(tests.labelled)), dtype=np.int64)
    return tests.assemble(labels, {name: np.zeros(1) for name in tests.numbers}).without_rows()


def _by_label(rows: Rows, tests: WrittenTests, names: EvaluatedTests, *, quick: bool = True) -> TableMoments:
    """Scalar tests: within one label each is a number times a constant, so sums by label serve all of them."""
    import narwhals.stable.v2 as nw

    space, d = rows.space, rows.space.dimension
    label: Any = nw.lit(0)
    for block in tests.labelled:
        own = block.quick if quick and block.quick is not None else block.label
        label = own if block is tests.labelled[0] else label * block.n_labels + own
    extra = {name: number for name, number in tests.numbers.items() if name not in rows.coordinates}
    frame = rows.frame.with_columns(
        kinds_of(rows, tests, label).alias("label"),
        *(number.alias(f"f_{name}") for name, number in extra.items()),
        *row_residuals(space),
    )
    factors: dict[str, Any] = {_ONE: None}
    factors |= {name: nw.col(f"f_{name}") if name in extra else nw.col(name) for name in tests.numbers}
    sums: dict[str, Any] = {"w": _times(nw.lit(1.0), rows), "ww": _times(nw.lit(1.0), rows, 2)}
    for j in range(d):
        sums[f"ends_{j}"] = off_the_ends(space, j)
    together = not (tests.labelled or rows.careful or any(block.demand is not None for block in tests.blocks))
    if together:
        # One sum over all rows costs less than sums by label, and this one says whether every row was plain: what is
        # added up is never negative for those.
        sums["ends_0"] = nw.when(nw.col("state")).then(sums["ends_0"]).otherwise(nw.lit(-float("inf")))
    for name, factor in factors.items():
        size = nw.lit(1.0) if factor is None else factor
        sums[f"reach_{name}"] = _times(size.abs() if factor is not None else size, rows)
        sums[f"squared_{name}"] = _times(size * size, rows, 2)
        for j in range(d):
            error = nw.col(f"r{j}") if factor is None else nw.col(f"r{j}") * factor
            variance, fourth = error_by_chance(space, j)
            sums[f"first_{name}_{j}"] = _times(error, rows)
            sums[f"cross_{name}_{j}"] = _times(error, rows, 2)
            sums[f"second_{name}_{j}"] = _times(error * error, rows, 2)
            sums[f"power_{name}_{j}"] = _times((error * error) * (error * error), rows, 4)
            squared = None if factor is None else factor * factor
            sums[f"chance2_{name}_{j}"] = _times(variance if squared is None else variance * squared, rows, 2)
            sums[f"chance4_{name}_{j}"] = _times(fourth if squared is None else fourth * (squared * squared), rows, 4)
    columns, aliases = _distinct(sums, rows)
    if not rows.weighted:
        del columns["w"]  # the number of rows
    totals = [nw.len().alias("rows"), *(nw.col(name).sum() for name in columns)]
    if rows.weighted:
        columns["weight"] = nw.col("w")
        totals.append(nw.col("weight").max().alias("max_w"))
    quick = quick and any(block.quick is not None for block in tests.labelled)
    if quick:  # the range of each label shows whether arithmetic put every row where comparisons do
        columns["x"] = nw.col(coordinate(0))
        totals += [nw.col("x").min().alias("least"), nw.col("x").max().alias("most")]
    chosen = [product.alias(name) for name, product in columns.items()]
    if together:
        found = collect(frame.select(*chosen).select(*totals), "measuring moments")
        found["label"] = np.array([0 if math.isfinite(found["ends_0"][0] or 0.0) else UNCLEAR])
    else:
        frame = frame.select(nw.col("label"), *chosen)
        found = collect(frame.group_by("label").agg(*totals), "measuring moments")
    keys, counts = (np.array([-1 if x is None else x for x in found[name].tolist()]) for name in ("label", "rows"))
    if (keys == UNCLEAR).any():
        return _by_label(rows.carefully(), tests, names)
    used, left_out = counted_rows(rows, tests, keys, counts)
    inside = keys >= 0
    keys = keys[inside]
    labels = np.zeros((len(keys), len(tests.labelled)), dtype=np.int64)
    rest = keys.copy()
    for place in range(len(tests.labelled) - 1, -1, -1):
        labels[:, place] = rest % tests.labelled[place].n_labels
        rest //= tests.labelled[place].n_labels
    if quick and not _right(tests, labels, numbers(found["least"])[inside], numbers(found["most"])[inside]):
        return _by_label(rows, tests, names, quick=False)
    if not rows.weighted:
        found["w"] = found["rows"]
    read = {name: numbers(found[aliases[name]])[inside] for name in sums}
    heaviest = float(numbers(found["max_w"])[inside].max()) if rows.weighted else 1.0
    summed = _assembled(tests, names, space, labels, read, used, list(factors), heaviest)
    return TableMoments(summed, used, left_out, rows)


def _right(tests: WrittenTests, labels: NDArray[np.int64], least: FloatArray, most: FloatArray) -> bool:
    """Say whether the rows of every label lie between its cuts."""
    for place, block in enumerate(tests.labelled):
        if block.quick is None:
            continue
        edges = np.array([-np.inf, *(block.cuts or ()), np.inf])
        if (least < edges[labels[:, place]]).any() or (most >= edges[labels[:, place] + 1]).any():
            return False
    return True


def _assembled(
    tests: WrittenTests,
    names: EvaluatedTests,
    space: Space,
    labels: NDArray[np.int64],
    read: Mapping[str, FloatArray],
    rows: int,
    factors: list[str],
    heaviest: float,
) -> MomentSums:
    """Multiply sums by label with the tests' constants."""
    n, d = len(labels), space.dimension
    zero = {name: np.zeros(n) for name in tests.numbers}
    constant = tests.assemble(labels, zero).values
    size = {_ONE: constant}
    for name in tests.numbers:
        size[name] = tests.assemble(labels, {**zero, name: np.ones(n)}).values - constant
    total = float(read["w"].sum())
    require_total(total)

    def moments(what: str, power: int, scale: int, *, coordinates: bool = True) -> FloatArray:
        parts = []
        for j in range(d if coordinates else 1):
            suffix = f"_{j}" if coordinates else ""
            added = [_power(size[name], power).T @ read[f"{what}_{name}{suffix}"] for name in factors]
            parts.append(np.sum(added, axis=0))
        table = np.stack(parts, axis=1)
        return (table if coordinates else np.repeat(table, d, axis=1)).reshape(-1) / total**scale

    extreme = np.array([not read[f"ends_{j}"].any() for j in range(d)])
    if isinstance(space, Simplex):
        extreme[:] = extreme.all()
    known = bool(extreme.any())
    return MomentSums(
        names,
        rows,
        rows,
        heaviest / total,
        float(read["ww"].sum()) / total**2,
        moments("first", 1, 1),
        moments("second", 2, 2),
        moments("power", 4, 4),
        moments("cross", 1, 2),
        None,
        moments("reach", 0, 1, coordinates=False),
        moments("squared", 2, 2, coordinates=False),
        moments("chance2", 2, 2) if known else None,
        moments("chance4", 4, 4) if known else None,
        np.tile(extreme, names.n_tests),
        2 * largest_integrands(names, space),
    )


def _power(values: FloatArray, power: int) -> FloatArray:
    """A power of constants; zero stands for the absolute value."""
    return np.abs(values) if power == 0 else values**power


def _moment_by_moment(rows: Rows, tests: WrittenTests, names: EvaluatedTests, *, products: bool) -> TableMoments:
    """Vector tests, groups of rows, or products: every moment has columns of its own."""
    import narwhals.stable.v2 as nw

    space, d, count = rows.space, rows.space.dimension, names.n_moments
    if products and count > _MOST_PRODUCTS:
        raise InputError(f"method 'bootstrap' takes at most {_MOST_PRODUCTS} moments in a table; got {count}.")
    simplex, scalar = isinstance(space, Simplex), names.scalar
    kinds = rows.frame.select(kinds_of(rows, tests, nw.lit(0)).alias("kind"))
    found = collect(kinds.group_by("kind").agg(nw.len().alias("rows")), "counting rows")
    kind = np.asarray(found["kind"], dtype=np.int64)
    if (kind == UNCLEAR).any():
        return _moment_by_moment(rows.carefully(), tests, names, products=products)
    used, left_out = counted_rows(rows, tests, kind, np.asarray(found["rows"], dtype=np.int64))
    grouped = rows.grouped
    added, named = tests.as_columns()
    frame = rows.used.with_columns(*row_residuals(space), *added)
    unit = np.eye(count)
    written = [tilt_expressions(named, unit[k], d) for k in range(count)]
    frame = frame.with_columns(*(value.alias(f"b{k}_{j}") for k in range(count) for j, value in enumerate(written[k])))
    exact = not grouped and (simplex or scalar)
    weight: Any = nw.col("w") if rows.weighted else nw.lit(1.0)
    first: dict[str, Any] = {"w": weight}
    for j in range(d):
        first[f"ends_{j}"] = off_the_ends(space, j)
    for k in range(count):
        values: list[nw.Expr] = [nw.col(f"b{k}_{j}") for j in range(d)]
        first[f"u{k}"] = weight * sum_of([values[j] * nw.col(f"r{j}") for j in range(d)])
        if simplex and not scalar:
            mean = sum_of([values[j] * nw.col(coordinate(j)) for j in range(d)])
            values = [value - mean for value in values]
        sizes = [value.abs() for value in values]
        # A scalar test has one coordinate that is not zero, so the largest is the test itself.
        first[f"h{k}"] = weight * (nw.max_horizontal(*sizes) if d > 1 else sizes[0])
        first |= {f"{name}{k}": weight * chance for name, chance in spread_by_chance(space, sizes, scalar).items()}
        if exact:
            chance = [error_by_chance(space, j)[1] if scalar else nw.col(coordinate(j)) for j in range(d)]
            fourths = [size * size * size * size * chance[j] for j, size in enumerate(sizes)]
            first[f"far{k}"] = weight * weight * weight * weight * sum_of(fourths)
    frame = frame.select(*([nw.col("g")] if grouped else []), *(column.alias(name) for name, column in first.items()))
    if grouped:
        frame = frame.group_by("g").agg(*(nw.col(name).sum() for name in first))
    sums: dict[str, Any] = {"w": nw.col("w"), "ww": nw.col("w") * nw.col("w")}
    sums |= {f"ends_{j}": nw.col(f"ends_{j}") for j in range(d)}
    for k in range(count):
        u, h, deviation, far = (nw.col(f"{name}{k}") for name in ("u", "h", "deviation", "far"))
        sums |= {
            f"first{k}": u,
            f"second{k}": u * u,
            f"fourth{k}": u * u * u * u,
            f"cross{k}": u * nw.col("w"),
            f"reach{k}": h,
            f"squared{k}": h * h,
            f"chance2{k}": deviation * deviation,
            f"chance4{k}": far if exact else deviation * deviation * far * far,
        }
        if products:
            sums |= {f"product{k}_{other}": u * nw.col(f"u{other}") for other in range(k + 1)}
    frame = frame.select(
        nw.lit(1).alias("all"),
        *(column.alias(f"s_{name}") for name, column in sums.items()),
    )
    found = collect(
        frame.group_by("all").agg(
            nw.len().alias("units"),
            *(nw.col(f"s_{name}").sum() for name in sums),
            nw.col("s_w").max().alias("max_w"),
        ),
        "measuring moments",
    )
    read = {name: float(found[f"s_{name}"][0]) for name in sums}
    total = read["w"]
    require_total(total)

    def moments(name: str, scale: int) -> FloatArray:
        return np.array([read[f"{name}{k}"] for k in range(count)]) / total**scale

    extreme = np.array([read[f"ends_{j}"] == 0.0 for j in range(d)])
    if simplex:
        extreme[:] = extreme.all()
    product = None
    if products:
        product = np.zeros((count, count))
        for k in range(count):
            for other in range(k + 1):
                product[k, other] = product[other, k] = read[f"product{k}_{other}"] / total**2
    units = int(found["units"][0])
    known = bool(extreme.any())
    summed = MomentSums(
        names,
        used,
        units,
        float(found["max_w"][0]) / total,
        read["ww"] / total**2,
        moments("first", 1),
        moments("second", 2),
        moments("fourth", 4),
        moments("cross", 2),
        product,
        moments("reach", 1),
        moments("squared", 2),
        moments("chance2", 2) if known else None,
        moments("chance4", 4) if known else None,
        np.tile(extreme, names.n_tests) if scalar else np.full(count, extreme.all()),
        2 * largest_integrands(names, space),
    )
    return TableMoments(summed, used, left_out, rows)


def _times(expression: nw.Expr, rows: Rows, power: int = 1) -> nw.Expr:
    """Multiply by a power of the weight, if there is one."""
    import narwhals.stable.v2 as nw

    if not rows.weighted:
        return expression
    for _ in range(power):
        expression = expression * nw.col("w")
    return expression


def _distinct(sums: dict[str, Any], rows: Rows) -> tuple[dict[str, Any], dict[str, str]]:
    """Without weights some sums are the same: add them up once."""
    aliases = {name: name for name in sums}
    if not rows.weighted:
        for name in sums:
            if name.startswith("cross_"):
                aliases[name] = "first_" + name[len("cross_") :]
            elif name in ("ww", f"reach_{_ONE}", f"squared_{_ONE}"):
                aliases[name] = "w"
    return {name: sums[name] for name in set(aliases.values())}, aliases
