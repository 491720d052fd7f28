"""Which files make one table: globs and folders, and their names in SQL."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prudent.errors import InputError, MissingExtraError

__all__ = [
    "LARGE",
    "as_doubles",
    "belongs_in_engine",
    "exact",
    "find_files",
    "kind_of_files",
    "own_connection",
    "quoted_name",
    "quoted_text",
    "shown_files",
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
            f"table must be Parquet or CSV files, all of one kind; {shown_files(files)} end in "
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


def shown_files(files: Sequence[str]) -> str:
    """Name files in a message."""
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


def as_doubles(columns: Sequence[str]) -> str:
    """Write that columns are doubles, each under its own name."""
    return ", ".join(f"CAST({quoted_name(column)} AS DOUBLE) AS {quoted_name(column)}" for column in columns)
