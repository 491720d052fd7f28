"""Files as one table in DuckDB: columns by name, rows in the order of the files, and the place of every cell.

Of files in the format of the Hubverse a row per task and class or level becomes a row per task first.
"""

import atexit
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np

from prudent.arrays import AnyArray, FloatArray
from prudent.cases.csv_files import (
    distinct_names,
    find_delimiter,
    is_missing,
    line_of_row,
    number_in_sql,
    open_csv,
    plain_file,
    read_header,
    rewrite_csv,
)
from prudent.cases.engine import speaking
from prudent.cases.file_sets import (
    LARGE,
    NUMBERS,
    PLAIN,
    Names,
    Reading,
    Roles,
    as_text,
    find_files,
    kind_of_files,
    open_parquet,
    own_connection,
    quoted_name,
    quoted_text,
    read_schema,
    spool,
    unreadable_file,
)
from prudent.errors import EngineError, InputError
from prudent.formatting import did_you_mean

_SHOWN_COLUMNS = 20
_FIRST_ROWS = 20_000
#: All rows, and their numbers from 0 on.
NUMBERED = "(SELECT *, row_number() OVER () - 1 AS prudent_row FROM rows)"


class FileTable:
    """Files of one kind, read in DuckDB.

    Parameters
    ----------
    source : str, sequence of str or bytes
        Files, globs and folders; or what a file holds. Standard input, ``-``, is copied to a temporary file first, as
        pipes, bytes and files that are packed are.
    name : str
        Of bytes, in messages.
    reading : Reading

    Attributes
    ----------
    sources : tuple of str
        What DuckDB reads: the files, or copies of them.
    """

    def __init__(self, source: str | Names | bytes, name: str = "", reading: Reading = PLAIN) -> None:
        self.connection = own_connection()
        self.reading, self.percent, self.roles = reading, set[str](), Roles()
        self._name, self._unit = name, "row"
        self._folder: Path | None = None
        self.wide: tuple[str, ...] = ()  # columns that rows of the Hubverse became
        try:
            self._open(source)
            if reading.hubverse is not None:
                from prudent.cases.file_table import write_wide

                wide = self._copy("wide")
                self.wide = write_wide(self, reading.hubverse, wide)
                self._name, self._unit, self.reading = self.name, "task", PLAIN
                self._describe([str(wide)], [str(wide)])
        except BaseException:
            self.close()
            raise

    def _open(self, source: str | Names | bytes) -> None:
        if isinstance(source, bytes):
            source = spool(source, self._copy("given"))
        files = [source] if isinstance(source, str) else source
        if len(files) == 1 and (files[0] == "-" or Path(files[0]).is_fifo() or Path(files[0]).is_char_device()):
            self._name = "standard input" if files[0] == "-" else files[0]
            files = [spool(files[0], self._copy("given"))]
        self.files = find_files(files)
        self.name = self._name or (self.files[0] if len(self.files) == 1 else f"{len(self.files):,} files")
        plain = [
            plain_file(file, self._copy(f"plain-{j}"), self._name or file, self.reading)
            for j, file in enumerate(self.files)
        ]
        self._describe(plain, [self._name] if self._name else self.files)

    def _describe(self, sources: Names, shown: Names) -> None:
        """Find the columns of files that DuckDB reads."""
        self.sources = self._lined = tuple(sources)  # DuckDB reads these; lines are counted in those
        self.kind, self.schema = kind_of_files(shown, sources), None
        if self.kind == "parquet":
            self.schema = read_schema(sources[0], self.name)
            self.columns: tuple[str, ...] = tuple(self.schema.names)
        else:
            if self.reading.delimiter == ",":
                self.reading = replace(self.reading, delimiter=find_delimiter(sources[0]))
            headers = [
                read_header(source, self.reading.delimiter, file) for file, source in zip(shown, sources, strict=True)
            ]
            self.columns = headers[0]
            for file, other in zip(shown, headers, strict=True):
                if other != self.columns:  # DuckDB goes by position and does not look at names
                    raise InputError(
                        f"{file}: its columns are {list(other)}, and those of {shown[0]} are {list(self.columns)}; "
                        f"files that are read together need the same columns in the same order.",
                    )
        names = self.columns if self.schema else distinct_names(self.columns)
        self._cells = dict(zip(self.columns, map(quoted_name, names), strict=True))

    def _copy(self, name: str) -> Path:
        """Name a temporary file; lazy tables may outlive this object, so it stays until Python ends or it is closed."""
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="prudent-"))
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / name

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self.connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_large(self) -> bool:
        """True for several files and for a large one: their rows stay in DuckDB."""
        return len(self.sources) > 1 or Path(self.sources[0]).stat().st_size > LARGE

    def require(self, *columns: str) -> None:
        """Check that columns are there, once."""
        file = self._name or self.files[0]
        for column in columns:
            count = self.columns.count(column)
            if count > 1:
                raise InputError(f"{file}: {count} columns are named {column!r}; names must differ.")
            if count == 0:
                shown = ", ".join(map(repr, self.columns[:_SHOWN_COLUMNS]))
                shown += ", ..." if len(self.columns) > _SHOWN_COLUMNS else ""
                if self.kind == "csv" and len(self.columns) == 1:
                    shown += f" (cells end at {self.reading.delimiter!r}; --delimiter takes another)"
                hint = did_you_mean(column, self.columns)
                raise InputError(f"{file}: there is no column {column!r}; {hint}there are {shown}.")

    def use(self, roles: Roles) -> None:
        """Say which columns are read, and as what."""
        self.roles = roles
        if self.kind == "csv":
            self.require(*roles)
            self.find_percent([column for column, role in roles.items() if role in NUMBERS])

    def find_percent(self, columns: Names) -> None:
        """Find columns of CSV whose first number has a per cent sign; all others in them then need it."""
        if self.kind == "parquet" or not columns:
            return
        cells = map(self.cell, columns)
        first = ", ".join(f"arg_min({cell}, prudent_row) FILTER (regexp_matches({cell}, '[0-9]'))" for cell in cells)
        (found,) = self.ask(f"SELECT {first} FROM (FROM {NUMBERED} LIMIT {_FIRST_ROWS})")
        pairs = zip(columns, found, strict=True)
        self.percent = {column for column, cell in pairs if cell is not None and cell.rstrip().endswith("%")}

    def cell(self, column: str) -> str:
        """Write a column in SQL."""
        self.require(column)
        return self._cells[column]

    def value(self, column: str) -> str:
        """Write a column in SQL as its role asks: labels and ids that are time stamps are text."""
        role, cell = self.roles[column], self.cell(column)
        if role in NUMBERS:
            return self.number(column)
        if role == "id" and self.schema is not None:
            return as_text(self.schema.field(column).type, cell)
        return label_text(cell) if role == "label" else cell

    def number(self, column: str) -> str:
        """Write a column as doubles: NULL where a cell is missing, infinite where it is no number."""
        cell, outcome = self.cell(column), self.roles.get(column, "outcome") == "outcome"
        if self.kind == "parquet":
            return f"CAST({cell} AS DOUBLE)"
        return number_in_sql(cell, self.reading.decimal, percent=column in self.percent, outcome=outcome)

    def relation(self, sources: Names = ()) -> Any:
        """Open rows (of some of the files) in DuckDB; cells of CSV are text."""
        connection = self.connection.cursor()  # which can be asked for more while batches of another are read
        files = sources or self.sources
        if self.kind == "parquet":
            return open_parquet(connection, files, self.roles, self._name)
        return open_csv(connection, files, self.columns, self.reading.delimiter)

    def fetch(self, query: Callable[[Any], Any]) -> Any:
        """Call a query on the rows, as a DuckDB relation in which cells of CSV are text, and return its result."""
        try:
            with speaking(f"reading {self.name}"):
                return query(self.relation())
        except EngineError as error:
            self._rewrite_or_refuse(error)
        return self.fetch(query)

    def count(self) -> int:
        """Count the rows; refuse files without any."""
        ((found,),) = self.ask("SELECT count(*) FROM rows")
        if found == 0:
            raise InputError(f"{self.name}: there are no rows below the column names.")
        return int(found)

    def table(self, expressions: Names, most: int = 1 << 60) -> Any:
        """Read expressions of columns, in the first rows, as an Arrow table with the columns 0, 1, ..."""
        found = self.fetch(lambda rows: rows.limit(most).project(_listed(expressions)).to_arrow_table())
        if found.num_rows == 0:
            self.count()
        return found

    def batches(self, expressions: Names) -> Iterator[Any]:
        """Read the same in Arrow batches; what DuckDB may refuse was found by a :meth:`fetch` of these columns."""
        import pyarrow as pa

        with speaking(f"reading {self.name}"):
            yield from pa.RecordBatchReader.from_stream(self.relation().project(_listed(expressions)))

    def repeated(self, keys: Names, condition: str = "true") -> list[tuple[int, int]]:
        """Find the first row that shares all keys with a later one, and the last that does; at most this pair."""
        shared = f"WHERE {condition} GROUP BY {', '.join(keys)} HAVING count(*) > 1"
        found = f"SELECT min(prudent_row), max(prudent_row) FROM {NUMBERED} {shared} ORDER BY 1 LIMIT 1"
        return self.ask(found)

    def ask(self, query: str) -> list[Any]:
        """Fetch the result of a query on the table ``rows``."""
        return list(self.fetch(lambda opened: opened.query("rows", query).fetchall()))

    def refuse_empty(self, column: str) -> None:
        """Name the first row in which a column of ids or periods is empty."""
        empty = f"SELECT prudent_row FROM {NUMBERED} WHERE {self.cell(column)} IS NULL LIMIT 1"
        for (row,) in self.ask(empty):
            raise InputError(f"{self.at(row, column)}: the cell is empty.")

    def written(self, row: int, column: str) -> Any:
        """Return a cell as it stands in the file."""
        return self.ask(f"SELECT {self.cell(column)} FROM rows LIMIT 1 OFFSET {row}")[0][0]

    def at(self, row: int, *columns: str) -> str:
        """Say where a cell is; the first row is 0 here and 1 in the words."""
        for file, lined, source in zip(self.files, self._lined, self.sources, strict=False):  # noqa: B007
            count = len(self.sources) > 1 and int(self.relation([source]).aggregate("count(*)").fetchall()[0][0])
            if not count or row < count:
                break
            row -= count
        lines = self.kind == "csv" and self._unit == "row"
        line = line_of_row(lined, self.reading.delimiter, row) if lines else None
        place = f"{self._name or file}, {self._unit} {row + 1:,}" + (f" (line {line:,})" if line else "")
        named = ", ".join(repr(column) for column in columns)
        return f"{place}, {'column' if len(columns) == 1 else 'columns'} {named}" if columns else place

    def _rewrite_or_refuse(self, error: EngineError) -> None:
        """Say which row DuckDB does not take; if there is none, write the same cells as it takes them."""
        reason = str(error).partition("The engine says: ")[2].rstrip(".")
        if self.kind == "parquet":
            raise unreadable_file(self.name, reason) from error
        if self.sources != self._lined:
            raise InputError(f"{self.name}: cannot be read as CSV: {reason}.") from error
        copies = [self._copy(f"{number}.csv") for number in range(len(self.sources))]
        for file, source, copy in zip(self.files, self.sources, copies, strict=True):
            rewrite_csv(source, copy, self._name or file, self.reading.delimiter, self.columns, list(self.roles))
        self.sources = tuple(map(str, copies))


@contextmanager
def open_table(source: str | Names | bytes, name: str = "", reading: Reading = PLAIN) -> Iterator[FileTable]:
    r"""Open CSV, Excel or Parquet files, told apart by content, as :class:`FileTable` does; close them at the end.

    Examples
    --------
    >>> from prudent.cases.file_table import open_table
    >>> with open_table(b"f,y\n0.5,1\n", "rows.csv") as table:
    ...     table.columns
    ('f', 'y')
    """
    with closing(FileTable(source, name, reading)) as table:
        yield table


def label_text(cell: str) -> str:
    """Write a class label as text in SQL; whole numbers are often stored as floats where a value is missing."""
    text = f"CAST({cell} AS VARCHAR)"
    whole = f"nullif(regexp_replace({text}, '[.]0$', ''), 'nan')"
    truth = f"CASE {text} WHEN 'true' THEN 'True' WHEN 'false' THEN 'False' END"
    others = f"WHEN 'BOOLEAN' THEN {truth} WHEN 'DOUBLE' THEN {whole} WHEN 'FLOAT' THEN {whole}"
    return f"nullif(CASE typeof({cell}) {others} ELSE trim({text}) END, '')"


def class_number(cell: str, space: Any) -> str:
    """Write the position of a class label in SQL: NULL where it is missing, -1 where it is no class."""
    known = " ".join(f"WHEN {quoted_text(word)} THEN {j}" for word, j in space.text_positions().items())
    text = label_text(cell)
    return f"CASE {text} {known} ELSE CASE WHEN NOT {is_missing(f'lower({text})')} THEN -1 END END::DOUBLE"


def _listed(expressions: Names) -> str:
    return ", ".join(f'{expression} AS "{j}"' for j, expression in enumerate(expressions))


_LONG = ("output_type", "output_type_id", "value")
_MOST_WIDE = 1_000


class HubverseForecasts(NamedTuple):
    """Forecasts of tasks.

    Attributes
    ----------
    tasks : dict of str to array of shape (n,)
        Columns that name the tasks, and whatever else the files hold, as text.
    ids : tuple
        Levels of the quantiles in increasing order, or names of the classes.
    values : array of shape (n, ids)
        NaN where a task has no value.
    """

    tasks: dict[str, AnyArray]
    ids: tuple[Any, ...]
    values: FloatArray


def read_hubverse(paths: str | Names, output_type: str = "quantile", *, delimiter: str = ",") -> HubverseForecasts:
    """Read Hubverse files: CSV or Parquet with the columns ``output_type``, ``output_type_id`` and ``value``.

    Parameters
    ----------
    paths : str or sequence of str
        Files, globs and folders.
    output_type : {"quantile", "pmf"}
    delimiter : str
        Between the cells of CSV.
    """
    with open_table(paths, reading=Reading(delimiter, hubverse=output_type)) as table:
        names, quantiles = [name for name in table.columns if name not in table.wide], output_type == "quantile"
        ids = sorted(table.wide, key=float) if quantiles else table.wide
        found = table.table([*map(table.number, ids), *map(table.cell, names)])
        columns = [found.column(j).to_numpy(zero_copy_only=False) for j in range(found.num_columns)]
        values = np.stack(columns[: len(ids)], axis=1)
        for row, column in np.argwhere(np.isinf(values)).tolist():
            raise InputError(f"{table.at(row, ids[column])}: {table.written(row, ids[column])!r} is not a number.")
    tasks = dict(zip(names, columns[len(ids) :], strict=True))
    return HubverseForecasts(tasks, tuple(map(float, ids) if quantiles else ids), values)


def write_wide(table: FileTable, output_type: str, target: Path) -> tuple[str, ...]:
    """Write one row of CSV for each task, in their order, with a column per id of an output type; return the ids."""
    kind, given, value = map(table.cell, _LONG)
    given = f"CAST({given} AS VARCHAR)"
    tasks = [table.cell(column) for column in table.columns if column not in _LONG]
    wanted = f"{kind} = {quoted_text(output_type)}"
    rows = f"{NUMBERED} WHERE {wanted}"
    found = table.ask(f"SELECT {given} FROM {rows} GROUP BY 1 ORDER BY min(prudent_row) LIMIT {_MOST_WIDE + 1}")
    ids = [name for (name,) in found]
    if not ids or len(ids) > _MOST_WIDE or None in ids or set(ids) & set(table.columns):
        raise InputError(
            f"{table.name}: rows of output_type {output_type!r} must have 1 to {_MOST_WIDE:,} different output_type_id "
            f"that are no names of columns; there are {len(ids):,}: {ids[:5]}.",
        )
    for first, again in table.repeated([*tasks, given], wanted):
        raise InputError(f"{table.at(again, *_LONG[:2])}: the task has this id already in {table.at(first)}.")
    wide = [f"max({value}) FILTER ({given} = {quoted_text(name)}) AS {quoted_name(name)}" for name in ids]
    grouped = f"SELECT {', '.join([*tasks, *wide])} FROM {rows} GROUP BY ALL ORDER BY min(prudent_row)"
    table.fetch(lambda opened: opened.query("rows", grouped).write_csv(str(target), header=True))
    return tuple(ids)
