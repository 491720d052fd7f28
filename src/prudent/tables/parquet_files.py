"""Types of columns that several Parquet files have each in their own way: widened where nothing is lost, else refused.

DuckDB reads all files with the types of the first, and rounds what does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from prudent.errors import InputError
from prudent.tables.engine import speaking
from prudent.tables.file_sets import as_doubles, exact, quoted_text, shown_files
from prudent.tables.opening import open_table
from prudent.tables.parquet_table import ParquetTable

__all__ = ["Role", "open_parquet"]

#: What a column is asked for as: a number, one that may also be true or false, a class label, or an id or group.
Role = Literal["number", "outcome", "label", "name"]

_WHOLE, _FLOAT, _DECIMAL, _TRUTH, _TEXT, _NOTHING = "whole", "float", "decimal", "truth", "text", "nothing"
_NUMBERS = {_WHOLE, _FLOAT, _DECIMAL}
_TAKEN = {"number": _NUMBERS, "outcome": {*_NUMBERS, _TRUTH}}


class _Column(NamedTuple):
    name: str
    kind: str
    written: str  # the type, in Arrow's words


def open_parquet(connection: Any, files: Sequence[str], roles: Mapping[str, Role]) -> Any:
    """Open all columns of files; those with a role are in every file and hold what it asks for.

    Where files have different columns or types the table has the columns of all of them, NULL where a file has none.
    """
    schemas = [_schema(file, roles) for file in files]
    for column, role in roles.items():
        if any(column.lower() in schema for schema in schemas):  # else DuckDB may know it from the folders' names
            _require_role(files, schemas, column, role)
    with speaking(f"opening {shown_files(files)}"):
        if all(schema == schemas[0] for schema in schemas[1:]):
            return connection.read_parquet(exact(files))
        names = {name for schema in schemas for name in schema}
        wide = {name for name in names if _is_widened(name, schemas, roles)}
        runs = [list(run) for _, run in groupby(zip(files, schemas, strict=True), key=lambda pair: pair[1])]
        return connection.sql(_union([_selected([file for file, _ in run], run[0][1], wide) for run in runs]))


def _schema(file: str, roles: Mapping[str, Role]) -> dict[str, _Column]:
    """Kind and type of every column; DuckDB does not tell names apart that differ by case."""
    with open_table(file) as table:
        if not isinstance(table, ParquetTable):
            raise AssertionError("a file that ends as Parquet and is none is refused where it is opened")
        for column in roles:
            alike = [name for name in table.columns if name.lower() == column.lower()]
            if len(alike) > 1:
                raise InputError(f"{file}: DuckDB cannot tell the columns {alike} apart; rename one of them.")
        return {name.lower(): _column(name, kind) for name, kind in table.types.items()}


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


def _require_role(files: Sequence[str], schemas: Sequence[Mapping[str, _Column]], column: str, role: Role) -> None:
    """Refuse a file that has not the column, or other things in it than are asked for or than the first file has."""
    first: tuple[str, str, str] | None = None  # with more in it than NULL
    for file, schema in zip(files, schemas, strict=True):
        if column.lower() not in schema:
            raise InputError(f"{file}: there is no column {column!r}; all files that are read together need it.")
        _, kind, written = schema[column.lower()]
        if kind == _NOTHING:
            continue
        if role in _TAKEN and kind not in _TAKEN[role]:
            raise InputError(f"{file}, column {column!r}: it holds {written}, not numbers. Cast it first.")
        if first is None:
            first = (file, kind, written)
        if role not in _TAKEN and kind != first[1] and not (role == "label" and {kind, first[1]} <= _NUMBERS):
            raise InputError(
                f"{file}, column {column!r}: it holds {written}, and {first[2]} in {first[0]}. Files that are read "
                f"together need one kind of values in it: cast it first."
            )


def _is_widened(name: str, schemas: Sequence[Mapping[str, _Column]], roles: Mapping[str, Role]) -> bool:
    """Say whether types differ that only doubles have in common; DuckDB would take floats for whole numbers and floats.

    What else differs DuckDB may widen itself: whole numbers to longer ones, anything next to text to text.
    """
    found = [schema[name] for schema in schemas if name in schema and schema[name].kind != _NOTHING]
    kinds = {column.kind for column in found}
    if len({column.written for column in found}) < 2 or kinds == {_WHOLE}:
        return False
    named = {column.lower(): role for column, role in roles.items()}.get(name)
    return named in _TAKEN or (_FLOAT in kinds and kinds <= _NUMBERS)


def _selected(files: Sequence[str], schema: Mapping[str, _Column], wide: set[str]) -> str:
    widened = as_doubles([column.name for name, column in schema.items() if name in wide])
    taken = f"* REPLACE ({widened})" if widened else "*"
    listed = ", ".join(quoted_text(file) for file in exact(files))
    return f"(SELECT {taken} FROM read_parquet([{listed}]))"  # noqa: S608  # all is quoted


def _union(parts: list[str]) -> str:
    """Put tables below each other, in their order; halves of halves, since parsers limit the depth."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_union(parts[:middle])} UNION ALL BY NAME {_union(parts[middle:])})"
