"""Which files make one table: globs, folders, standard input; how they are written, and their names in SQL.

Columns that several Parquet files have each in their own way are widened where nothing is lost, else refused: DuckDB
reads all files with the types of the first, and rounds what does not fit.
"""

import glob
import shutil
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from prudent.arrays import frozen
from prudent.cases.engine import speaking
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

_NUMERIC, _TRUTH, _TEXT, _NOTHING = {"int", "float", "decimal"}, "bool", "string", "null"
#: How Arrow's names of types start, and what such columns hold.
_KINDS = {name: name for name in (*_NUMERIC, _TRUTH, _TEXT, _NOTHING)}
_KINDS |= {"uint": "int", "double": "float", "halffloat": "float", "large_string": _TEXT}
#: Names of columns and Arrow's of their types, by the name in lower case.
_Schema = dict[str, tuple[str, str]]


@frozen
class Reading:
    """How files are written.

    Attributes
    ----------
    delimiter : str
        Between the cells of CSV, or ``tab``; for a comma another character is taken if only that makes columns of the
        names and of the first row.
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
            matched = sorted(glob.glob(given, recursive=True))  # noqa: PTH207
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
    try:
        import duckdb
        import pyarrow as pa  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(str(error.name), "cli", "reading files") from error
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


def read_schema(file: str, name: str = "") -> Any:
    """Read the Arrow schema of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise unreadable_file(name or file, " ".join(str(error).split())) from error


def unreadable_file(name: str, reason: str) -> FileFormatError:
    """Say that a file is damaged."""
    return FileFormatError(f"{name}: cannot be read as Parquet (truncated or damaged?): {reason.rstrip('.')}.")


def unreadable(schema: Any) -> dict[int, str]:
    """Find columns whose cells are neither numbers nor text nor times, by position, and say what they hold."""
    import pyarrow as pa

    nested, binary = pa.types.is_nested, pa.types.is_fixed_size_binary
    return {j: str(field.type) for j, field in enumerate(schema) if nested(field.type) or binary(field.type)}


def as_text(kind: Any, cell: str) -> str:
    """Write ids of an Arrow type in SQL: those that are times as text, in UTC where they have a zone."""
    import pyarrow as pa

    if not pa.types.is_temporal(kind):
        return cell
    zoned = getattr(kind, "tz", None)
    return f"(CAST({cell} AT TIME ZONE 'UTC' AS VARCHAR) || '+00')" if zoned else f"CAST({cell} AS VARCHAR)"


def holds_numbers(kind: Any) -> bool:
    """True for an Arrow type of numbers, or of true and false."""
    return _kind(kind) in {*_NUMERIC, _TRUTH, _NOTHING}


def open_parquet(connection: Any, files: Names, roles: Roles, name: str = "") -> Any:
    """Open all columns of files; those with a role are in every file and hold what it asks for.

    A single file may have a name for messages.

    Where files have different columns or types the table has the columns of all of them, NULL where a file has none.
    """
    shown = [name] if name else list(files)
    schemas = [_schema(file, label, roles) for file, label in zip(files, shown, strict=True)]
    for column, role in roles.items():
        if any(column.lower() in schema for schema in schemas):  # else DuckDB may know it from the folders' names
            _require_role(shown, schemas, column, role)
    runs = groupby(zip(files, schemas, strict=True), key=lambda pair: pair[1])
    parts = [_selected([file for file, _ in run], schema) for schema, run in runs]
    with speaking(f"opening {shown_files(shown)}"):
        return connection.sql(" UNION ALL BY NAME ".join(parts))


def _schema(file: str, name: str, roles: Roles) -> _Schema:
    """Name and type of every column; DuckDB does not tell names apart that differ by case."""
    schema = read_schema(file, name)
    for column in roles:
        alike = [other for other in schema.names if other.lower() == column.lower()]
        if len(alike) > 1:
            raise InputError(f"{name}: DuckDB cannot tell the columns {alike} apart; rename one of them.")
    # Text has several ways to be stored.
    types = [_TEXT if _kind(field.type) == _TEXT else str(field.type) for field in schema]
    return {name.lower(): (name, written) for name, written in zip(schema.names, types, strict=True)}


def _kind(kind: Any) -> str:
    written = str(kind).removeprefix("dictionary<values=")  # only a way to store values
    return next((name for start, name in _KINDS.items() if written.startswith(start)), str(kind))


def _require_role(files: Names, schemas: Sequence[_Schema], column: str, role: str) -> None:
    """Refuse a file that has not the column, or other things in it than are asked for or than the first file has."""
    first = ("", "", "")  # with more in it than NULL
    for file, schema in zip(files, schemas, strict=True):
        if column.lower() not in schema:
            raise InputError(f"{file}: there is no column {column!r}; all files that are read together need it.")
        written = schema[column.lower()][1]
        kind = _kind(written)
        if kind == _NOTHING:
            continue
        if role in NUMBERS and kind not in {*_NUMERIC, _TRUTH}:
            raise InputError(f"{file}, column {column!r}: it holds {written}, not numbers. Cast it first.")
        first = first if first[0] else (file, kind, written)
        if role not in NUMBERS and kind != first[1] and not (role == "label" and {kind, first[1]} <= _NUMERIC):
            raise InputError(
                f"{file}, column {column!r}: it holds {written}, and {first[2]} in {first[0]}. Files that are read "
                f"together need one kind of values in it: cast it first."
            )


def _selected(files: Names, schema: _Schema) -> str:
    """Read single floats as doubles: next to them DuckDB would round whole numbers of other files.

    What else differs DuckDB widens itself: whole numbers to longer ones, anything next to text to text.
    """
    single = [quoted_name(name) for name, written in schema.values() if written == "float"]
    widened = ", ".join(f"CAST({name} AS DOUBLE) AS {name}" for name in single)
    taken = f"* REPLACE ({widened})" if widened else "*"
    return f"(SELECT {taken} FROM read_parquet({exact(files)}))"  # noqa: S608  # all is quoted
