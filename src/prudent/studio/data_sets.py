"""Uploaded tables, in memory only: bounded in number and size, gone with the process."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from prudent.errors import InputError
from prudent.studio.answers import ColumnSummary, DataSummary, Guess
from prudent.studio.guessing import guess
from prudent.studio.looking import find_delimiter, look_at, unusable_columns
from prudent.tables import ParquetTable, Table, open_bytes

__all__ = ["DataSets", "Held", "UnknownDataError", "UploadTooLargeError"]

MOST_BYTES = 64 << 20
MOST_ROWS = 1_000_000
_MOST_SETS = 16
_MOST_BYTES_OF_ALL = 256 << 20
_MOST_COLUMNS = 1_000
_MOST_CELLS = 100_000_000
_LISTED = 5


class UnknownDataError(LookupError):
    """The server does not hold these data: it was restarted, or newer data took their place."""


class UploadTooLargeError(InputError):
    """A file has more bytes or rows than the studio takes."""


@dataclass(frozen=True, eq=False)
class Held:
    """One uploaded file."""

    id: str
    name: str
    content: bytes
    delimiter: str
    rows: int
    columns: list[ColumnSummary]
    guess: Guess

    def table(self) -> Table:
        """Open it."""
        return open_bytes(self.content, self.name, delimiter=self.delimiter)

    def summary(self) -> DataSummary:
        """Say what it holds."""
        return DataSummary(id=self.id, name=self.name, rows=self.rows, columns=self.columns, guess=self.guess)


class DataSets:
    """All files of this process, by a hash of their content.

    Parameters
    ----------
    most_bytes, most_rows : int
        Of one file.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_rows: int = MOST_ROWS) -> None:
        self.most_bytes, self.most_rows = most_bytes, most_rows
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock = Lock()
        self._when_dropped: list[Callable[[str], None]] = []

    def when_dropped(self, forget: Callable[[str], None]) -> None:
        """Let somebody know the id of every file that makes room."""
        self._when_dropped.append(forget)

    def add(self, content: bytes, name: str) -> Held:
        """Take a file; those used least recently make room."""
        if len(content) > self.most_bytes:
            raise self.too_large()
        delimiter = find_delimiter(content)
        table = open_bytes(content, name, delimiter=delimiter, sparing=True)
        unusable = unusable_columns(table)
        usable = [column for position, column in enumerate(table.columns) if position not in unusable]
        if not usable:
            raise InputError(f"{name}: no column can be used: {_listed(unusable)}.")
        if len(usable) > _MOST_COLUMNS or _cells(table, self.most_rows) > _MOST_CELLS:
            raise UploadTooLargeError(
                f"{name}: there are more than {_MOST_COLUMNS:,} columns or {_MOST_CELLS:,} cells, which is what the "
                f"studio takes. Keep only the columns that are needed."
            )
        rows, columns = look_at(table, usable, self.most_rows)
        if rows > self.most_rows:
            raise UploadTooLargeError(
                f"{name}: there are more than {self.most_rows:,} rows, which is what the studio takes. "
                f"Take a random part of them, or use the command line: prudent report."
            )
        if rows == 0:
            raise InputError(f"{name}: there are no rows below the column names.")
        start = guess(columns)
        if unusable:
            start = start.model_copy(update={"sentence": f"{start.sentence} Cannot be used: {_listed(unusable)}."})
        held = Held(hashlib.sha256(content).hexdigest()[:32], name, content, delimiter, rows, columns, start)
        dropped = []
        with self._lock:
            self._held[held.id] = held
            self._held.move_to_end(held.id)
            while len(self._held) > 1 and (len(self._held) > _MOST_SETS or self._bytes() > _MOST_BYTES_OF_ALL):
                dropped.append(self._held.popitem(last=False)[0])
        for identity in dropped:
            for forget in self._when_dropped:
                forget(identity)
        return held

    def get(self, identity: str) -> Held:
        """Return a file that is here."""
        with self._lock:
            held = self._held.get(identity)
            if held is None:
                raise UnknownDataError("the studio does not hold these data any more. Choose the file again.")
            self._held.move_to_end(identity)
            return held

    def too_large(self) -> UploadTooLargeError:
        """Say how much is allowed."""
        return UploadTooLargeError(
            f"the file has more than {self.most_bytes >> 20} MB, which is what the studio takes. Keep only the columns "
            f"that are needed, save it as Parquet, or use the command line: prudent report."
        )

    def _bytes(self) -> int:
        return sum(len(held.content) for held in self._held.values())


def _listed(unusable: dict[int, str]) -> str:
    more = f"; and {len(unusable) - _LISTED} more" if len(unusable) > _LISTED else ""
    return "; ".join(list(unusable.values())[:_LISTED]) + more


def _cells(table: Table, most_rows: int) -> int:
    """Count the cells of Parquet, of which a few bytes may hold very many; those of CSV take bytes of the file."""
    return min(table.size or 0, most_rows) * len(table.columns) if isinstance(table, ParquetTable) else 0
