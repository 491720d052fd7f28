"""CSV files, block by block.

pyarrow splits lines into cells; cells stay bytes until a column is asked for, so that an error can name the cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from prudent.errors import InputError
from prudent.tables.table import Table

__all__ = ["CsvTable"]

_HEAD_BYTES = 1 << 20
_BLOCK_BYTES = 4 << 20
_SHOWN = 60
_OTHER_DELIMITERS = {";": "';'", "\t": "a tab (--delimiter tab)", "|": "'|'"}


class CsvTable(Table):
    """A CSV file with a line of column names, in UTF-8 with or without a mark, with any line ends.

    Parameters
    ----------
    stream : binary stream
        Read from here to its end, once.
    name : str
        For messages.
    source : Path or bytes, optional
        Where the stream comes from; then errors also name lines, and the table can be read again.
    delimiter : str
    block_bytes : int
        About as much is in memory at once; a row must fit.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        source: Path | bytes | None = None,
        *,
        delimiter: str = ",",
        block_bytes: int = _BLOCK_BYTES,
    ) -> None:
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise InputError(f"delimiter must be one character, not a quote or a line end; got {delimiter!r}.")
        self._delimiter, self._origin, self._block_bytes = delimiter, source, block_bytes
        head = stream.read(_HEAD_BYTES)
        columns, self._has_rows = _read_head(head, name, delimiter, complete=len(head) < _HEAD_BYTES)
        size = source.stat().st_size if isinstance(source, Path) else None if source is None else len(source)
        super().__init__(name, columns, size)
        self._source = _Source(head, stream)

    def _arrays(self, columns: list[str]) -> Iterator[dict[str, Any]]:
        if not self._has_rows:
            return
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        odd_rows: list[Any] = []

        def stop(row: Any) -> str:
            odd_rows.append(row)
            return "error"

        positions = {column: str(self.columns.index(column)) for column in columns}
        try:
            reader = arrow_csv.open_csv(
                pa.PythonFile(self._source, mode="r"),
                # One thread: only then are odd rows numbered. The names are ours: the file's may be the same twice.
                read_options=arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=self._block_bytes,
                    column_names=[str(j) for j in range(len(self.columns))],
                    skip_rows_after_names=1,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=False,
                    invalid_row_handler=stop,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(positions.values()),
                    column_types=dict.fromkeys(positions.values(), pa.binary()),
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
            # Closed at once where somebody stops early: a reader that reads ahead must not outlive the interpreter.
            with reader:
                for batch in reader:
                    self.done = self._source.done
                    yield {column: batch.column(position) for column, position in positions.items()}
        except pa.ArrowInvalid as error:
            raise self._explained(error, odd_rows) from error
        if self._source.quotes % 2:
            self._refuse_open_quote()

    def _explained(self, error: Exception, odd_rows: list[Any]) -> InputError:
        if odd_rows:
            row = odd_rows[0]
            return InputError(
                f"{self.at(row.number - 2)}: it has {row.actual_columns} cell(s), and the column names are "
                f"{row.expected_columns}: {row.text[:_SHOWN]!r}."
            )
        if "straddles" in str(error):
            return InputError(
                f"{self.name}: a row is longer than {self._block_bytes:,} bytes; is a quote never closed?"
            )
        return InputError(f"{self.name}: cannot be read as CSV: {error}.")

    def _refuse_open_quote(self) -> None:
        """A quote that is never closed swallows all rows below it: a whole file must not end inside a cell."""
        if self._origin is None:
            raise InputError(f"{self.name}: the number of quotes is odd; is a quoted cell never closed?")
        row, line = -1, 1
        with self._text() as stream:
            reader = csv.reader(stream, delimiter=self._delimiter, strict=True)
            while True:
                line = reader.line_num + 1
                try:
                    next(reader)
                except StopIteration:
                    return  # the odd quote stands inside a cell, where it is a character like others
                except csv.Error as error:
                    raise InputError(
                        f"{self.name}, row {row + 1:,} (line {line:,}): a quoted cell is not closed properly ({error})."
                    ) from error
                row += 1

    def _line(self, row: int) -> int | None:
        """Read the file again up to the row: cells may hold line ends."""
        if self._origin is None:
            return None
        with self._text() as stream:
            reader = csv.reader(stream, delimiter=self._delimiter)
            try:
                for _ in range(row + 1):
                    next(reader)
            except (StopIteration, csv.Error):
                return None
            return reader.line_num + 1

    def _about_missing(self) -> str:
        if len(self.columns) == 1:
            for other, shown in _OTHER_DELIMITERS.items():
                if other in self.columns[0] and other != self._delimiter:
                    return f"found one column named {self.columns[0][:_SHOWN]!r}, is the delimiter {shown}"
        return ""

    def _text(self) -> io.TextIOWrapper:
        stream = self._origin.open("rb") if isinstance(self._origin, Path) else io.BytesIO(self._origin or b"")
        return io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")


class _Source:
    """The bytes that were read to find the names, and then the rest; counts bytes and quotes on the way."""

    closed = False

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest
        self.done = self.quotes = 0

    def read(self, size: int) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        if not data:
            data = self._rest.read(size)
        self.done += len(data)
        self.quotes += data.count(b'"')
        return data

    def close(self) -> None:
        self._rest.close()


def _read_head(head: bytes, name: str, delimiter: str, complete: bool) -> tuple[list[str], bool]:
    """Find the column names, and whether anything follows them."""
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise InputError(f"{name}: the file is empty.")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{name}: the file is UTF-16; save it as UTF-8.")
    if head[:2] == b"\x1f\x8b":
        raise InputError(
            f"{name}: the file is compressed with gzip; unpack it first, or pipe: zcat ... | prudent ... -"
        )
    if b"\0" in head:
        raise InputError(f"{name}: the file is neither CSV nor Parquet; it has zero bytes.")
    try:
        # Only names must be readable here; bytes further down are checked cell by cell.
        reader = csv.reader(
            io.StringIO(head.decode("utf-8-sig", errors="surrogateescape"), newline=""), delimiter=delimiter
        )
        names = next(reader)
        "".join(names).encode("utf-8")
        has_rows = not complete or next(reader, None) is not None
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: the column names are not UTF-8 text; save the file as UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"{name}: cannot be read as CSV: {error}.") from error
    if not names:
        raise InputError(f"{name}: the first line is empty; column names belong there.")
    return names, has_rows
