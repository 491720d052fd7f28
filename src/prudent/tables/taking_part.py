"""Which rows of a table take part in a sum, and why others do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from prudent.errors import InputError
from prudent.guarantees.written import WrittenTests
from prudent.tables.columns import Columns
from prudent.tables.partition import LEFT_OUT, REFUSED, UNCLEAR
from prudent.tables.rows import SNAPPED, UNUSED, Rows

__all__ = ["counted_rows", "kinds_of", "without_missing"]


def kinds_of(rows: Rows, tests: WrittenTests, inside: Any) -> Any:
    """Number rows that take part by an expression, and the others by why they do not."""
    import narwhals.stable.v2 as nw

    state, kind = nw.col("state"), inside
    for block in tests.blocks:
        if block.demand is not None:
            kind = nw.when(block.demand).then(kind).otherwise(nw.lit(REFUSED))
    if not rows.careful:
        return nw.when(state).then(kind).otherwise(nw.lit(UNCLEAR))
    aside = nw.when(state == UNUSED).then(nw.lit(LEFT_OUT)).otherwise(nw.lit(REFUSED))
    return nw.when(state <= SNAPPED).then(kind).otherwise(aside)


def counted_rows(rows: Rows, tests: WrittenTests, kinds: NDArray[Any], counts: NDArray[Any]) -> tuple[int, int]:
    """Count rows that take part and that are left out; refuse bad ones."""
    if (kinds == REFUSED).any():
        rows.refuse(tests)
    used = int(counts[kinds >= 0].sum())
    if not used:
        raise InputError("the table has no row that takes part: it is empty, or all weights are zero or missing.")
    return used, int(counts[kinds == LEFT_OUT].sum())


def without_missing(columns: Columns, names: tuple[str, ...]) -> Columns:
    """Keep the rows in which some columns are known; what else is wrong with them is refused."""
    import narwhals.stable.v2 as nw

    schema = columns.frame.collect_schema()
    known = [~nw.col(name).is_null() for name in names]
    known += [~nw.col(name).is_nan() for name in names if schema[name].is_float()]
    frame = columns.frame.filter(*known)
    return replace(columns, table=nw.to_native(frame), frame=frame, missing="refuse", files=())
