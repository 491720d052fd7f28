"""Rows of a lazy table in the order of their ids, a part at a time: for what is sequential by nature."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from prudent.arrays import FloatArray, frozen
from prudent.arrays.lazy_narwhals import nw, where
from prudent.cases.engine import collect, numbers
from prudent.cases.engine_rows import outcome_columns, place_rows, refuse_broken_rows, stacked
from prudent.cases.scan import TableCases
from prudent.errors import InputError
from prudent.spaces import Space


@frozen
class Part:
    """Some rows: ids, forecasts ``(n, d)`` on the space, and outcomes ``(n, d)``, NaN where missing; or none."""

    ids: list[Any]
    forecasts: FloatArray
    outcomes: FloatArray | None


def rows_in_order(columns: TableCases, space: Space) -> Iterator[Part]:
    """Read a table by increasing id, in parts, with one query for each.

    Whatever can be refused is refused before the first part.
    """
    _check(columns, space)
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
        yield Part(ids, points[0], points[1] if columns.outcomes else None)
        last = ids[-1]


def _check(columns: TableCases, space: Space) -> None:
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
    known = columns.frame.select(nw.col(name).alias("id"))
    repeated = known.group_by("id").agg(nw.len().alias("rows")).filter(nw.col("id").is_null() | (nw.col("rows") > 1))
    missing = where(nw.col("id").is_null(), nw.col("rows"), 0)
    several = where(nw.col("id").is_null(), 0, 1)
    found = collect(repeated.select(missing.sum().alias("missing"), several.sum().alias("several")), "checking ids")
    n_missing, n_several = (int(numbers(found[column])[0]) for column in ("missing", "several"))
    if n_missing:
        raise InputError(f"id must be known in every row; {name!r} is NULL in {n_missing:,}.")
    if n_several:
        raise InputError(
            f"id must be different in every row, or their order is not known; {n_several:,} in {name!r} come more than "
            f"once."
        )
