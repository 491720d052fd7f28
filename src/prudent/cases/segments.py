"""Segments: rows with the same value of a column that is known at decision time (docs/theory.md, section 14)."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from prudent.arrays import Context, IntArray, describe_rows, frozen, listed, missing_rows, require_context
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.formatting import Table, format_table

#: Segments with fewer rows, or rows of fewer than four periods, are pooled.
FEWEST_ROWS = 30
_SHOWN = 12


@frozen
class Segment:
    """Some rows: their name, their numbers, and their share of the weight; ``pooled`` if they have different values."""

    name: str
    rows: IntArray
    share: float
    pooled: bool


@frozen
class Segments(Table):
    """One row per segment, or per segment and moment; those that cost most come first.

    Attributes
    ----------
    table : dict
        By column.
    pooled : str
        Which segments were too small to be looked at alone; empty if none was.
    confidence : float
        Everything in the table holds at once with this confidence.
    """

    _shown = ("columns",)

    table: dict[str, Any] = field(repr=False)
    pooled: str
    confidence: float

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column."""
        return self.table

    def __str__(self) -> str:
        count = len(self.columns["segment"])
        more = f"\n... and {count - _SHOWN} rows that cost less; to_frame() has all." if count > _SHOWN else ""
        level = f"All bounds hold at once with {100 * self.confidence:g}% confidence."
        table = format_table(self.columns, range(min(count, _SHOWN)))
        return " ".join(filter(None, [f"{table}{more}\n{level}", self.pooled]))


def known_values(context: Context, name: str) -> list[Any]:
    """Return the values of one column, which must be known in every row."""
    without = np.flatnonzero(missing_rows(context[name], name))
    if without.size:
        raise InputError(
            f"context must be known in every row; {name!r} is missing in {describe_rows(without)}. Give these rows a "
            f"value of their own, such as 'unknown'."
        )
    return listed(context[name], f"context {name!r}")


def large_groups(rows: MemoryRows, columns: tuple[str, ...]) -> tuple[list[tuple[Any, ...]], IntArray, int, bool]:
    """Find the values of some columns together that enough rows have, and the number of every row's among them.

    Rows with rarer values have the number of values. Also returns how many values there are in all, and whether each
    occurs in one period only.
    """
    context = require_context(rows.context, columns, len(rows.forecasts))
    held = [known_values(context, name) for name in columns]
    seen: dict[Any, int] = {}
    numbers = np.array([seen.setdefault(value, len(seen)) for value in zip(*held, strict=True)])
    large, confined = np.bincount(numbers) >= FEWEST_ROWS, False
    if rows.periods is not None:
        periods = np.bincount(np.unique(np.stack([numbers, rows.periods]), axis=1)[0])
        large, confined = large & (periods >= FEWEST_PERIODS), bool(periods.max() == 1)
    places = np.where(large, np.cumsum(large) - 1, large.sum())
    values = [value for value, here in zip(seen, large, strict=True) if here]
    return values, places[numbers], len(seen), confined


def find_segments(rows: MemoryRows, by: Any = None) -> tuple[list[Segment], str]:
    """Split rows by each of some columns, by all unless told otherwise; a tuple of names is looked at together.

    Also returns in words which values are pooled.
    """
    if not rows.context:
        raise InputError("segments need columns that are known at decision time: give context=.")
    found, pooled = [], []
    for each in rows.context if by is None else [by] if isinstance(by, str) else listed(by, "by"):
        columns = each if isinstance(each, tuple) else (each,)
        values, numbers, count, confined = large_groups(rows, columns)
        names = [", ".join(f"{name}={part}" for name, part in zip(columns, value, strict=True)) for value in values]
        what = " x ".join(columns)
        if count == 1:
            raise InputError(f"context must tell rows apart; all have the same {what}. Leave the column out.")
        if confined:
            raise InputError(f"every {what} occurs in one period only, so it is no context. Leave the column out.")
        if count > len(values):
            pooled.append(f"{count - len(values)} of {what}")
        ends = np.cumsum(np.bincount(numbers, minlength=len(values)))[:-1]
        for k, part in enumerate(np.split(np.argsort(numbers, kind="stable"), ends)):
            name = f"other {what}" if k == len(values) else names[k]
            found.append(Segment(name, part, float(rows.weights[part].sum()), k == len(values)))
    few = f"fewer than {FEWEST_ROWS} rows" + ("" if rows.periods is None else f" or {FEWEST_PERIODS} periods")
    return found, f"Values with {few} are pooled: {', '.join(pooled)}." if pooled else ""
