"""Types of columns that several Parquet files have each in their own way: widened where nothing is lost, else refused.

DuckDB reads all files with the types of the first, and rounds what does not fit.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from prudent.cases.engine import speaking
from prudent.cases.file_sets import Names, exact, quoted_name, shown_files
from prudent.errors import FileFormatError, InputError

#: What a column is asked for as: a number (or true and false), a class label, or an id or group.
Role = Literal["number", "label", "name"]

_WHOLE, _FLOAT, _DECIMAL, _TRUTH, _TEXT, _NOTHING = "whole", "float", "decimal", "truth", "text", "nothing"
_NUMBERS = {_WHOLE, _FLOAT, _DECIMAL}


class _Column(NamedTuple):
    name: str
    kind: str
    written: str  # the type, in Arrow's words


def read_schema(file: str, name: str = "") -> Any:
    """Read the Arrow schema of a Parquet file."""
    import pyarrow.parquet as pq

    return _footer(pq.read_schema, file, name)


def unpacked_bytes(file: str) -> dict[str, int]:
    """Return the bytes of each column in all row groups, decompressed; cells that repeat may count once."""
    import pyarrow.parquet as pq

    metadata = _footer(pq.read_metadata, file, "")
    found: dict[str, int] = {}
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(metadata.num_columns)):
            found[chunk.path_in_schema] = found.get(chunk.path_in_schema, 0) + max(0, chunk.total_uncompressed_size)
    return found


def unreadable(schema: Any) -> dict[int, str]:
    """Find columns whose cells are neither numbers nor text nor times, by position, and say what they hold."""
    import pyarrow as pa

    tests = pa.types.is_nested, pa.types.is_fixed_size_binary
    return {j: str(field.type) for j, field in enumerate(schema) if any(test(field.type) for test in tests)}


def holds_numbers(kind: Any) -> bool:
    """True for an Arrow type of numbers, or of true and false."""
    return _kind(kind) in {*_NUMBERS, _TRUTH, _NOTHING}


def _footer(read: Callable[[str], Any], file: str, name: str) -> Any:
    import pyarrow as pa

    try:
        return read(file)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise FileFormatError(
            f"{name or file}: cannot be read as Parquet (truncated or damaged?): {reason}."
        ) from error


def open_parquet(connection: Any, files: Names, roles: Mapping[str, Role], name: str = "") -> Any:
    """Open all columns of files; those with a role are in every file and hold what it asks for.

    A single file may have a name for messages.

    Where files have different columns or types the table has the columns of all of them, NULL where a file has none.
    """
    shown = [name] if name else list(files)
    schemas = [_schema(file, label, roles) for file, label in zip(files, shown, strict=True)]
    for column, role in roles.items():
        if any(column.lower() in schema for schema in schemas):  # else DuckDB may know it from the folders' names
            _require_role(shown, schemas, column, role)
    with speaking(f"opening {shown_files(shown)}"):
        if all(schema == schemas[0] for schema in schemas[1:]):
            return connection.sql(_selected(files, schemas[0], set()))
        names = {name for schema in schemas for name in schema}
        wide = {name for name in names if _is_widened(name, schemas)}
        runs = [list(run) for _, run in groupby(zip(files, schemas, strict=True), key=lambda pair: pair[1])]
        return connection.sql(_union([_selected([file for file, _ in run], run[0][1], wide) for run in runs]))


def _schema(file: str, name: str, roles: Mapping[str, Role]) -> dict[str, _Column]:
    """Kind and type of every column; DuckDB does not tell names apart that differ by case."""
    schema = read_schema(file, name)
    for column in roles:
        alike = [other for other in schema.names if other.lower() == column.lower()]
        if len(alike) > 1:
            raise InputError(f"{name}: DuckDB cannot tell the columns {alike} apart; rename one of them.")
    return {field.name.lower(): _column(field.name, field.type) for field in schema}


def _column(name: str, given: Any) -> _Column:
    kind = _kind(given)
    return _Column(name, kind, "string" if kind == _TEXT else str(given))  # text has several ways to be stored


def _kind(kind: Any) -> str:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(kind):  # only a way to store values
        return _kind(kind.value_type)
    tests = {
        _WHOLE: (kinds.is_integer,),
        _FLOAT: (kinds.is_floating,),
        _DECIMAL: (kinds.is_decimal,),
        _TRUTH: (kinds.is_boolean,),
        _TEXT: (kinds.is_string, kinds.is_large_string, kinds.is_string_view),
        _NOTHING: (kinds.is_null,),
    }
    return next((name for name, group in tests.items() if any(test(kind) for test in group)), str(kind))


def _require_role(files: Names, schemas: Sequence[Mapping[str, _Column]], column: str, role: Role) -> None:
    """Refuse a file that has not the column, or other things in it than are asked for or than the first file has."""
    first: tuple[str, str, str] | None = None  # with more in it than NULL
    for file, schema in zip(files, schemas, strict=True):
        if column.lower() not in schema:
            raise InputError(f"{file}: there is no column {column!r}; all files that are read together need it.")
        _, kind, written = schema[column.lower()]
        if kind == _NOTHING:
            continue
        if role == "number" and kind not in {*_NUMBERS, _TRUTH}:
            raise InputError(f"{file}, column {column!r}: it holds {written}, not numbers. Cast it first.")
        if first is None:
            first = (file, kind, written)
        if role != "number" and kind != first[1] and not (role == "label" and {kind, first[1]} <= _NUMBERS):
            raise InputError(
                f"{file}, column {column!r}: it holds {written}, and {first[2]} in {first[0]}. Files that are read "
                f"together need one kind of values in it: cast it first."
            )


def _is_widened(name: str, schemas: Sequence[Mapping[str, _Column]]) -> bool:
    """Say whether types differ that only doubles have in common; DuckDB would take floats for whole numbers and floats.

    What else differs DuckDB may widen itself: whole numbers to longer ones, anything next to text to text.
    """
    found = [schema[name] for schema in schemas if name in schema and schema[name].kind != _NOTHING]
    kinds = {column.kind for column in found}
    return len({column.written for column in found}) > 1 and kinds != {_WHOLE} and kinds <= {*_NUMBERS, _TRUTH}


def _selected(files: Names, schema: Mapping[str, _Column], wide: set[str]) -> str:
    names = [quoted_name(column.name) for name, column in schema.items() if name in wide]
    widened = ", ".join(f"CAST({name} AS DOUBLE) AS {name}" for name in names)
    taken = f"* REPLACE ({widened})" if widened else "*"
    return f"(SELECT {taken} FROM read_parquet({exact(files)}))"  # noqa: S608  # all is quoted


def _union(parts: list[str]) -> str:
    """Put tables below each other, in their order; halves of halves, since parsers limit the depth."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_union(parts[:middle])} UNION ALL BY NAME {_union(parts[middle:])})"
