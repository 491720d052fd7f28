"""Rows of a lazy table on an outcome space: checked, snapped and counted as arrays in memory are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from operator import add, and_, or_
from typing import Any, NamedTuple

import numpy as np

from prudent.arrays import AnyArray, FloatArray, frozen
from prudent.arrays.lazy_narwhals import Expr, Exprs, Frame, nw, where
from prudent.cases.engine import collect, speaking
from prudent.cases.scan import TableCases
from prudent.errors import InputError
from prudent.guarantees.engine_tests import EngineTests, coordinate
from prudent.spaces import ROUNDING, SNAP_TOLERANCE, Space

#: What a row is: on the space, moved onto it, without weight (or dropped as told); from ``BAD`` on the rule it breaks.
PLAIN, SNAPPED, UNUSED, BAD = 0, 1, 2, 3
#: Keys of rows that take no part: as told, refused, or not known before the table is read carefully.
LEFT_OUT, REFUSED, UNCLEAR = -1, -2, -3

#: Sums of fourth powers of weights, over more rows than anybody has, are still numbers.
_LARGEST_WEIGHT = 1e60
_LEAST_TOTAL = 1e-60


class Rule(NamedTuple):
    """What makes a row unusable, in words; whether it may be a missing value; and the condition."""

    words: str
    missing: bool
    broken: Expr


@frozen
class Rows:
    """A lazy frame with the columns ``v0 ..`` (placed forecasts), ``w`` (if there are weights) and ``state``.

    With outcomes also ``y0 ..``, with groups ``g``, and the columns ``played`` with what policies play: expressions of
    the placed forecast, or None for columns that the table has, NULL where a policy refuses the forecast. Read at
    first as if every row were plain: ``state`` is then true for rows that need no care, and one that does makes the
    whole table be read carefully.
    """

    columns: TableCases
    space: Space
    frame: Frame
    weighted: bool
    grouped: bool
    measured: bool
    careful: bool
    played: Mapping[str, Expr | None]
    rules: Sequence[Rule] = field(repr=False)

    def carefully(self, columns: TableCases | None = None) -> Rows:
        """Read the same rows once more (or others), with the care that some of them need."""
        return place_rows(
            columns or self.columns,
            self.space,
            outcomes=self.measured,
            groups=self.grouped,
            careful=True,
            played=self.played,
        )

    @property
    def used(self) -> Frame:
        """The rows that take part."""
        return self.frame.filter(nw.col("state") <= SNAPPED if self.careful else nw.col("state"))

    @property
    def coordinates(self) -> list[str]:
        """Names of the forecast's columns."""
        return [coordinate(j) for j in range(self.space.dimension)]

    def weigh(self, expression: Expr) -> Expr:
        """Multiply by the weight, if there is one."""
        return expression * nw.col("w") if self.weighted else expression

    def refuse(self, tests: EngineTests | None = None) -> None:
        """Count what is wrong, by file where files are known, and raise."""
        from prudent.cases.row_diagnostics import diagnosis

        raise InputError(diagnosis(self, tests))


def place_rows(
    columns: TableCases,
    space: Space,
    *,
    outcomes: bool = False,
    groups: bool = False,
    careful: bool = False,
    played: Mapping[str, Expr | None] | None = None,
) -> Rows:
    """Put the forecasts of a table onto a space, lazily; rows that memory would refuse are marked."""
    if len(columns.forecasts) != space.dimension:
        raise InputError(
            f"forecasts must name {space.dimension} column(s), one per coordinate of {space!r}; "
            f"got {list(columns.forecasts)}."
        )
    inner = [f"x{j}" for j in range(space.dimension)]
    selected = [nw.col(name).cast(nw.Float64).alias(x) for name, x in zip(columns.forecasts, inner, strict=True)]
    results = [f"z{j}" for j in range(space.dimension)] if outcomes else []
    if outcomes:
        selected += [outcome.alias(z) for outcome, z in zip(outcome_columns(columns, space), results, strict=True)]
    kept = []
    if columns.weights is not None:
        selected.append(nw.col(columns.weights).cast(nw.Float64).alias("w"))
        kept.append("w")
    grouped = groups and columns.periods is not None
    if grouped:
        group = nw.col(str(columns.periods))
        if columns.frame.collect_schema()[str(columns.periods)].is_float():  # NaN names no group
            group = nw.when(~_is_nan(group)).then(group)
        selected.append(group.alias("g"))
        kept.append("g")
    played = {} if played is None else played
    carried = [name for name, expression in played.items() if expression is None]
    selected += [nw.col(name) for name in carried]
    with speaking("reading the table"):
        frame = columns.frame.select(*selected)
    rules = _rules(columns, space, inner, results, carried, grouped=grouped)
    if careful:
        state = _state(columns, space, inner, results, rules)
    else:
        conditions = [_within(space, point, 0.0) for point in (inner, results) if point]
        if columns.weights is not None:
            conditions += [nw.col("w") > 0.0, nw.col("w") <= _LARGEST_WEIGHT]
        if columns.engine == "duckdb" and columns.connection is None:  # see _is_nan; a sum shows NaN in any column
            weights = kept[: columns.weights is not None]
            conditions.append(_total([nw.col(name) for name in (*inner, *results, *weights)]).is_finite())
        known = ["g", *carried] if grouped else carried
        state = _all([*conditions, *(~nw.col(name).is_null() for name in known)])
    placed = _placed(space, inner, "v", careful=careful)
    if outcomes:
        placed += _placed(space, results, "y", careful=careful)
    frame = frame.select(*placed, state.alias("state"), *(nw.col(name) for name in kept + carried))
    written = [expression.alias(name) for name, expression in played.items() if expression is not None]
    if written:
        frame = frame.with_columns(*written)
    return Rows(columns, space, frame, columns.weights is not None, grouped, outcomes, careful, played, rules)


def _rules(
    columns: TableCases, space: Space, inner: list[str], results: list[str], carried: list[str], *, grouped: bool
) -> list[Rule]:
    """List what makes a row unusable; a row counts by the first rule that it breaks."""
    rules = []
    for name, x in zip(columns.forecasts, inner, strict=True):
        rules += [Rule(f"with NULL in {name!r}", True, nw.col(x).is_null())]
        rules += [Rule(f"with NaN in {name!r}", True, _is_nan(nw.col(x)))]
    if columns.weights is not None:
        weight, words = nw.col("w"), f"with {columns.weights!r} below 0 or above {_LARGEST_WEIGHT:g}"
        rules += [Rule(f"with NULL or NaN in {columns.weights!r}", True, _absent("w"))]
        rules += [Rule(words, False, (weight < 0.0) | (weight > _LARGEST_WEIGHT))]
    rules += [Rule(f"outside {space!r}", False, ~_within(space, inner, SNAP_TOLERANCE))]
    if grouped:
        rules += [Rule(f"with NULL or NaN in {columns.periods!r}", True, nw.col("g").is_null())]
    if carried:
        refused = _any([nw.col(name).is_null() for name in carried])
        rules += [Rule("whose forecast a policy refuses, though it lies in the space", False, refused)]
    if results:
        broken = _any([*map(_absent, results), ~_within(space, results, SNAP_TOLERANCE)])
        rules += [Rule(f"whose outcome is missing or outside {space!r}", True, broken)]
    return rules


def _state(columns: TableCases, space: Space, inner: list[str], results: list[str], rules: Sequence[Rule]) -> Expr:
    """Say of every row whether it takes part; NULL and NaN meet no comparison."""
    state = where(_within(space, inner, ROUNDING), PLAIN, SNAPPED)
    if columns.weights is not None:
        state = where(nw.col("w") == 0.0, UNUSED, state)
    for number in reversed(range(len(rules))):
        state = where(rules[number].broken, BAD + number, state)
        if number == len(rules) - 1 and results and columns.missing == "drop outcomes":
            state = where(_any(list(map(_absent, results))), UNUSED, state)
    if columns.missing == "drop":
        watched = [*inner, *results, *(["w"] if columns.weights is not None else [])]
        state = where(_any(list(map(_absent, watched))), UNUSED, state)
    return state


def _absent(name: str) -> Expr:
    return nw.col(name).is_null() | _is_nan(nw.col(name))


def _is_nan(number: Expr) -> Expr:
    """Write that a number is NaN, which DuckDB's own test overlooks where the statistics of a Parquet file do."""
    return ~number.is_finite() & (number != float("inf")) & (number != -float("inf"))


def _within(space: Space, names: list[str], tolerance: float) -> Expr:
    """Write that a point is at most so far outside the space, relative to its width."""
    points = [nw.col(name) for name in names]
    if space.is_simplex:
        return _all([*(x >= -tolerance for x in points), (_total(points) - 1.0).abs() <= max(tolerance, ROUNDING)])
    low, high = space.bounds
    least, most = (low - tolerance * space.widths).tolist(), (high + tolerance * space.widths).tolist()
    return _all([test for x, low, high in zip(points, least, most, strict=True) for test in (x >= low, x <= high)])


def _placed(space: Space, names: list[str], prefix: str, *, careful: bool) -> Exprs:
    """Move points onto the space; where no care is needed they are there already."""
    points = [nw.col(name) for name in names]
    if not careful:
        moved = points
    elif not space.is_simplex:
        bounds = zip(points, *(bound.tolist() for bound in space.bounds), strict=True)
        moved = [where(x < low, low, where(x > high, high, x)) for x, low, high in bounds]
    else:
        positive = [where(x < 0.0, 0.0, x) for x in points]
        off = _any([*(x < -ROUNDING for x in points), (_total(points) - 1.0).abs() > ROUNDING])
        total = where(off, _total(positive), 1.0)
        moved = [x / total for x in positive]
    return [x.alias(f"{prefix}{j}") for j, x in enumerate(moved)]


def _total(expressions: Exprs) -> Expr:
    return reduce(add, expressions)


def _all(conditions: Exprs) -> Expr:
    return reduce(and_, conditions)


def _any(conditions: Exprs) -> Expr:
    return reduce(or_, conditions)


def some_rows(rows: Rows, count: int = 1_000) -> FloatArray:
    """Fetch a few forecasts, to tell later whether rows are those of the fit."""
    used = rows.used.select(*rows.coordinates).head(count)
    found = collect(used, "reading a few rows")
    return np.stack([np.asarray(found[name], dtype=np.float64) for name in rows.coordinates], axis=1)


def n_without_weight(rows: Rows) -> int:
    """Count rows that take no part because their weight is zero."""
    weightless = (nw.col("state") == UNUSED) & (nw.col("w") == 0.0)
    found = collect(rows.carefully().frame.filter(weightless).select(nw.len().alias("rows")), "counting rows")
    return int(found["rows"][0])


def require_total(total: float) -> None:
    """Refuse weights whose powers would vanish."""
    if total < _LEAST_TOTAL:
        raise InputError(
            f"weights must add up to at least {_LEAST_TOTAL:g}; got {total:g}. Multiply them all by the same number, "
            f"which changes nothing else."
        )


def outcome_columns(columns: TableCases, space: Space) -> Exprs:
    """Write the outcome as one expression per coordinate; NULL where it is missing, negative where it is no class."""
    names = columns.outcomes
    if not names:
        raise InputError("outcomes must be named: without them nothing can be measured. Say scan(outcomes=...).")
    if len(names) == space.dimension:
        return [nw.col(name).cast(nw.Float64) for name in names]
    if not space.reads_labels(len(names)):
        raise InputError(
            f"outcomes must name {space.dimension} column(s), one per coordinate of {space!r}"
            f"{', or one column of class labels' if space.reads_labels(1) else ''}; got {list(names)}."
        )
    label, places = _labels(columns, space)
    zero, one, nowhere = nw.lit(0.0), nw.lit(1.0), nw.lit(-1.0)
    other = where(label.is_in(list(places)), zero, nowhere)  # outside the space: it is refused
    known = ~label.is_null()
    written: Exprs = []
    for place in range(space.dimension):
        own = [name for name, position in places.items() if position == place]
        here = where(label.is_in(own), one, other) if own else other
        written.append(nw.when(known).then(here))
    return written


def with_known_outcomes(columns: TableCases, space: Space) -> TableCases:
    """Leave rows out whose outcome is missing, if the columns say so; else such rows are refused where they are met."""
    outcomes = outcome_columns(columns, space)
    if columns.missing == "refuse":
        return columns
    frame = columns.frame.filter(*(~(outcome.is_null() | _is_nan(outcome)) for outcome in outcomes))
    return replace(columns, table=nw.to_native(frame), frame=frame)


def _labels(columns: TableCases, space: Space) -> tuple[Expr, Mapping[Any, int]]:
    """Write the label as a value that engines compare with those that classes may have, as memory does."""
    name = columns.outcomes[0]
    label, kind = nw.col(name), columns.frame.collect_schema()[name]
    places = space.label_positions()
    if kind.is_numeric() or kind == nw.Boolean:
        numbers = {value: j for value, j in places.items() if isinstance(value, (int, float))}
        if not numbers:
            raise InputError(f"outcomes must be among the classes {list(places)}; {name!r} holds numbers.")
        if kind.is_integer():  # floats do not tell long ones apart
            return label.cast(nw.Int64), {int(value): j for value, j in numbers.items() if float(value).is_integer()}
        value = label.cast(nw.Float64)
        floats = {float(number): j for number, j in numbers.items()}
        return (nw.when(~_is_nan(value)).then(value) if kind.is_float() else value), floats
    if kind not in (nw.String, nw.Categorical, nw.Enum):
        raise InputError(f"outcomes must be class labels, as text or numbers; {name!r} has type {kind}. Cast it first.")
    if columns.files:
        return label, space.text_positions()
    texts = {value: j for value, j in places.items() if isinstance(value, str)}
    if not texts:
        raise InputError(f"outcomes must be among the classes {list(places)}; {name!r} holds text.")
    return label.cast(nw.String), texts


def kinds_of(rows: Rows, tests: EngineTests, inside: Any) -> Any:
    """Number rows that take part by an expression, and the others by why they do not."""
    state, kind = nw.col("state"), inside
    for condition, _ in tests.conditions:
        kind = where(condition, kind, REFUSED)
    if not rows.careful:
        return where(state, kind, UNCLEAR)
    aside = where(state == UNUSED, LEFT_OUT, REFUSED)
    return where(state <= SNAPPED, kind, aside)


def counted_rows(rows: Rows, tests: EngineTests, kinds: AnyArray, counts: AnyArray) -> tuple[int, int]:
    """Count rows that take part and that are left out; refuse bad ones."""
    if (kinds == REFUSED).any():
        rows.refuse(tests)
    used = int(counts[kinds >= 0].sum())
    if not used:
        raise InputError("the table has no row that takes part: it is empty, or all weights are zero or missing.")
    return used, int(counts[kinds == LEFT_OUT].sum())


def without_missing(columns: TableCases, names: tuple[str, ...]) -> TableCases:
    """Keep the rows in which some columns are known; what else is wrong with them is refused."""
    schema = columns.frame.collect_schema()
    known = [~nw.col(name).is_null() for name in names]
    known += [~_is_nan(nw.col(name)) for name in names if schema[name].is_float()]
    frame = columns.frame.filter(*known)
    return replace(columns, table=nw.to_native(frame), frame=frame, missing="refuse", files=())
