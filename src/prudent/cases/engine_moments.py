"""The sums that an audit needs, added up in the engine; :mod:`prudent.cases.moment_terms` has their formulas."""

from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.arrays.lazy_narwhals import nw
from prudent.cases.engine import collect, numbers
from prudent.cases.engine_rows import UNCLEAR, Rows, counted_rows, kinds_of, require_total
from prudent.cases.intervals import require_method
from prudent.cases.moment_estimates import Measurement, estimates_from_sums
from prudent.cases.moment_sums import MomentSums
from prudent.cases.moment_terms import POWERS, Arithmetic, raised, row_terms, scalar_terms, unit_terms
from prudent.guarantees import Guarantee
from prudent.guarantees.engine_tests import EngineLabel, EngineTests, coordinate, engine_tests, with_ends
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.spaces import Space

_ONE = "1"


def measure_table(guarantee: Guarantee, rows: Rows, confidence: float, method: str = "auto") -> Measurement:
    """Estimate the moments of a resolved guarantee in one pass; groups of rows are units where there are groups."""
    require_method(method)
    tests = engine_tests(guarantee, rows.space)
    labels = np.zeros((1, len(tests.labels)), dtype=np.int64)
    names = tests.assemble(labels, {name: np.zeros(1) for name in tests.numbers}).without_rows()
    add_up = _by_label if names.scalar and not rows.grouped else _by_moment
    sums, left_out = add_up(rows, tests, names)
    found = estimates_from_sums(sums, confidence, method, "group" if rows.grouped else "row")
    return Measurement(found, sums.n_rows, left_out)


def _by_label(rows: Rows, tests: EngineTests, names: EvaluatedTests, *, quick: bool = True) -> tuple[MomentSums, int]:
    """Scalar tests: within one label each is a number times a constant, so sums by label serve all of them."""
    space, d = rows.space, rows.space.dimension
    label: Any = nw.lit(0)
    own_labels = tests.labels
    for place, own in enumerate(own_labels):
        expression = own.approximate if quick and own.approximate is not None else own.expression
        label = label * own.n_labels + expression if place else expression
    extra = {name: number for name, number in tests.numbers.items() if name not in rows.coordinates}
    frame = rows.frame.with_columns(
        kinds_of(rows, tests, label).alias("label"),
        *(number.alias(f"f_{name}") for name, number in extra.items()),
        *_errors(d),
    )
    weight = nw.col("w") if rows.weighted else None
    factors: dict[str, Any] = {_ONE: weight}
    for name in tests.numbers:
        number = nw.col(f"f_{name}" if name in extra else name)
        factors[name] = number if weight is None else number * weight

    def column(name: str, factor: str, j: int) -> str:
        """Name a column of sums; without weights some are the same."""
        if name in ("reach", "squared_reach"):
            return "rows" if factor == _ONE and weight is None else f"{name}_{factor}"
        return f"{'first' if name == 'cross' and weight is None else name}_{factor}_{j}"

    columns = _off_the_ends(space)
    for j, (low, high) in enumerate(_bounds(space)):
        terms = scalar_terms(weight, nw.col(f"r{j}"), nw.col(coordinate(j)), low, high)
        for factor, share in factors.items():
            columns |= {column(name, factor, j): _product(share, POWERS[name].test, terms[name]) for name in POWERS}
    columns.pop("rows", None)
    totals = [nw.len().alias("rows"), *(nw.col(name).sum() for name in columns)]
    if weight is not None:
        columns["weight"] = weight
        totals.append(nw.col("weight").max().alias("max_w"))
    quick = quick and any(own.approximate is not None for own in own_labels)
    if quick:  # the range of each label shows whether arithmetic put every row where comparisons do
        columns["x"] = nw.col(coordinate(0))
        totals += [nw.col("x").min().alias("least"), nw.col("x").max().alias("most")]
    frame = frame.select("label", *(product.alias(name) for name, product in columns.items()))
    found = collect(frame.group_by("label").agg(*totals), "measuring moments")
    keys, counts = (np.asarray(found[name], dtype=np.int64) for name in ("label", "rows"))
    if (keys == UNCLEAR).any():
        return _by_label(rows.carefully(), tests, names)
    used, left_out = counted_rows(rows, tests, keys, counts)
    inside = keys >= 0
    labels = np.zeros((inside.sum(), len(own_labels)), dtype=np.int64)
    rest = keys[inside]
    for place in range(len(own_labels) - 1, -1, -1):
        rest, labels[:, place] = np.divmod(rest, own_labels[place].n_labels)

    def read(name: str) -> FloatArray:
        return numbers(found[name])[inside]

    if quick and not _right(own_labels, labels, read("least"), read("most")):
        return _by_label(rows, tests, names, quick=False)
    # Multiply sums by label with the tests' constants.
    zero = {name: np.zeros(len(labels)) for name in tests.numbers}
    constant = tests.assemble(labels, zero).values
    constants = {_ONE: constant}
    for name in tests.numbers:
        constants[name] = tests.assemble(labels, {**zero, name: np.ones(len(labels))}).values - constant

    def moments(name: str, j: int) -> FloatArray:
        power = POWERS[name].test
        powers = {factor: raised(values if power else np.abs(values), power) for factor, values in constants.items()}
        return np.sum([powers[factor].T @ read(column(name, factor, j)) for factor in factors], axis=0)

    total = float(read(column("reach", _ONE, 0)).sum())
    require_total(total)
    sums = MomentSums.from_totals(
        names,
        space,
        used,
        used,
        total,
        1.0 if weight is None else float(read("max_w").max()),
        float(read(column("squared_reach", _ONE, 0)).sum()),
        {name: np.stack([moments(name, j) for j in range(d)], axis=1).reshape(-1) for name in POWERS},
        np.array([not read(f"ends_{j}").any() for j in range(d)]),
    )
    return sums, left_out


def _right(own_labels: list[EngineLabel], labels: IntArray, least: FloatArray, most: FloatArray) -> bool:
    """Say whether the rows of every label lie between its cuts."""
    for place, own in enumerate(own_labels):
        if own.approximate is None:
            continue
        edges = with_ends(own.cuts or ())
        if (least < edges[labels[:, place]]).any() or (most >= edges[labels[:, place] + 1]).any():
            return False
    return True


def _by_moment(rows: Rows, tests: EngineTests, names: EvaluatedTests) -> tuple[MomentSums, int]:
    """Vector tests or groups of rows: every moment has columns of its own."""
    space, d, count = rows.space, rows.space.dimension, names.n_moments
    kinds = rows.frame.select(kinds_of(rows, tests, nw.lit(0)).alias("kind"))
    found = collect(kinds.group_by("kind").agg(nw.len().alias("rows")), "counting rows")
    kind = np.asarray(found["kind"], dtype=np.int64)
    if (kind == UNCLEAR).any():
        return _by_moment(rows.carefully(), tests, names)
    used, left_out = counted_rows(rows, tests, kind, np.asarray(found["rows"], dtype=np.int64))
    added, named = tests.as_columns()
    # A scalar test has one coordinate that is not zero.
    coordinates = [[k % d] if names.scalar else list(range(d)) for k in range(count)]
    written = [named.tilts(one) for one in np.eye(count)]
    frame = rows.used.with_columns(*_errors(d), *added)
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
    summed = MomentSums.from_totals(
        names,
        space,
        used,
        int(found["units"][0]),
        read["w"],
        float(found["max_w"][0]),
        read["ww"],
        {name: np.array([read[f"{name}_{k}"] for k in range(count)]) for name in POWERS},
        np.array([read[f"ends_{j}"] == 0.0 for j in range(d)]),
    )
    return summed, left_out


def _errors(dimension: int) -> list[Any]:
    """Write outcome minus forecast, coordinate by coordinate."""
    return [(nw.col(f"y{j}") - nw.col(coordinate(j))).alias(f"r{j}") for j in range(dimension)]


def _bounds(space: Space) -> list[tuple[float, float]]:
    return list(zip(*(end.tolist() for end in space.bounds), strict=True))


def _off_the_ends(space: Space) -> dict[str, Any]:
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
