"""All cells that keep a table from being a sample, not only the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError, OutsideSpaceError
from prudent.spaces import Simplex, Space
from prudent.tables.cells import BadCellError, to_numbers, to_values
from prudent.tables.sample import class_index, class_positions, require_forecast_columns, require_outcome_columns
from prudent.tables.table import Table

__all__ = ["BrokenCell", "find_broken_rows"]


@dataclass(frozen=True)
class BrokenCell:
    """A cell, or several of one row together, that break a rule.

    Attributes
    ----------
    row : int
        The first row is 1.
    columns : tuple of str
    message : str
    """

    row: int
    columns: tuple[str, ...]
    message: str


def find_broken_rows(
    table: Table,
    space: Space,
    forecasts: Sequence[str],
    outcomes: Sequence[str] = (),
    weight: str | None = None,
    *,
    limit: int = 100,
) -> list[BrokenCell]:
    r"""List, in the order of rows, what breaks the rules of :func:`prudent.tables.read_sample`; at most ``limit``.

    Examples
    --------
    >>> import prudent
    >>> from prudent.tables import find_broken_rows, open_bytes
    >>> table = open_bytes(b"f,y\n0.5,1\nlow,0\n1.5,1\n", "rows.csv")
    >>> space = prudent.Box(0, 1).with_dimension(1)
    >>> [(cell.row, cell.message) for cell in find_broken_rows(table, space, ["f"], ["y"])]
    [(2, "'low' is not a number"), (3, 'it lies outside the outcome space: 1.5')]
    """
    # A wrong number of columns breaks no row.
    require_forecast_columns(forecasts, space)
    labelled = require_outcome_columns(outcomes, space)
    found: list[BrokenCell] = []
    for first, arrays in table.parts([*forecasts, *outcomes, *([weight] if weight else [])]):
        part: list[BrokenCell] = []
        for group in (forecasts, outcomes):
            if group and not (labelled and group is outcomes):
                part += _of_points(space, group, arrays, limit)
        if labelled and isinstance(space, Simplex):
            part += _of_labels(space, outcomes[0], arrays, limit)
        if weight:
            part += _of_weights(weight, arrays, limit)
        found += [BrokenCell(first + cell.row, cell.columns, cell.message) for cell in part]
        if len(found) >= limit:
            break
    return sorted(found, key=lambda cell: cell.row)[:limit]


def _of_points(space: Space, columns: Sequence[str], arrays: dict[str, Any], limit: int) -> Iterator[BrokenCell]:
    n = len(arrays[columns[0]])
    points, readable = np.empty((n, len(columns))), np.ones(n, dtype=bool)
    for j, column in enumerate(columns):
        points[:, j], bad = _numbers(arrays[column], limit)
        for row, message in bad.items():
            readable[row] = False
            yield BrokenCell(row + 1, (column,), message)
    readable &= ~np.isnan(points).any(axis=1)
    if len(columns) != space.dimension or not readable.any():
        return
    try:
        space.place(np.ascontiguousarray(points[readable]), "forecasts")
    except OutsideSpaceError as error:
        for row in np.flatnonzero(readable)[list(error.rows[:limit])]:
            shown = ", ".join(f"{value:.10g}" for value in points[row])
            if isinstance(space, Simplex):
                message = f"probabilities must not be negative and sum to 1: {shown} sum to {points[row].sum():.10g}"
            else:
                message = f"it lies outside the outcome space: {shown}"
            yield BrokenCell(int(row) + 1, tuple(columns), message)


def _of_labels(space: Simplex, column: str, arrays: dict[str, Any], limit: int) -> Iterator[BrokenCell]:
    array = arrays[column]
    values = _values(array)
    if values is None:
        yield BrokenCell(1, (column,), "it holds neither text nor numbers")
        return
    try:
        positions = class_positions(class_index(space), values)
    except InputError as error:
        yield BrokenCell(1, (column,), str(error))
        return
    for row in np.flatnonzero(positions < 0)[:limit]:
        message = "the cell is empty" if values[row] in (None, "") else f"{values[row]!r} is not one of the classes"
        yield BrokenCell(int(row) + 1, (column,), message)


def _of_weights(column: str, arrays: dict[str, Any], limit: int) -> Iterator[BrokenCell]:
    weights, bad = _numbers(arrays[column], limit)
    for row, message in bad.items():
        yield BrokenCell(row + 1, (column,), message)
    for row in np.flatnonzero(weights < 0)[:limit]:
        yield BrokenCell(int(row) + 1, (column,), f"a weight must not be negative: {weights[row]:g}")


def _numbers(array: Any, limit: int) -> tuple[FloatArray, dict[int, str]]:
    """Read what can be read; for the rest, at most ``limit`` reasons by row, and NaN."""
    numbers, bad, start = np.full(len(array), np.nan), dict[int, str](), 0
    while start < len(array) and len(bad) < limit:
        try:
            numbers[start:] = to_numbers(array.slice(start), False)
            break
        except BadCellError as error:
            if error.row is None:
                bad[start] = str(error)
                break
            stop = start + error.row
            # A later rule may have failed first, so cells before the bad one can hold other mistakes.
            bad[stop] = str(error)
            if error.row:
                before, more = _numbers(array.slice(start, error.row), limit)
                numbers[start:stop] = before
                bad |= {start + row: message for row, message in more.items()}
            start = stop + 1
    return numbers, bad


def _values(array: Any) -> Any:
    try:
        return to_values(array, True)
    except BadCellError:
        return None
