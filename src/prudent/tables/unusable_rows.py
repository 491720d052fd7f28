"""Going on without rows that break a rule: which they are, why, and the table of the others.

Nothing is left out in silence: who asks for this says how many rows it was, and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray
from prudent.errors import OutsideSpaceError
from prudent.spaces import Simplex, Space
from prudent.tables.cells import BadCellError, to_numbers, to_values
from prudent.tables.sample import class_index, class_positions
from prudent.tables.table import Table

__all__ = ["UnusableRows", "WithoutRows", "find_unusable_rows"]

_NO_NUMBER = "{} is empty or not a finite number"
_OUTSIDE = "{} lies outside the outcome space"
_NO_CLASS = "{} is empty or not one of the classes"
_NEGATIVE = "{} is negative"


@dataclass(frozen=True, eq=False)
class UnusableRows:
    """Rows that break a rule of :func:`prudent.tables.read_sample`.

    Attributes
    ----------
    rows : array of shape (n,)
        True for those.
    reasons : dict of str to int
        What is wrong, and for how many rows; each counts once, by the first rule that it breaks.
    """

    rows: NDArray[np.bool_]
    reasons: dict[str, int]

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.rows.sum())

    def __str__(self) -> str:
        why = "; ".join(f"{reason} ({count:,})" for reason, count in self.reasons.items())
        return f"{self.count:,} of {self.rows.size:,} rows left out because {why}"


def find_unusable_rows(
    table: Table, space: Space, forecasts: Sequence[str], outcomes: Sequence[str] = (), weight: str | None = None
) -> UnusableRows:
    r"""Find all rows that break a rule, and count them by what is wrong.

    Examples
    --------
    >>> import prudent
    >>> from prudent.tables import find_unusable_rows, open_bytes
    >>> table = open_bytes(b"f,y\n0.5,1\nlow,0\n1.5,1\n", "rows.csv")
    >>> print(find_unusable_rows(table, prudent.Box(0, 1).with_dimension(1), ["f"], ["y"]))
    2 of 3 rows left out because 'f' is empty or not a finite number (1); 'f' lies outside the outcome space (1)
    """
    found: list[NDArray[np.bool_]] = []
    reasons: dict[str, int] = {}
    for _, arrays in table.parts([*forecasts, *outcomes, *([weight] if weight else ())]):
        rows = np.zeros(len(arrays[forecasts[0]]), dtype=bool)
        for reason, broken in _rules(space, forecasts, outcomes, weight, arrays):
            fresh = int((broken & ~rows).sum())
            if fresh:
                reasons[reason] = reasons.get(reason, 0) + fresh
                rows |= broken
        found.append(rows)
    return UnusableRows(np.concatenate(found) if found else np.zeros(0, dtype=bool), reasons)


class WithoutRows(Table):
    """A table without some of its rows; messages keep the numbers that rows have in the file.

    Parameters
    ----------
    table : Table
    rows : array of shape (n,)
        True for rows that are left out.
    """

    def __init__(self, table: Table, rows: NDArray[np.bool_]) -> None:
        super().__init__(table.name, table.columns, table.size)
        self._table, self._kept = table, ~rows
        self._numbers = np.flatnonzero(self._kept)

    def at(self, row: int, *columns: str) -> str:
        """Say where a cell is in the file."""
        return self._table.at(int(self._numbers[row]), *columns)

    def _arrays(self, columns: list[str]) -> Iterator[dict[str, Any]]:
        import pyarrow as pa

        first = 0
        for arrays in self._table._arrays(columns):
            last = first + len(next(iter(arrays.values())))
            kept = pa.array(self._kept[first:last])
            yield {column: array.filter(kept) for column, array in arrays.items()}
            first = last


def _rules(
    space: Space, forecasts: Sequence[str], outcomes: Sequence[str], weight: str | None, arrays: dict[str, Any]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    labelled = isinstance(space, Simplex) and len(outcomes) == 1
    for group in (forecasts, () if labelled else outcomes):
        points = [_readable(arrays[column]) for column in group]
        for column, numbers in zip(group, points, strict=True):
            yield _NO_NUMBER.format(repr(column)), np.isnan(numbers)
        if len(points) == space.dimension:
            yield _OUTSIDE.format(" and ".join(map(repr, group))), _outside(space, np.stack(points, axis=1))
    if labelled and isinstance(space, Simplex):
        positions = class_positions(class_index(space), to_values(arrays[outcomes[0]], True))
        yield _NO_CLASS.format(repr(outcomes[0])), positions < 0
    if weight:
        weights = _readable(arrays[weight])
        yield _NO_NUMBER.format(repr(weight)), np.isnan(weights)
        yield _NEGATIVE.format(repr(weight)), weights < 0


def _outside(space: Space, points: FloatArray) -> NDArray[np.bool_]:
    broken, readable = np.zeros(len(points), dtype=bool), ~np.isnan(points).any(axis=1)
    if readable.any():
        try:
            space.place(np.ascontiguousarray(points[readable]), "forecasts")
        except OutsideSpaceError as error:
            broken[np.flatnonzero(readable)[list(error.rows)]] = True
    return broken


def _readable(array: Any) -> FloatArray:
    """Read what is a finite number; the rest is NaN."""
    try:
        return to_numbers(array, True)
    except BadCellError as error:
        if error.row is None:
            return np.full(len(array), np.nan)
    # Cells that are plainly no numbers go first, all at once; what is left is rare and found one by one.
    numbers = np.full(len(array), np.nan)
    rows = np.array([row for row, value in enumerate(array.to_pylist()) if _plausible(value)], dtype=np.int64)
    while rows.size:
        try:
            numbers[rows] = to_numbers(array.take(rows), True)
            break
        except BadCellError as error:
            rows = rows[:0] if error.row is None else np.delete(rows, error.row)
    return numbers


def _plausible(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False
