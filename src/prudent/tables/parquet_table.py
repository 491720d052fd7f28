"""Parquet files, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from prudent.errors import FileFormatError, InputError
from prudent.tables.table import Table

__all__ = ["ParquetTable"]

_BATCH_ROWS = 1 << 17
_BUFFER_BYTES = 1 << 20


class ParquetTable(Table):
    """A Parquet file.

    Parameters
    ----------
    stream : binary stream
        Must be able to seek.
    name : str
        For messages.
    batch_rows : int
        As many are in memory at once.
    """

    def __init__(self, stream: BinaryIO, name: str, *, batch_rows: int = _BATCH_ROWS) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._batch_rows = batch_rows
        try:
            # A buffer instead of whole columns: one row group may be larger than memory.
            self._file = pq.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER_BYTES)
            self._schema = self._file.schema_arrow
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise _unreadable(name, error) from error
        super().__init__(name, self._schema.names, self._file.metadata.num_rows)

    @property
    def types(self) -> dict[str, Any]:
        """Arrow types by column."""
        return dict(zip(self._schema.names, self._schema.types, strict=True))

    def _arrays(self, columns: list[str]) -> Iterator[dict[str, Any]]:
        import pyarrow as pa

        for column in columns:
            kind = self._schema.field(column).type
            if pa.types.is_nested(kind):
                raise InputError(
                    f"{self.name}, column {column!r}: it is nested ({kind}); take its parts into columns of their own."
                )
        try:
            for batch in self._file.iter_batches(self._batch_rows, columns=columns, use_threads=False):
                self.done += batch.num_rows
                yield {column: batch.column(column) for column in columns}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise _unreadable(self.name, error) from error


def _unreadable(name: str, error: Exception) -> FileFormatError:
    reason = " ".join(str(error).split()).rstrip(".")
    return FileFormatError(f"{name}: cannot be read as Parquet (truncated or damaged?): {reason}.")
