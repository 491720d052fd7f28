"""Find out what a file is and open it."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from prudent.errors import FileFormatError, InputError, MissingExtraError
from prudent.tables.csv_table import CsvTable
from prudent.tables.parquet_table import ParquetTable
from prudent.tables.table import Table

__all__ = ["open_bytes", "open_table"]

_MAGIC = b"PAR1"
_PARQUET_ENDINGS = (".parquet", ".pq")


@contextmanager
def open_table(path: str, *, delimiter: str = ",") -> Iterator[Table]:
    """Open a CSV or Parquet file, told apart by content; ``-`` is standard input.

    Parameters
    ----------
    path : str
    delimiter : str
        Between the cells of CSV.
    """
    _require_arrow()
    if path == "-":
        stdin = sys.stdin.buffer
        start = stdin.peek(len(_MAGIC)) if hasattr(stdin, "peek") else b""
        if not start.startswith(_MAGIC):
            yield CsvTable(cast("BinaryIO", stdin), "standard input", delimiter=delimiter)
            return
        with tempfile.TemporaryFile() as spooled:  # Parquet is read from its end
            shutil.copyfileobj(stdin, spooled)
            yield ParquetTable(cast("BinaryIO", spooled), "standard input")
        return
    source = Path(path)
    if source.is_dir():
        raise InputError(f"{path}: a file is needed, and this is a directory.")
    with source.open("rb") as stream:
        start = stream.read(len(_MAGIC)) if stream.seekable() else b""
        if start:
            stream.seek(0)
        if start == _MAGIC:
            yield ParquetTable(stream, path)
        elif path.lower().endswith(_PARQUET_ENDINGS):
            raise FileFormatError(f"{path}: the file is not Parquet: it does not start with {_MAGIC.decode()!r}.")
        else:
            yield CsvTable(stream, path, source if source.is_file() else None, delimiter=delimiter)


def open_bytes(content: bytes, name: str, *, delimiter: str = ",", sparing: bool = False) -> Table:
    r"""Open what a CSV or Parquet file holds, told apart by content; nothing is written to a disk.

    Parameters
    ----------
    content : bytes
    name : str
        For messages.
    delimiter : str
        Between the cells of CSV.
    sparing : bool
        Look at Parquet that may be much larger than it seems without unpacking all of it.

    Examples
    --------
    >>> from prudent.tables import open_bytes
    >>> open_bytes(b"f,y\n0.5,1\n", "rows.csv").columns
    ('f', 'y')
    """
    _require_arrow()
    if content.startswith(_MAGIC):
        return ParquetTable(io.BytesIO(content), name, sparing=sparing)
    if name.lower().endswith(_PARQUET_ENDINGS):
        raise FileFormatError(f"{name}: the file is not Parquet: it does not start with {_MAGIC.decode()!r}.")
    return CsvTable(io.BytesIO(content), name, content, delimiter=delimiter)


def _require_arrow() -> None:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("pyarrow", "cli", "reading tables") from error
    del pa
