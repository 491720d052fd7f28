"""CSV files in DuckDB, read strictly: no type is guessed, no column is taken for another.

What DuckDB refuses, Python's csv module reads once more: it names the row and the line of what is wrong, or finds
nothing (line ends of several kinds) and writes the same cells to a file that DuckDB takes.
"""

import csv
import io
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from prudent.cases.engine import speaking
from prudent.cases.file_sets import Names, exact, quoted_name, quoted_text, shown_files
from prudent.errors import InputError

_HEAD_BYTES = 1 << 20
_SHOWN = 60


def read_header(file: str, delimiter: str, name: str = "") -> tuple[str, ...]:
    """Read the column names of a CSV file in UTF-8, with or without a byte order mark."""
    name = name or file
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(f"delimiter must be one character, not a quote or a line end; got {delimiter!r}.")
    with Path(file).open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
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
    text = head.decode("utf-8-sig", errors="surrogateescape")
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        "".join(names).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: the column names are not UTF-8 text; save the file as UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"{name}: cannot be read as CSV: {error}.") from error
    if not names:
        raise InputError(f"{name}: the first line is empty; column names belong there.")
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


def open_csv(connection: Any, files: Names, names: Names, delimiter: str, numbers: Collection[str] = ()) -> Any:
    """Open all columns of files under distinct names: those of numbers as doubles, all others as they are written."""
    for file in files[1:]:  # DuckDB goes by position and does not look at names
        other = read_header(file, delimiter)
        if other != tuple(names):
            raise InputError(
                f"{file}: its columns are {list(other)}, and those of {files[0]} are {list(names)}; files that are "
                f"read together need the same columns in the same order."
            )
    kinds = ["'DOUBLE'" if name in numbers else "'VARCHAR'" for name in names]
    layout = ", ".join(f"{quoted_text(name)}: {kind}" for name, kind in zip(distinct_names(names), kinds, strict=True))
    options = f"columns = {{{layout}}}, auto_detect = false, header = true, delim = {quoted_text(delimiter)}"
    source = f"read_csv({exact(files)}, {options}, quote = '\"', escape = '\"', compression = 'none')"
    with speaking(f"opening {shown_files(files)}"):
        return connection.sql(f"SELECT * FROM {source}")  # noqa: S608  # all is quoted


def rewrite_csv(file: str, target: Path, name: str, delimiter: str, names: Names, wanted: Collection[str]) -> None:
    """Write what Python's csv module reads in a file, or raise an error that names row, line and column.

    Only cells of the wanted columns must be UTF-8.
    """
    positions = [names.index(column) for column in wanted]
    with target.open("w", encoding="utf-8", errors="replace", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for number, (line, cells) in enumerate(_rows(file, name, delimiter)):
            place = f"{name}, row {number:,} (line {line:,})"
            if len(cells) != len(names):
                raise InputError(
                    f"{place}: it has {len(cells)} cell(s), and the column names are {len(names)}: "
                    f"{delimiter.join(cells)[:_SHOWN]!r}."
                )
            for position in positions:
                try:
                    cells[position].encode("utf-8")
                except UnicodeEncodeError as error:
                    shown = cells[position].encode("utf-8", "surrogateescape")[:_SHOWN]
                    column = f"column {names[position]!r}"
                    text = f"{place}, {column}: {shown!r} is not UTF-8 text; save the file as UTF-8."
                    raise InputError(text) from error
            writer.writerow(cells)


def line_of_row(file: str, delimiter: str, row: int) -> int | None:
    """Find the line of a file on which a row starts, by reading up to it: cells may hold line ends."""
    try:
        return next(line for number, (line, _) in enumerate(_rows(file, file, delimiter)) if number == row + 1)
    except (InputError, OSError):  # a cell that Python's csv module does not read; a temporary file that is gone
        return None


def find_delimiter(file: str) -> str:
    """Find what stands between the cells of CSV: a comma, unless only another character makes columns of the names."""
    with Path(file).open("rb") as stream:
        head = stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")

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


def with_whole_numbers(table: Any, column: str) -> Any:
    """Read a column of text as whole numbers if its first rows are; a cell further down that is none is an error."""
    name = quoted_name(column)
    number = f"TRY_CAST({name} AS BIGINT)"
    whole = f"CAST({number} AS VARCHAR) = {name}"  # no 007, which is not the id 7
    with speaking(f"reading the first rows of {column!r}"):
        first = table.project(name).limit(20_000).aggregate(f"bool_and(coalesce({whole}, {name} IS NULL))")
        if not first.fetchall()[0][0]:
            return table
        words = quoted_text(f"column {column!r} holds whole numbers, and then ")
        checked = f"CASE WHEN {name} IS NULL OR {whole} THEN {number} ELSE error({words} || {name}) END"
        return table.project(f"* REPLACE ({checked} AS {name})")


def _rows(file: str, name: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row starts and its cells, the names first; blank lines are no rows, as in DuckDB."""
    with Path(file).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        columns = row = 0
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                wrong = f"a quoted cell is not closed properly, or very long ({error})"
                raise InputError(f"{name}, row {row:,} (line {line:,}): {wrong}.") from error
            columns = columns or len(cells)
            if cells or columns == 1:
                row += 1
                yield line, cells or [""]
