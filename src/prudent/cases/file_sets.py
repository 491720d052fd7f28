"""Which files make one table: globs, folders, standard input; how they are written, and their names in SQL."""

import glob
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from prudent.arrays import frozen
from prudent.errors import FileFormatError, InputError, MissingExtraError

#: Of columns, or paths of files.
Names = Sequence[str]
#: Columns, and what they are read as: "number", "outcome" (a number, true or false), "label" of a class, "id", "name"
#: of a period or something else.
Roles = dict[str, str]
#: Roles that are numbers.
NUMBERS = ("number", "outcome")
#: A file of more bytes is not read into memory.
LARGE = 1 << 30

_MAGIC = b"PAR1"
_PARQUET = (".parquet", ".pq")
_ENDINGS = (*_PARQUET, ".csv", ".tsv", ".txt", ".xlsx", ".gz", ".zst")


@frozen
class Reading:
    """How files are written.

    Attributes
    ----------
    delimiter : str
        Between the cells of CSV, or ``tab``; for a comma another character is taken if only that makes columns of the
        names.
    decimal : {".", ","}
        The decimal mark of CSV.
    hubverse : str or None
        Of files with a row for each task and ``output_type_id``, the ``output_type`` that becomes columns.
    """

    delimiter: str = ","
    decimal: str = "."
    hubverse: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise InputError(f"delimiter must be one character, not a quote or a line end; got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise InputError(f"decimal must be '.' or ','; got {self.decimal!r}.")


PLAIN = Reading()


def find_files(paths: Names) -> tuple[str, ...]:
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
                raise InputError(f"{given}: No such file, folder or pattern of files.")
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


def kind_of_files(files: Names, sources: Names) -> Literal["csv", "parquet"]:
    """Tell CSV from Parquet by the content of sources, which messages call files; all must be of one kind."""
    kinds: set[Literal["csv", "parquet"]] = set()
    for file, source in zip(files, sources, strict=False):
        with Path(source).open("rb") as stream:
            parquet = stream.read(len(_MAGIC)) == _MAGIC
        if not parquet and file.lower().endswith(_PARQUET):
            raise FileFormatError(f"{file}: the file is not Parquet: it does not start with {_MAGIC.decode()!r}.")
        kinds.add("parquet" if parquet else "csv")
    if len(kinds) > 1:
        raise InputError(f"{shown_files(files)}: files that are read together must be all of one kind, CSV or Parquet.")
    return kinds.pop()


def spool(source: str | bytes, path: Path) -> str:
    """Copy standard input (``-``), another pipe or bytes to a file."""
    with path.open("wb") as target:
        if isinstance(source, bytes):
            target.write(source)
        elif source == "-":
            shutil.copyfileobj(sys.stdin.buffer, target)
        else:
            with Path(source).open("rb") as stream:
                shutil.copyfileobj(stream, target)
    return str(path)


def own_connection() -> Any:
    """Open DuckDB in memory: nothing here touches the caller's session."""
    for package in ("duckdb", "pyarrow"):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError(package, "cli", "reading files") from error
    import duckdb

    # The statistics of Parquet do not count NaN, and the optimizer would take NaN <= 1 for true.
    return duckdb.connect(config={"disabled_optimizers": "statistics_propagation"})


def shown_files(files: Names) -> str:
    """Name files in a message."""
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more files"


def exact(files: Names) -> str:
    """Write paths as an SQL list in which DuckDB takes none for a pattern: ``a[1].csv`` would open ``a1.csv``."""
    return f"[{', '.join(quoted_text(glob.escape(file)) for file in files)}]"


def quoted_name(column: str) -> str:
    """Write a name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    """Write a text in SQL."""
    return "'" + value.replace("'", "''") + "'"
