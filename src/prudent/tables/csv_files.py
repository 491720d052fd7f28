"""CSV files as one table in DuckDB, read strictly: no type is guessed, no column is taken for another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from prudent.errors import InputError
from prudent.tables.engine import speaking
from prudent.tables.file_sets import exact, quoted_name, quoted_text, shown_files
from prudent.tables.opening import open_table

__all__ = ["found_delimiter", "open_csv", "with_whole_numbers"]

_FIRST_ROWS = 20_000


def open_csv(
    connection: Any, files: Sequence[str], numbers: Collection[str], others: Collection[str], delimiter: str
) -> Any:
    """Open all columns of files: those of numbers as doubles, all others as the text that is written there.

    Parameters
    ----------
    connection : DuckDB connection
    files : sequence of str
        With the same columns in the same order.
    numbers, others : collection of str
        Columns that must be there, once.
    delimiter : str
        Between cells.
    """
    with open_table(files[0], delimiter=delimiter) as first:
        names = first.columns
        for column in (*numbers, *others):
            first.require(column)
            alike = [name for name in names if name.lower() == column.lower()]
            if len(alike) > 1:
                raise InputError(f"{files[0]}: DuckDB cannot tell the columns {alike} apart; rename one of them.")
    for file in files[1:]:  # DuckDB goes by position and does not look at names
        with open_table(file, delimiter=delimiter) as other:
            if other.columns != names:
                raise InputError(
                    f"{file}: its columns are {list(other.columns)}, and those of {files[0]} are {list(names)}; files "
                    f"that are read together need the same columns in the same order."
                )
    fields = [(name, "DOUBLE" if name in numbers else "VARCHAR") for name in _distinct(names)]
    layout = ", ".join(f"{quoted_text(name)}: {quoted_text(kind)}" for name, kind in fields)
    options = f"columns = {{{layout}}}, auto_detect = false, header = true, delim = {quoted_text(delimiter)}"
    listed = ", ".join(quoted_text(file) for file in exact(files))
    source = f"read_csv([{listed}], {options}, quote = '\"', escape = '\"')"
    with speaking(f"opening {shown_files(files)}"):
        return connection.sql(f"SELECT * FROM {source}")  # noqa: S608  # all is quoted


def found_delimiter(connection: Any, file: str) -> str:
    """Find out what stands between the cells of a file."""
    query = f"SELECT Delimiter, Quote FROM sniff_csv({quoted_text(exact([file])[0])}, header = true)"  # noqa: S608
    with speaking(f"opening {file}"):
        delimiter, quote = connection.sql(query).fetchall()[0]
    if quote == "'":
        raise InputError(f"{file}: cells are quoted by ' where \" is needed; open it yourself, as a DuckDB relation.")
    return str(delimiter)


def with_whole_numbers(table: Any, column: str) -> Any:
    """Read a column of text as whole numbers if its first rows are; a cell further down that is none is an error."""
    name = quoted_name(column)
    number = f"TRY_CAST({name} AS BIGINT)"
    whole = f"CAST({number} AS VARCHAR) = {name}"  # no 007, which is not the id 7
    with speaking(f"reading the first rows of {column!r}"):
        first = table.project(name).limit(_FIRST_ROWS).aggregate(f"bool_and(coalesce({whole}, {name} IS NULL))")
        if not first.fetchall()[0][0]:
            return table
        words = quoted_text(f"column {column!r} holds whole numbers, and then ")
        checked = f"CASE WHEN {name} IS NULL OR {whole} THEN {number} ELSE error({words} || {name}) END"
        return table.project(f"* REPLACE ({checked} AS {name})")


def _distinct(names: Sequence[str]) -> list[str]:
    """Number names that repeat; DuckDB does not tell them apart by case, either."""
    taken: set[str] = set()
    found = []
    for name in names:
        free, count = name, 0
        while free.lower() in taken:
            count += 1
            free = f"{name}_{count}"
        taken.add(free.lower())
        found.append(free)
    return found
