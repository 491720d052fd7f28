"""Rows of a lazy table on an outcome space: checked, snapped and counted as arrays in memory are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.written import Block, WrittenTests, coordinate
from prudent.spaces import SNAP_TOLERANCE, Box, Space
from prudent.tables.columns import Columns
from prudent.tables.engine import collect, speaking

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = [
    "BAD",
    "LARGEST_WEIGHT",
    "PLAIN",
    "SNAPPED",
    "UNUSED",
    "Rows",
    "n_without_weight",
    "place_rows",
    "require_total",
    "some_rows",
    "within",
]

#: What a row is: on the space, moved onto it, without weight (or dropped as told), or not acceptable.
PLAIN, SNAPPED, UNUSED, BAD = 0, 1, 2, 3

#: Sums of fourth powers of weights, over more rows than anybody has, are still numbers.
LARGEST_WEIGHT = 1e60

_LEAST_TOTAL = 1e-60
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Rows:
    """A lazy frame with the columns ``v0 ..`` (placed forecasts), ``w`` (if there are weights) and ``state``.

    With outcomes also ``y0 ..``, with groups ``g``, and the columns ``played`` with what policies play: expressions of
    the placed forecast, or None for columns that the table has, NULL where a policy refuses the forecast. Read at
    first as if every row were plain: ``state`` is then true for rows that need no care, and one that does makes the
    whole table be read carefully.
    """

    columns: Columns
    space: Space
    frame: nw.LazyFrame[Any]
    weighted: bool
    grouped: bool = False
    measured: bool = False
    careful: bool = False
    played: Mapping[str, nw.Expr | None] = field(default_factory=dict)

    def carefully(self) -> Rows:
        """Read the same rows once more, with the care that some of them need."""
        return place_rows(
            self.columns, self.space, outcomes=self.measured, groups=self.grouped, careful=True, played=self.played
        )

    @property
    def used(self) -> nw.LazyFrame[Any]:
        """The rows that take part."""
        import narwhals.stable.v2 as nw

        return self.frame.filter(nw.col("state") <= SNAPPED if self.careful else nw.col("state"))

    @property
    def coordinates(self) -> list[str]:
        """Names of the forecast's columns."""
        return [coordinate(j) for j in range(self.space.dimension)]

    def require_labels(self, blocks: Sequence[Block]) -> None:
        """Refuse labels that the engine cannot compute: Dask does not compare columns with the largest of them."""
        if self.columns.engine == "dask" and any(block.label is not None and block.cuts is None for block in blocks):
            raise InputError(
                "these tests ask which coordinate or action is best for a row, and Dask cannot compare a column with "
                "the largest of several. Give the same files to DuckDB, Polars or Spark."
            )

    def refuse(self, tests: WrittenTests | None = None) -> None:
        """Count what is wrong, by file where files are known, and raise."""
        from prudent.tables.bad_rows import diagnosis

        raise InputError(diagnosis(self, tests))


def place_rows(
    columns: Columns,
    space: Space,
    *,
    outcomes: bool = False,
    groups: bool = False,
    careful: bool = False,
    played: Mapping[str, nw.Expr | None] | None = None,
    reason: Callable[[list[str], list[str]], nw.Expr] | None = None,
) -> Rows:
    """Put the forecasts of a table onto a space, lazily; rows that memory would refuse are marked.

    ``reason`` writes a column of that name from the columns of forecasts and of outcomes.
    """
    import narwhals.stable.v2 as nw

    if len(columns.forecasts) != space.dimension:
        raise InputError(
            f"forecasts must name {space.dimension} column(s), one per coordinate of {space!r}; "
            f"got {list(columns.forecasts)}."
        )
    raw = [nw.col(name).cast(nw.Float64) for name in columns.forecasts]
    inner = [f"x{j}" for j in range(space.dimension)]
    selected = [expression.alias(name) for expression, name in zip(raw, inner, strict=True)]
    if columns.weight is not None:
        selected.append(nw.col(columns.weight).cast(nw.Float64).alias("w"))
    kept = []
    if outcomes:
        from prudent.tables.outcomes import outcome_columns

        selected += [outcome.alias(f"z{j}") for j, outcome in enumerate(outcome_columns(columns, space))]
    if groups and columns.group is not None:
        group = nw.col(columns.group)
        if columns.frame.collect_schema()[columns.group].is_float():  # NaN names no group
            group = nw.when(~group.is_nan()).then(group)
        selected.append(group.alias("g"))
        kept.append("g")
    played = {} if played is None else played
    carried = [name for name, expression in played.items() if expression is None]
    selected += [nw.col(name) for name in carried]
    with speaking("reading the table"):
        frame = columns.frame.select(*selected)
    grouped = groups and columns.group is not None
    results = [f"z{j}" for j in range(space.dimension)] if outcomes else []
    known = (["g"] if grouped else []) + carried
    state = (_state if careful else _plain)(columns, space, inner, results, known)
    placed = _placed(space, inner, "v", careful=careful)
    if outcomes:
        placed += _placed(space, results, "y", careful=careful)
    weight = [nw.col("w")] if columns.weight is not None else []
    extra = [] if reason is None else [reason(inner, results).alias("reason")]
    frame = frame.select(*placed, *weight, state.alias("state"), *(nw.col(name) for name in kept + carried), *extra)
    written = [expression.alias(name) for name, expression in played.items() if expression is not None]
    if written:
        frame = frame.with_columns(*written)
    return Rows(columns, space, frame, columns.weight is not None, grouped, outcomes, careful, played)


def _plain(columns: Columns, space: Space, inner: list[str], results: list[str], known: list[str]) -> nw.Expr:
    """Mark the rows that memory would take as they are."""
    import narwhals.stable.v2 as nw

    conditions = [within(space, inner, 0.0)]
    if columns.weight is not None:
        conditions += [nw.col("w") > 0.0, nw.col("w") <= LARGEST_WEIGHT]
    if results:
        conditions.append(within(space, results, 0.0))
    conditions += [~nw.col(name).is_null() for name in known]
    return _all(conditions)


def _state(columns: Columns, space: Space, inner: list[str], results: list[str], known: list[str]) -> nw.Expr:
    """Say of every row whether it takes part; NULL and NaN meet no comparison."""
    import narwhals.stable.v2 as nw

    without_outcome = [within(space, inner, SNAP_TOLERANCE), *(~nw.col(name).is_null() for name in known)]
    if columns.weight is not None:
        without_outcome.append((nw.col("w") >= 0.0) & (nw.col("w") <= LARGEST_WEIGHT))
    demanded = [*without_outcome, within(space, results, SNAP_TOLERANCE)] if results else without_outcome
    moved = nw.when(within(space, inner, _ROUNDING)).then(nw.lit(PLAIN)).otherwise(nw.lit(SNAPPED))
    state = nw.when(_all(demanded)).then(moved).otherwise(nw.lit(BAD))
    if columns.weight is not None:
        state = nw.when((nw.col("w") == 0.0) & _all(demanded)).then(nw.lit(UNUSED)).otherwise(state)
    watched = [] if columns.missing == "refuse" else list(results)
    if columns.missing == "drop":
        watched += inner if columns.weight is None else [*inner, "w"]
    if watched:
        gone = _any([nw.col(name).is_null() | nw.col(name).is_nan() for name in watched])
        if columns.missing == "drop outcomes":  # the rest of the row must be right
            gone = _all([gone, *without_outcome])
        state = nw.when(gone).then(nw.lit(UNUSED)).otherwise(state)
    return state


def within(space: Space, names: list[str], tolerance: float) -> nw.Expr:
    """Write that a point is at most so far outside the space, relative to its width."""
    import narwhals.stable.v2 as nw

    points = [nw.col(name) for name in names]
    if isinstance(space, Box):
        bounds = zip(points, space.lower, space.upper, strict=True)
        pairs = [(x, low - tolerance * (high - low), high + tolerance * (high - low)) for x, low, high in bounds]
        return _all([condition for x, low, high in pairs for condition in (x >= low, x <= high)])
    return _all([*(x >= -tolerance for x in points), (_sum(points) - 1.0).abs() <= max(tolerance, _ROUNDING)])


def _placed(space: Space, names: list[str], prefix: str, *, careful: bool) -> list[nw.Expr]:
    """Move points onto the space; where no care is needed they are there already."""
    import narwhals.stable.v2 as nw

    points = [nw.col(name) for name in names]
    if not careful:
        moved = points
    elif isinstance(space, Box):
        moved = [
            nw.when(x < low).then(nw.lit(low)).otherwise(nw.when(x > high).then(nw.lit(high)).otherwise(x))
            for x, low, high in zip(points, space.lower, space.upper, strict=True)
        ]
    else:
        positive = [nw.when(x < 0.0).then(nw.lit(0.0)).otherwise(x) for x in points]
        off = _any([*(x < -_ROUNDING for x in points), (_sum(points) - 1.0).abs() > _ROUNDING])
        total = nw.when(off).then(_sum(positive)).otherwise(nw.lit(1.0))
        moved = [x / total for x in positive]
    return [x.alias(f"{prefix}{j}") for j, x in enumerate(moved)]


def _sum(expressions: list[nw.Expr]) -> nw.Expr:
    total = expressions[0]
    for expression in expressions[1:]:
        total = total + expression
    return total


def _all(conditions: list[nw.Expr]) -> nw.Expr:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result


def _any(conditions: list[nw.Expr]) -> nw.Expr:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result | condition
    return result


def some_rows(rows: Rows, count: int = 1_000) -> FloatArray:
    """Fetch a few forecasts, to tell later whether rows are those of the fit."""
    used = rows.used.select(*rows.coordinates).head(count)
    found = collect(used, "reading a few rows")
    return np.stack([np.asarray(found[name], dtype=np.float64) for name in rows.coordinates], axis=1)


def n_without_weight(rows: Rows) -> int:
    """Count rows that take no part because their weight is zero."""
    import narwhals.stable.v2 as nw

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
