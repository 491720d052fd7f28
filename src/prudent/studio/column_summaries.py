"""A first look at a table: which columns can be used, and what they hold."""

from typing import Any

from prudent.cases.file_sets import exact
from prudent.cases.file_table import FileTable
from prudent.cases.parquet_files import holds_numbers, unreadable
from prudent.errors import InputError
from prudent.studio.schemas import LONGEST_NAME, ColumnSummary

MOST_UNPACKED = 128 << 20
MOST_MEMORY = 512 << 20  # of DuckDB, should a file say less about itself than it holds
_MOST_LOOKED_AT = 2_000_000  # cells, for values to show
_ENDS = ("count", "min", "max")
_SHOWN = 12
_SHOWN_LETTERS = 40


def unusable_columns(table: FileTable) -> dict[int, str]:
    """Find the columns that no question can name, by position, and say why."""
    found = {}
    for position, name in enumerate(table.columns):
        if not name:
            found[position] = f"column {position + 1} has no name"
        elif len(name) > LONGEST_NAME:
            found[position] = f"the name of column {position + 1} has more than {LONGEST_NAME} characters"
    if table.schema is not None:
        for position, kind in unreadable(table.schema).items():
            found.setdefault(position, f"{table.columns[position]!r} holds {kind[:_SHOWN_LETTERS]}")
    return found


def summarize_columns(table: FileTable, columns: list[str]) -> list[ColumnSummary]:
    """Summarise columns; refuse what would not fit into memory before it is unpacked."""
    table.require(*columns)
    table.connection.execute(f"SET memory_limit = '{MOST_MEMORY >> 20}MB'")
    if table.schema is not None:
        stated = f"FROM parquet_metadata({exact(table.files)}) SELECT path_in_schema, sum(total_uncompressed_size)"
        sizes = dict(table.connection.execute(f"{stated} GROUP BY 1").fetchall())
        _refuse_large(table, {column: sizes.get(column, 0) for column in columns})
    numeric = [column for column in columns if table.schema is None or holds_numbers(table.schema.field(column).type)]
    texts = [column for column in columns if column not in numeric]
    # Lengths first: a cell that is stored once may stand in many rows.
    lengths = _totals(table, texts, "strlen(CAST({cell} AS VARCHAR))", "sum")
    _refuse_large(table, {column: int(length or 0) for column, length in lengths.items()})
    filled = _totals(table, numeric, "nullif(trim(CAST({cell} AS VARCHAR)), '')", "count")
    finite = {kind: _totals(table, numeric, "CASE WHEN isfinite({number}) THEN {number} END", kind) for kind in _ENDS}
    values = _first_values(table, columns, numeric)
    summaries = []
    for column in columns:
        # One bad cell among numbers is for people to see, and does not make a column text.
        known = finite["count"].get(column, 0)
        number = known > 0 and 2 * known >= filled[column]
        summaries.append(
            ColumnSummary(
                name=column,
                kind="number" if number else "text",
                lower=finite["min"][column] if number else None,
                upper=finite["max"][column] if number else None,
                values=values[column],
            )
        )
    return summaries


def _totals(table: FileTable, columns: list[str], expression: str, function: str) -> dict[str, Any]:
    """Compute an aggregate of an expression of every column."""
    if not columns:
        return {}
    terms = [expression.format(cell=table.cell(column), number=table.number(column)) for column in columns]
    query = ", ".join(f"{function}({term})" for term in terms)
    found = table.fetch(lambda rows: rows.aggregate(query).fetchall()[0])
    return dict(zip(columns, found, strict=True))


def _first_values(table: FileTable, columns: list[str], numeric: list[str]) -> dict[str, list[str]]:
    """List the first distinct values of columns, shortened; of very many columns only the first rows are looked at."""
    typed = set(numeric) if table.schema is not None else set()
    cells = [
        table.cell(column) if column in typed else f"left(CAST({table.cell(column)} AS VARCHAR), {_SHOWN_LETTERS})"
        for column in columns
    ]
    listed = ", ".join(f'{cell} AS "{j}"' for j, cell in enumerate(cells))
    count = max(1_000, _MOST_LOOKED_AT // len(columns))
    found = table.fetch(lambda rows: rows.limit(count).project(listed).to_arrow_table())
    texts = {}
    for j, column in enumerate(columns):
        values = found.column(j).unique().slice(0, _SHOWN + 3).to_pylist()  # NULL and "" are no values
        known = [value for value in values if value not in (None, "")][: _SHOWN + 1]
        texts[column] = [f"{value:g}" if isinstance(value, float) else str(value) for value in known]
    return texts


def _refuse_large(table: FileTable, sizes: dict[str, int]) -> None:
    for column, size in sizes.items():
        if size > MOST_UNPACKED:
            raise InputError(
                f"{table.name}, column {column!r}: unpacked it has more than {MOST_UNPACKED >> 20} MB, which is what "
                f"the studio takes. Leave the column out of the file, or shorten its cells."
            )
