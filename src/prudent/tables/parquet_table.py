"""Parquet files, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from prudent.errors import FileFormatError, InputError
from prudent.tables.table import Table

__all__ = ["ParquetTable"]

_BATCH_ROWS = 1 << 17
_BUFFER_BYTES = 1 << 20
_SPARING_CELLS = 1 << 21


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
    sparing : bool
        Hand out text as dictionaries, and fewer rows of many columns at once: a small file may hold very long cells
        many times, or very many columns.
    """

    def __init__(self, stream: BinaryIO, name: str, *, batch_rows: int = _BATCH_ROWS, sparing: bool = False) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._batch_rows, self._sparing = batch_rows, sparing
        try:
            # A buffer instead of whole columns: one row group may be larger than memory.
            self._file = pq.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER_BYTES)
            self._schema = self._file.schema_arrow
            if sparing:
                texts = [field.name for field in self._schema if _is_text(field.type)]
                self._file = pq.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER_BYTES, read_dictionary=texts)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise _unreadable(name, error) from error
        super().__init__(name, self._schema.names, self._file.metadata.num_rows)

    def unreadable(self) -> dict[int, str]:
        """Find columns whose cells are neither numbers nor text, by position, and say what they hold.

        Times and dates are not among them: they cannot be read either, but SQL can tell records apart by them.
        """
        import pyarrow as pa

        tests = pa.types.is_nested, pa.types.is_fixed_size_binary
        return {j: str(field.type) for j, field in enumerate(self._schema) if any(test(field.type) for test in tests)}

    def unpacked_bytes(self) -> dict[str, int]:
        """Return, by column, the most that has to be unpacked at once; cells that occur many times count once."""
        found: dict[str, int] = {}
        metadata = self._file.metadata
        for group in (metadata.row_group(position) for position in range(metadata.num_row_groups)):
            for chunk in (group.column(position) for position in range(metadata.num_columns)):
                found[chunk.path_in_schema] = max(found.get(chunk.path_in_schema, 0), chunk.total_uncompressed_size)
        return found

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
        rows = self._batch_rows
        if self._sparing:
            rows = min(rows, max(1_000, _SPARING_CELLS // max(1, len(columns))))
        try:
            for batch in self._file.iter_batches(rows, columns=columns, use_threads=False):
                self.done += batch.num_rows
                yield {column: batch.column(column) for column in columns}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise _unreadable(self.name, error) from error


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return any(test(kind) for test in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string))


def _unreadable(name: str, error: Exception) -> FileFormatError:
    reason = " ".join(str(error).split()).rstrip(".")
    return FileFormatError(f"{name}: cannot be read as Parquet (truncated or damaged?): {reason}.")
