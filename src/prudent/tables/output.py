"""Tables written row by row: CSV or Parquet, whole or not at all."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from prudent.errors import InputError
from prudent.files import whole_file

__all__ = ["OutputColumn", "TableOutput", "open_output", "require_output"]


@dataclass(frozen=True, eq=False)
class OutputColumn:
    """A named column of some rows: integers, floats, truth values, or objects (all text)."""

    name: str
    values: NDArray[Any]


class TableOutput(ABC):
    """Takes the same columns again and again, some rows at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    @abstractmethod
    def write(self, columns: Sequence[OutputColumn]) -> None:
        """Append rows."""

    @abstractmethod
    def finish(self) -> None:
        """Write what belongs to the end."""

    @abstractmethod
    def abandon(self) -> None:
        """Stop without writing more."""


@contextmanager
def open_output(path: str, *, not_over: Sequence[str] = ()) -> Iterator[TableOutput]:
    """Open a table for writing; the ending of the name says which kind, ``-`` is CSV on standard output.

    Parameters
    ----------
    path : str
    not_over : sequence of str
        Files that are being read and must not be replaced.
    """
    if path == "-":
        output: TableOutput = _CsvOutput(cast("BinaryIO", sys.stdout.buffer))
        yield output
        output.finish()
        sys.stdout.buffer.flush()
        return
    kind = require_output(path, not_over)
    with whole_file(path) as stream:
        output = _KINDS[kind](stream)
        try:
            yield output
            output.finish()
        except BaseException:
            output.abandon()
            raise


def require_output(path: str, not_over: Sequence[str] = ()) -> str:
    """Check the name of an output; return "csv" or "parquet"."""
    if path == "-":
        return "csv"
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(f"{path}: the output must end in .csv or .parquet, or be - for standard output.")
    for other in not_over:
        if other != "-" and Path(other).exists() and Path(path).exists() and Path(path).samefile(other):
            raise InputError(f"{path}: the output must not replace a file that is being read.")
    return _ENDINGS[ending]


class _CsvOutput(TableOutput):
    """CSV with quotes only around cells that need them, whatever the number of rows written at once."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream)
        self._started = False

    def write(self, columns: Sequence[OutputColumn]) -> None:
        import pyarrow.compute as pc

        if not self._started:
            names = _quoted(_text(np.array([column.name for column in columns], dtype=object)))
            self._stream.write((",".join(names.to_pylist()) + "\n").encode("utf-8"))
            self._started = True
        cells = [_quoted(_text(column.values)) for column in columns]
        ends = pc.binary_join_element_wise(cells[-1], _scalar(""), _scalar("\n"))
        lines = pc.binary_join_element_wise(*cells[:-1], ends, _scalar(","))
        _, offsets, data = lines.buffers()  # the lines stand one after the other in memory
        first, last = (np.frombuffer(offsets, dtype=np.int64)[lines.offset + k] for k in (0, len(lines)))
        self._stream.write(memoryview(data)[first:last])

    def finish(self) -> None:
        """A CSV file just ends."""

    def abandon(self) -> None:
        """A CSV file just ends."""


class _ParquetOutput(TableOutput):
    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream)
        self._writer: Any = None

    def write(self, columns: Sequence[OutputColumn]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = {
            column.name: pa.array(column.values, pa.string() if column.values.dtype == object else None)
            for column in columns
        }
        batch = pa.table(arrays)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._stream, batch.schema)
        self._writer.write_table(batch)

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.is_open = False  # or it would write its end when it is collected


_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_KINDS: dict[str, type[TableOutput]] = {"csv": _CsvOutput, "parquet": _ParquetOutput}


def _text(values: NDArray[Any]) -> Any:
    import pyarrow as pa

    if values.dtype == object:
        return pa.array(values, pa.large_string())
    return pa.array(values).cast(pa.large_string())


def _quoted(cells: Any) -> Any:
    """Put quotes around cells with a comma, quote or line end, and around empty ones."""
    import pyarrow.compute as pc

    special = pc.match_substring_regex(cells, '[",\r\n]|^$')
    if not pc.any(special).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise(_scalar('"'), doubled, _scalar('"'), _scalar("")), cells)


def _scalar(text: str) -> Any:
    import pyarrow as pa

    return pa.scalar(text, pa.large_string())
