"""A first look at a table: which columns can be used, and what they hold."""

from __future__ import annotations

import csv
import io
import math
from itertools import islice
from typing import Any

import numpy as np

from prudent.errors import InputError
from prudent.studio.answers import ColumnSummary
from prudent.studio.questions import LONGEST_NAME
from prudent.tables import BadCellError, ParquetTable, Table, to_numbers, to_values

__all__ = ["find_delimiter", "look_at", "unusable_columns"]

MOST_UNPACKED = 128 << 20
_SHOWN = 12
_HEAD_BYTES = 1 << 20
_SHOWN_LETTERS = 40


def find_delimiter(content: bytes) -> str:
    """Find what stands between the cells of CSV: a comma, unless only another character makes columns of the names."""
    head = content[:_HEAD_BYTES].decode("utf-8-sig", errors="replace")

    def widths(delimiter: str) -> list[int]:
        try:
            return [len(row) for row in islice(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), 2)]
        except csv.Error:
            return []

    if widths(",")[:1] == [1]:
        for other in (";", "\t", "|"):
            found = widths(other)
            if found and found[0] > 1 and found[0] == found[-1]:
                return other
    return ","


def unusable_columns(table: Table) -> dict[int, str]:
    """Find the columns that no question can name, by position, and say why."""
    found = {}
    for position, name in enumerate(table.columns):
        if not name:
            found[position] = f"column {position + 1} has no name"
        elif len(name) > LONGEST_NAME:
            found[position] = f"the name of column {position + 1} has more than {LONGEST_NAME} characters"
    if isinstance(table, ParquetTable):
        for position, kind in table.unreadable().items():
            found.setdefault(position, f"{table.columns[position]!r} holds {kind[:_SHOWN_LETTERS]}")
    return found


def look_at(table: Table, columns: list[str], most_rows: int) -> tuple[int, list[ColumnSummary]]:
    """Count the rows, stopping once there are too many, and summarise columns."""
    if isinstance(table, ParquetTable):
        unpacked = table.unpacked_bytes()
        for column in columns:
            _refuse_large(table, column, unpacked.get(column, 0))
    rows = 0
    seen: dict[str, _Seen] = {column: _Seen() for column in columns}
    for first, arrays in table.parts(columns):
        for column, array in arrays.items():
            seen[column].add(array)
            _refuse_large(table, column, seen[column].text_bytes)
            rows = first + len(array)
        if rows > most_rows:
            break
    return rows, [found.summary(column) for column, found in seen.items()]


def _refuse_large(table: Table, column: str, size: int) -> None:
    if size > MOST_UNPACKED:
        raise InputError(
            f"{table.name}, column {column!r}: unpacked it has more than {MOST_UNPACKED >> 20} MB, which is what the "
            f"studio takes. Leave the column out of the file, or shorten its cells."
        )


class _Seen:
    """What is known about a column so far."""

    def __init__(self) -> None:
        self.numeric, self.lower, self.upper = True, math.inf, -math.inf
        self.values: dict[str, None] = {}
        self.text_bytes = 0

    def add(self, array: Any) -> None:
        import pyarrow as pa

        if pa.types.is_dictionary(array.type):
            self.text_bytes += _text_bytes(array)
            array = array.unique()  # each cell once: that is all that a summary needs
        if len(self.values) <= _SHOWN:
            self.values |= dict.fromkeys(_texts(array.slice(0, 2_000)))
        if not self.numeric:
            return
        try:
            numbers = to_numbers(array, True)
        except BadCellError:
            # One bad cell among numbers is for people to see, and does not make a column text.
            numbers = _most_numbers(array)
            self.numeric = numbers is not None
        if numbers is not None and not np.isnan(numbers).all():
            self.lower = min(self.lower, float(np.nanmin(numbers)))
            self.upper = max(self.upper, float(np.nanmax(numbers)))

    def summary(self, name: str) -> ColumnSummary:
        numeric = self.numeric and self.lower <= self.upper
        return ColumnSummary(
            name=name,
            kind="number" if numeric else "text",
            lower=self.lower if numeric else None,
            upper=self.upper if numeric else None,
            values=[value[:_SHOWN_LETTERS] for value in self.values][: _SHOWN + 1],
        )


def _text_bytes(array: Any) -> int:
    """Count the bytes of a column of text that is held as a dictionary, as if each cell were written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type.value_type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)):
        return 0
    lengths = pc.fill_null(pc.binary_length(array.dictionary), 0)
    return int(pc.sum(lengths.take(array.indices.drop_null()).cast(pa.int64())).as_py() or 0)


def _texts(array: Any) -> list[str]:
    try:
        values = to_values(array, True).tolist()
    except BadCellError:
        return []
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values if value not in (None, "")]


def _most_numbers(array: Any) -> Any:
    """Read the first rows one by one: numbers, unless fewer than half are."""
    numbers = []
    for position in range(min(len(array), 200)):
        try:
            numbers.append(float(to_numbers(array.slice(position, 1), True)[0]))
        except BadCellError as error:
            if error.row is None:
                return None
    return np.array(numbers) if 2 * len(numbers) >= min(len(array), 200) else None
