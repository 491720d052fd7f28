"""Several files as one table: globs and folders, opened in DuckDB."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prudent.errors import InputError, MissingExtraError
from prudent.tables.engine import speaking
from prudent.tables.opening import open_table

__all__ = [
    "LARGE",
    "belongs_in_engine",
    "exact",
    "find_files",
    "kind_of_files",
    "open_typed",
    "own_connection",
    "quoted_name",
    "quoted_text",
]

#: A file of more bytes is not read into memory.
LARGE = 1 << 30

_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}


def belongs_in_engine(paths: Sequence[str]) -> bool:
    """True for several files, a glob, a folder, and a file that is large (where DuckDB is installed)."""
    if len(paths) != 1:
        return True
    path = Path(paths[0])
    if path.is_dir() or (glob.has_magic(paths[0]) and not path.exists()):
        return True
    known = path.suffix.lower() in _ENDINGS and find_spec("duckdb") is not None
    return known and path.is_file() and path.stat().st_size > LARGE


def find_files(paths: Sequence[str]) -> tuple[str, ...]:
    """List the files that paths, globs and folders name, in this order; of a folder also those in folders inside."""
    found: list[str] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = sorted(str(file) for file in path.rglob("*") if _holds_rows(file, path))
            if not inside:
                raise InputError(f"{given}: there is no Parquet or CSV file in this folder.")
            found += inside
        elif path.is_file():
            found.append(given)
        else:
            matched = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207
            if not matched or not all(Path(file).is_file() for file in matched):
                raise InputError(f"table must be the path of existing files; {given!r} names none.")
            found += matched
    seen: set[Path] = set()
    for file in found:
        place = Path(file).resolve()
        if place in seen:
            raise InputError(f"{file}: the file is named twice, and its rows would count twice.")
        seen.add(place)
    return tuple(found)


def _holds_rows(file: Path, folder: Path) -> bool:
    """Engines leave files of their own next to the data; their names start with a dot or an underscore."""
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return file.suffix.lower() in _ENDINGS and not hidden and file.is_file()


def kind_of_files(files: Sequence[str]) -> str:
    """Return "parquet" or "csv", by the endings."""
    kinds = {_ENDINGS.get(Path(file).suffix.lower(), "") for file in files}
    if len(kinds) > 1 or "" in kinds:
        raise InputError(
            f"table must be Parquet or CSV files, all of one kind; {_shown(files)} end in "
            f"{', '.join(sorted({repr(Path(file).suffix) for file in files}))}."
        )
    return kinds.pop()


def own_connection() -> Any:
    """Open DuckDB in memory: nothing here touches the caller's session."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("duckdb", "duckdb", "opening files as a table") from error
    return duckdb.connect()


def open_typed(connection: Any, files: Sequence[str], types: Mapping[str, str], delimiter: str = ",") -> Any:
    """Open columns of files as strictly as a single file is read: nothing is guessed, padded or ignored.

    Parameters
    ----------
    connection : DuckDB connection
    files : sequence of str
    types : mapping of column to DuckDB type
        For CSV; Parquet has types of its own.
    delimiter : str
        Between the cells of CSV.
    """
    kind = kind_of_files(files)
    with open_table(files[0], delimiter=delimiter) as first:
        for column in types:
            first.require(column)
            alike = [name for name in first.columns if name.lower() == column.lower()]
            if len(alike) > 1:
                raise InputError(f"{files[0]}: DuckDB cannot tell the columns {alike} apart; rename one of them.")
        names = first.columns
    wanted = ", ".join(quoted_name(column) for column in types)
    if kind == "parquet":
        with speaking(f"opening {_shown(files)}"):
            return connection.read_parquet(exact(files)).project(wanted)
    for file in files[1:]:  # DuckDB goes by position and does not look at names
        with open_table(file, delimiter=delimiter) as other:
            if other.columns != names:
                raise InputError(
                    f"{file}: its columns are {list(other.columns)}, and those of {files[0]} are {list(names)}; files "
                    f"that are read together need the same columns in the same order."
                )
    fields = [(name, types[name]) if name in types else (f"unused {i}", "VARCHAR") for i, name in enumerate(names)]
    layout = ", ".join(f"{quoted_text(name)}: {quoted_text(kind)}" for name, kind in fields)
    options = f"columns = {{{layout}}}, auto_detect = false, header = true, delim = {quoted_text(delimiter)}"
    listed = ", ".join(quoted_text(file) for file in exact(files))
    source = f"read_csv([{listed}], {options}, quote = '\"', escape = '\"')"
    with speaking(f"opening {_shown(files)}"):
        return connection.sql(f"SELECT {wanted} FROM {source}")  # noqa: S608  # all is quoted


def _shown(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more files"


def exact(files: Sequence[str]) -> list[str]:
    """Write paths so that DuckDB takes none of them for a pattern: ``a[1].csv`` would open ``a1.csv``."""
    return [glob.escape(file) for file in files]


def quoted_name(column: str) -> str:
    """Write a name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    """Write a text in SQL."""
    return "'" + value.replace("'", "''") + "'"
