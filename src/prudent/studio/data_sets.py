"""Uploaded tables, in memory: bounded in number and size, gone with the process."""

import hashlib
from contextlib import AbstractContextManager
from typing import Annotated, NoReturn

from pydantic import BaseModel, Field

from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.file_rows import BrokenCell
from prudent.cases.file_table import FileTable, open_table
from prudent.errors import InputError
from prudent.studio.column_summaries import summarize_columns, unusable_columns
from prudent.studio.guessing import guess
from prudent.studio.schemas import ColumnSummary, Guess

MOST_BYTES = 64 << 20
MOST_ROWS = 1_000_000
_MOST_BYTES_OF_ALL = 256 << 20
_MOST_COLUMNS = 1_000
_MOST_CELLS = 100_000_000
_LISTED = 5


class RequestError(Exception):
    """A request cannot be answered: what is wrong, in which part of it, in which rows, and the HTTP status."""

    def __init__(self, message: str, where: str, rows: list[BrokenCell] | None = None, *, status: int = 422) -> None:
        super().__init__(message)
        self.where, self.rows, self.status = where, rows or [], status


class DataSet(BaseModel):
    """One uploaded file, and what a first look at it shows."""

    id: str
    name: str
    rows: int
    columns: list[ColumnSummary]
    guess: Guess
    content: Annotated[bytes, Field(exclude=True)]
    delimiter: Annotated[str, Field(exclude=True)]

    def table(self) -> AbstractContextManager[FileTable]:
        """Open it."""
        return open_table(self.content, self.name, delimiter=self.delimiter)


class DataSets:
    """All files of this process, by a hash of their content.

    Parameters
    ----------
    most_bytes, most_rows : int
        Of one file.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_rows: int = MOST_ROWS) -> None:
        self.most_bytes, self.most_rows = most_bytes, most_rows
        self._held = BoundedCache(16, _MOST_BYTES_OF_ALL)

    def add(self, content: bytes, name: str) -> DataSet:
        """Take a file; those used least recently make room."""
        if len(content) > self.most_bytes:
            raise _too_large(self.limit)
        with open_table(content, name) as table:
            unusable = unusable_columns(table)
            usable = [column for position, column in enumerate(table.columns) if position not in unusable]
            if not usable:
                raise InputError(f"{name}: no column can be used: {_listed(unusable)}.")
            rows = table.count()
            if rows > self.most_rows:
                raise _too_large(
                    f"{name}: there are more than {self.most_rows:,} rows, which is what the studio takes. "
                    f"Take a random part of them, or use the command line: prudent report."
                )
            if len(usable) > _MOST_COLUMNS or rows * len(usable) > _MOST_CELLS:
                raise _too_large(
                    f"{name}: there are more than {_MOST_COLUMNS:,} columns or {_MOST_CELLS:,} cells, which is what "
                    f"the studio takes. Keep only the columns that are needed."
                )
            columns, delimiter = summarize_columns(table, usable), table.delimiter
        start = guess(columns)
        if unusable:
            start.sentence += f" Cannot be used: {_listed(unusable)}."
        identity = hashlib.sha256(content).hexdigest()[:32]
        held = DataSet(
            id=identity, name=name, rows=rows, columns=columns, guess=start, content=content, delimiter=delimiter
        )
        self._held.put(identity, held)  # it may have had another name
        return held

    def get(self, identity: str) -> DataSet:
        """Return a file that is here."""

        def unknown() -> NoReturn:
            raise RequestError(
                "the studio does not hold these data any more. Choose the file again.", "data", status=404
            )

        return self._held.get(identity, unknown)

    def __contains__(self, identity: str) -> bool:
        return identity in self._held

    @property
    def limit(self) -> str:
        """How much is allowed, in words."""
        return (
            f"the file has more than {self.most_bytes >> 20} MB, which is what the studio takes. Keep only the columns "
            f"that are needed, save it as Parquet, or use the command line: prudent report."
        )


def _too_large(message: str) -> RequestError:
    return RequestError(message, "data", status=413)


def _listed(unusable: dict[int, str]) -> str:
    more = f"; and {len(unusable) - _LISTED} more" if len(unusable) > _LISTED else ""
    return "; ".join(list(unusable.values())[:_LISTED]) + more
