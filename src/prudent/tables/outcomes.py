"""Outcomes of a lazy table as points of the space: numbers, rows of probabilities, or class labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prudent.errors import InputError
from prudent.spaces import Label, Simplex, Space
from prudent.tables.columns import Columns

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
    label, known = nw.col(names[0]), _classes(columns, space)
    zero, one, nowhere = nw.lit(0.0), nw.lit(1.0), nw.lit(-1.0)
    other = nw.when(label.is_in(known)).then(zero).otherwise(nowhere)  # outside the space, so that it is refused
    return [nw.when(~label.is_null()).then(nw.when(label == name).then(one).otherwise(other)) for name in known]


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


def _classes(columns: Columns, space: Simplex) -> list[Label]:
    """Labels as the column holds them: names, or indices where the column has whole numbers."""
    numeric = columns.frame.collect_schema()[columns.outcomes[0]].is_integer()
    named = space.classes is not None and not all(isinstance(name, (int, bool)) for name in space.classes)
    if numeric and (named or space.classes is None):
        return list(range(space.n_classes))
    if space.classes is None:
        raise InputError(f"outcomes must be class numbers from 0; {columns.outcomes[0]!r} holds no whole numbers.")
    return list(space.classes)
