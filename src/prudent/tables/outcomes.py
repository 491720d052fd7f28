"""Outcomes of a lazy table as points of the space: numbers, rows of probabilities, or class labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from prudent.errors import InputError
from prudent.spaces import Simplex, Space
from prudent.tables.columns import Columns
from prudent.tables.sample import class_index

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["outcome_columns", "with_known_outcomes"]


def outcome_columns(columns: Columns, space: Space) -> list[nw.Expr]:
    """Write the outcome as one expression per coordinate; NULL where it is missing, negative where it is no class."""
    import narwhals.stable.v2 as nw

    names = columns.outcomes
    if not names:
        raise InputError("outcomes must be named: without them nothing can be measured. Say columns(outcomes=...).")
    if len(names) == space.dimension and not (isinstance(space, Simplex) and len(names) == 1):
        return [nw.col(name).cast(nw.Float64) for name in names]
    if not isinstance(space, Simplex) or len(names) != 1:
        raise InputError(
            f"outcomes must name {space.dimension} column(s), one per coordinate of {space!r}"
            f"{', or one column of class labels' if isinstance(space, Simplex) else ''}; got {list(names)}."
        )
    label, places = _labels(columns, space)
    zero, one, nowhere = nw.lit(0.0), nw.lit(1.0), nw.lit(-1.0)
    other = nw.when(label.is_in(list(places))).then(zero).otherwise(nowhere)  # outside the space: it is refused
    known = ~label.is_null()
    written: list[nw.Expr] = []
    for place in range(space.n_classes):
        own = [name for name, position in places.items() if position == place]
        here = nw.when(label.is_in(own)).then(one).otherwise(other) if own else other
        written.append(nw.when(known).then(here))
    return written


def with_known_outcomes(columns: Columns, space: Space) -> Columns:
    """Leave rows out whose outcome is missing, if the columns say so; else such rows are refused where they are met."""
    import narwhals.stable.v2 as nw

    outcomes = outcome_columns(columns, space)
    if columns.missing == "refuse":
        return columns
    known = ~(outcomes[0].is_null() | outcomes[0].is_nan())
    for outcome in outcomes[1:]:
        known = known & ~(outcome.is_null() | outcome.is_nan())
    frame = columns.frame.filter(known)
    return replace(columns, table=nw.to_native(frame), frame=frame)


def _labels(columns: Columns, space: Simplex) -> tuple[nw.Expr, Mapping[Any, int]]:
    """Write the label as a value that engines compare with those that classes may have, as memory does."""
    import narwhals.stable.v2 as nw

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
        return (nw.when(~value.is_nan()).then(value) if kind.is_float() else value), floats
    if kind not in (nw.String, nw.Categorical, nw.Enum):
        raise InputError(f"outcomes must be class labels, as text or numbers; {name!r} has type {kind}. Cast it first.")
    if columns.written:
        return label.str.strip_chars(), class_index(space)
    texts = {value: j for value, j in places.items() if isinstance(value, str)}
    if not texts:
        raise InputError(f"outcomes must be among the classes {list(places)}; {name!r} holds text.")
    return label.cast(nw.String), texts
