"""CSV files in DuckDB, read strictly: no type is guessed, no column is taken for another.

Of files that are packed, of sheets and of files with blank lines at the end DuckDB gets a copy. What it refuses,
Python's csv module reads once more: it names the row and the line of what is wrong, or finds nothing (line ends of
several kinds) and writes the same cells to a file that DuckDB takes.
"""

import csv
import os
import re
import warnings
import zipfile
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from prudent.cases.engine import speaking
from prudent.cases.file_sets import Names, Reading, exact, quoted_name, quoted_text, shown_files
from prudent.errors import FileFormatError, InputError, MissingExtraError

#: Words that stand for a missing number or class, in any case.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "<na>", "null", "none")

_END_BYTES = 1 << 20
_SHOWN = 60
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SHEETS = b"PK\x03\x04"
#: What a file may unpack to: so many bytes, or so many times its own size; sheets, which openpyxl holds in part, less.
_MOST_UNPACKED, _MOST_TIMES, _MOST_OF_SHEETS = 256 << 20, 10, 128 << 20


def plain_file(file: str, copy: Path, name: str, reading: Reading) -> str:
    """Return a file that DuckDB reads: itself, or a copy of what is packed in it or stands before blank last lines."""
    size = Path(file).stat().st_size
    with Path(file).open("rb") as stream:
        head = stream.read(len(_SHEETS))
    packed = next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)
    if packed is None and head != _SHEETS and _end_of_rows(file, reading.delimiter) == size:
        return file
    most = _MOST_OF_SHEETS if head == _SHEETS else max(_MOST_UNPACKED, _MOST_TIMES * size)
    with copy.open("wb") as target:
        for part in _sheet(file, name, reading, most) if head == _SHEETS else _unpacked(file, name, packed):
            target.write(part)
            if target.tell() > most:
                raise _too_large(name, most)
    os.truncate(copy, _end_of_rows(str(copy), reading.delimiter))
    return str(copy)


def _too_large(name: str, most: int) -> InputError:
    return InputError(f"{name}: unpacked it has more than {most >> 20} MB; unpack it first, or save it as Parquet.")


def _end_of_rows(file: str, delimiter: str) -> int:
    """Find where the last line ends that holds more than spaces and delimiters."""
    with Path(file).open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _END_BYTES))
        tail = stream.read()
    kept = len(tail.rstrip(b" \t\r\n,;|" + delimiter.encode()))
    line_end = re.compile(rb"\r\n|\r|\n").search(tail, kept)
    return size if line_end is None else size - len(tail) + line_end.end()


def _unpacked(file: str, name: str, kind: str | None) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.input_stream(file, compression=kind) as stream:
            while part := stream.read(_END_BYTES):
                yield part
    except OSError as error:
        raise FileFormatError(f"{name}: cannot be unpacked (truncated or damaged?): {error}.") from error


def _sheet(file: str, name: str, reading: Reading, most: int) -> Iterator[bytes]:
    """Write the first sheet of an Excel file as lines of CSV; blank rows are blank lines."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl", "excel", "reading Excel files") from error
    try:
        with warnings.catch_warnings(), Path(file).open("rb") as stream:  # of a path openpyxl would ask for the ending
            warnings.simplefilter("ignore")  # about styles
            if sum(part.file_size for part in zipfile.ZipFile(stream).infolist()) > most:
                raise _too_large(name, most)
            sheet = openpyxl.load_workbook(stream, read_only=True, data_only=True).worksheets[0]
            sheet.reset_dimensions()  # files may state too few
            width = 0
            for row in sheet.iter_rows(values_only=True):
                texts = [str(cell).replace(".", reading.decimal if isinstance(cell, float) else ".") for cell in row]
                cells = ["" if cell is None else text for cell, text in zip(row, texts, strict=True)]
                width = width or len(cells)
                cells += [""] * (width - len(cells))
                yield _line(cells if any(cells) else [], reading.delimiter)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # whatever openpyxl raises
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileFormatError(f"reading {name} as an Excel file failed (truncated or damaged?): {reason}.") from error


def _line(cells: Names, delimiter: str) -> bytes:
    """Write a line of CSV with quotes around all cells, which they need as names need them in SQL."""
    return delimiter.join(map(quoted_name, cells)).encode("utf-8", errors="replace") + b"\n"


def read_header(file: str, delimiter: str, name: str) -> tuple[str, ...]:
    """Read the column names of a CSV file in UTF-8, with or without a byte order mark."""
    with Path(file).open("rb") as stream:
        head = stream.read(_END_BYTES)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise InputError(f"{name}: the file is empty.")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{name}: the file is UTF-16; save it as UTF-8.")
    if b"\0" in head:
        raise InputError(f"{name}: the file is neither CSV nor Parquet nor Excel (.xlsx); it has zero bytes.")
    line, names = next(_rows(file, name, delimiter))
    if line > 1:
        raise InputError(f"{name}: the first line is empty; column names belong there.")
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: the column names are not UTF-8 text; save the file as UTF-8.") from error
    return tuple(names)


def distinct_names(names: Names) -> list[str]:
    """Number names that repeat; DuckDB does not tell them apart by case, either."""
    found: dict[str, str] = {}
    for name in names:
        free, count = name or "unnamed", 0  # DuckDB takes no empty name
        while free.lower() in found:
            count += 1
            free = f"{name or 'unnamed'}_{count}"
        found[free.lower()] = free
    return list(found.values())


def open_csv(connection: Any, files: Names, names: Names, delimiter: str) -> Any:
    """Open all columns of files under distinct names, as they are written."""
    layout = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in distinct_names(names))
    options = f"columns = {{{layout}}}, auto_detect = false, header = true, delim = {quoted_text(delimiter)}"
    source = f"read_csv({exact(files)}, {options}, quote = '\"', escape = '\"', compression = 'none')"
    with speaking(f"opening {shown_files(files)}"):
        return connection.sql(f"SELECT * FROM {source}")  # noqa: S608  # all is quoted


def number_in_sql(cell: str, decimal: str, *, percent: bool, outcome: bool) -> str:
    """Write a cell of CSV as a double: NULL where it is missing, infinite where it is no number.

    ``percent`` if all numbers of the column end in a per cent sign; an ``outcome`` may be true, false, yes or no.
    """
    text = cell
    for mark, other in [("_", "x"), ("\u00a0", " "), *([(".", "x"), (",", ".")] if decimal == "," else [])]:
        text = f"replace({text}, '{mark}', '{other}')"
    if percent:
        text = f"CASE WHEN suffix(trim({text}), '%') THEN trim(left(trim({text}), -1)) || 'e-2' END"
    word = f"lower(trim({cell}, ' \t\u00a0'))"
    words = (("true", "1"), ("yes", "1"), ("false", "0"), ("no", "0")) if outcome else ()
    truth = " ".join(f"WHEN {word} = '{name}' THEN '{number}'" for name, number in words)
    rest = f"CASE WHEN {cell} IS NULL OR {is_missing(word)} THEN NULL {truth} ELSE 'inf' END"
    return f"coalesce(TRY_CAST({text} AS DOUBLE), {rest}::DOUBLE)"


def is_missing(word: str) -> str:
    """Write in SQL that a text in lower case stands for a missing value; of IN DuckDB makes a join, without order."""
    return f"regexp_full_match({word}, '{'|'.join(MISSING_WORDS)}')"


def why_no_number(text: str, reading: Reading, *, percent: bool) -> str:
    """Say what is wrong with a cell that is no number."""
    shown = f"{text[:40]!r} is not a number"
    if re.fullmatch(r"\s*[-+]?[\d.,']*\d\s*%?\s*", text):
        if len(set(re.findall(r"[.,']", text))) > 1 or "'" in text:
            return f"{shown}; write it without separators of thousands, and say --decimal , if that is its decimal mark"
        if "," in text and reading.decimal == ".":
            return f"{shown}; if the comma is the decimal mark, say --decimal ,"
        if "." in text and reading.decimal == ",":
            return f"{shown} with --decimal ,"
        ends = "ends" if percent else "does not end"
        return f"{shown}: the first number of the column {ends} in %; write all in one way"
    return shown


def rewrite_csv(file: str, target: Path, name: str, delimiter: str, names: Names, wanted: Collection[str]) -> None:
    """Write what Python's csv module reads in a file, or raise an error that names row, line and column.

    Only cells of the wanted columns must be UTF-8.
    """
    with target.open("wb") as stream:
        for number, (line, cells) in enumerate(_rows(file, name, delimiter)):
            place = f"{name}, row {number:,} (line {line:,})"
            if len(cells) != len(names):
                raise InputError(
                    f"{place}: it has {len(cells)} cell(s), and the column names are {len(names)}: "
                    f"{delimiter.join(cells)[:_SHOWN]!r}. Cells end at {delimiter!r}; --delimiter takes another."
                )
            for column in wanted:
                shown = cells[names.index(column)].encode("utf-8", "surrogateescape")[:_SHOWN]
                try:
                    cells[names.index(column)].encode()
                except UnicodeEncodeError as error:
                    text = f"{place}, column {column!r}: {shown!r} is not UTF-8 text; save the file as UTF-8."
                    raise InputError(text) from error
            stream.write(_line(cells, delimiter))


def line_of_row(file: str, delimiter: str, row: int) -> int | None:
    """Find the line of a file on which a row starts, by reading up to it: cells may hold line ends."""
    try:
        return next(islice(_rows(file, file, delimiter), row + 1, None))[0]
    except (InputError, OSError):  # a cell that Python's csv module does not read; a temporary file that is gone
        return None


def find_delimiter(file: str) -> str:
    """Find what stands between the cells of CSV: a comma, unless only another makes columns of the first rows."""

    def width(delimiter: str) -> int:
        """Count the cells of the first rows, 0 where they differ."""
        try:
            widths = {len(cells) for _, cells in islice(_rows(file, file, delimiter), 2)}
        except InputError:
            return 0
        return widths.pop() if len(widths) == 1 else 0

    return next((mark for mark in ",;\t|" if width(mark) > 1), ",")


def _rows(file: str, name: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row starts and its cells, the names first; blank lines are no rows, as in DuckDB."""
    with Path(file).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        columns, row, line = 0, 0, 1
        try:
            for cells in reader:
                columns = columns or len(cells)
                if cells or columns == 1:
                    row += 1
                    yield line, cells or [""]
                line = reader.line_num + 1
        except csv.Error as error:
            wrong = f"a quoted cell is not closed properly, or very long ({error})"
            raise InputError(f"{name}, row {row:,} (line {line:,}): {wrong}.") from error
