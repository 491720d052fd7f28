"""Files as one table in DuckDB: columns by name, rows in the order of the files, and the place of every cell."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from prudent.cases.csv_files import distinct_names, find_delimiter, line_of_row, open_csv, read_header, rewrite_csv
from prudent.cases.engine import speaking
from prudent.cases.file_sets import (
    Names,
    Roles,
    find_files,
    is_one_file,
    kind_of_files,
    own_connection,
    quoted_name,
    quoted_text,
    spooled,
)
from prudent.cases.parquet_files import open_parquet, read_schema, unreadable_file
from prudent.errors import EngineError, InputError
from prudent.formatting import did_you_mean

_SHOWN_COLUMNS = 20

_NONE: Roles = {}

Result = TypeVar("Result")


class FileTable:
    """Files of one kind, read in DuckDB; made by :func:`open_table`.

    Parameters
    ----------
    files : sequence of str
        Whose rows follow each other.
    name : str
        Of a single file in messages, if it is not its path.
    delimiter : str
        Between the cells of CSV; for a comma another character is taken if only that makes columns of the names.
    """

    def __init__(self, files: Names, name: str = "", *, delimiter: str = ",") -> None:
        self.connection = own_connection()
        self.files, self._name = tuple(files), name
        self.name = name or (files[0] if len(files) == 1 else f"{len(files):,} files")
        self.kind = kind_of_files(files, name)
        self.schema = None if self.kind == "csv" else read_schema(files[0], name)
        self.delimiter = find_delimiter(files[0]) if delimiter == "," and self.kind == "csv" else delimiter
        self.columns: tuple[str, ...] = (
            read_header(files[0], self.delimiter, name) if self.schema is None else tuple(self.schema.names)
        )
        names = self.columns if self.kind == "parquet" else distinct_names(self.columns)
        self._cells = dict(zip(self.columns, map(quoted_name, names), strict=True))
        self._sources = self.files  # copies of them where DuckDB does not take the line ends
        self._copies: TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self.connection.close()
        if self._copies is not None:
            self._copies.cleanup()

    def require(self, *columns: str) -> None:
        """Check that columns are there, once."""
        file = self._name or self.files[0]
        for column in columns:
            count = self.columns.count(column)
            if count > 1:
                raise InputError(f"{file}: {count} columns are named {column!r}; names must differ.")
            if count == 0:
                raise InputError(f"{file}: there is no column {column!r}; {self._about_missing(column)}.")

    def cell(self, column: str) -> str:
        """Write a column in SQL."""
        self.require(column)
        return self._cells[column]

    def number(self, column: str) -> str:
        """Write a column as doubles: NULL where a cell is empty, infinite where it is no number."""
        cell = self.cell(column)
        if self.kind == "parquet":
            return f"CAST({cell} AS DOUBLE)"
        return f"CASE WHEN trim({cell}) <> '' THEN coalesce(TRY_CAST({cell} AS DOUBLE), 'inf'::DOUBLE) END"

    def relation(self, roles: Roles, sources: Names = (), *, typed: bool = False) -> Any:
        """Open rows (of some of the files) in DuckDB; cells of CSV are text, or if ``typed`` numbers are doubles."""
        files = sources or self._sources
        # A cursor can be asked for more while batches of another are read; queries of the connection can be watched.
        connection = self.connection if typed else self.connection.cursor()
        if self.kind == "parquet":
            return open_parquet(connection, files, roles, self._name)
        if typed:
            self.require(*roles)
        numbers = [column for column, role in roles.items() if typed and role == "number"]
        return open_csv(connection, files, self.columns, self.delimiter, numbers)

    def fetch(self, query: Callable[[Any], Result], roles: Roles = _NONE) -> Result:
        """Call a query on the rows, as a DuckDB relation in which cells of CSV are text, and return its result."""
        try:
            with speaking(f"reading {self.name}"):
                return query(self.relation(roles))
        except EngineError as error:
            self._copy_or_refuse(error, list(roles))
        return self.fetch(query, roles)

    def count(self) -> int:
        """Count the rows; refuse files without any."""
        found = int(self.fetch(lambda rows: rows.aggregate("count(*)").fetchall()[0][0]))
        if found == 0:
            raise InputError(f"{self.name}: there are no rows below the column names.")
        return found

    def table(self, expressions: Names, roles: Roles) -> Any:
        """Read expressions of columns as an Arrow table with the columns 0, 1, ..."""
        found = self.fetch(lambda rows: rows.project(_listed(expressions)).to_arrow_table(), roles)
        if found.num_rows == 0:
            self.count()
        return found

    def batches(self, expressions: Names, roles: Roles) -> Iterator[Any]:
        """Read the same in Arrow batches; what DuckDB may refuse was found by a :meth:`fetch` of these columns."""
        import pyarrow as pa

        with speaking(f"reading {self.name}"):
            yield from pa.RecordBatchReader.from_stream(self.relation(roles).project(_listed(expressions)))

    def rows_where(self, condition: str, roles: Roles, count: int) -> list[int]:
        """Find the first rows, counted from 0, that meet a condition in SQL."""
        numbered = f"row_number() OVER () - 1 AS number, {condition} AS met"
        found = self.fetch(lambda rows: rows.project(numbered).filter("met").limit(count).fetchall(), roles)
        return [number for number, _ in found]

    def written(self, row: int, column: str) -> Any:
        """Return a cell as it stands in the file."""
        return self.fetch(lambda rows: rows.project(self.cell(column)).limit(1, row).fetchall()[0][0])

    def at(self, row: int, *columns: str) -> str:
        """Say where a cell is; the first row is 0 here and 1 in the words."""
        file = self.files[0]
        if len(self.files) > 1:
            for file, source in zip(self.files, self._sources, strict=True):  # noqa: B007
                count = int(self.relation(_NONE, [source]).aggregate("count(*)").fetchall()[0][0])
                if row < count:
                    break
                row -= count
        line = line_of_row(file, self.delimiter, row) if self.kind == "csv" else None
        place = f"{self._name or file}, row {row + 1:,}" + (f" (line {line:,})" if line else "")
        named = ", ".join(repr(column) for column in columns)
        return f"{place}, {'column' if len(columns) == 1 else 'columns'} {named}" if columns else place

    def _copy_or_refuse(self, error: EngineError, wanted: Names) -> None:
        """Say which row DuckDB does not take; if there is none, write the same cells as it takes them."""
        reason = str(error).partition("The engine says: ")[2].rstrip(".")
        if self.kind == "parquet":
            raise unreadable_file(self.name, reason) from error
        if self._copies is not None:
            raise InputError(f"{self.name}: cannot be read as CSV: {reason}.") from error
        self._copies = TemporaryDirectory(prefix="prudent-")
        copies = [Path(self._copies.name) / f"{number}.csv" for number in range(len(self.files))]
        for file, copy in zip(self.files, copies, strict=True):
            rewrite_csv(file, copy, self._name or file, self.delimiter, self.columns, wanted)
        self._sources = tuple(map(str, copies))

    def _about_missing(self, column: str) -> str:
        more = ", ..." if len(self.columns) > _SHOWN_COLUMNS else ""
        hint = did_you_mean(column, self.columns)
        return f"{hint}there are {', '.join(map(repr, self.columns[:_SHOWN_COLUMNS]))}{more}"


@contextmanager
def open_table(source: str | Names | bytes, name: str = "", *, delimiter: str = ",") -> Iterator[FileTable]:
    r"""Open CSV or Parquet files, told apart by content.

    Parameters
    ----------
    source : str, sequence of str or bytes
        Files, globs and folders; or what a file holds. Standard input, ``-``, is copied to a temporary file first, as
        pipes and bytes are.
    name : str
        Of bytes, in messages.
    delimiter : str
        Between the cells of CSV.

    Examples
    --------
    >>> from prudent.cases.file_table import open_table
    >>> with open_table(b"f,y\n0.5,1\n", "rows.csv") as table:
    ...     table.columns
    ('f', 'y')
    """
    with ExitStack() as stack:
        files = [source] if isinstance(source, str) else source
        if isinstance(files, bytes):
            files = [stack.enter_context(spooled(files))]
        elif not is_one_file(files):
            files = find_files(files)
        elif files[0] == "-" or (Path(files[0]).exists() and not Path(files[0]).is_file()):
            name = "standard input" if files[0] == "-" else files[0]
            files = [stack.enter_context(spooled(files[0]))]
        yield stack.enter_context(closing(FileTable(files, name, delimiter=delimiter)))


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
    return f"CASE WHEN {text} IS NOT NULL THEN CASE {text} {known} ELSE -1 END END::DOUBLE"


def _listed(expressions: Names) -> str:
    return ", ".join(f'{expression} AS "{j}"' for j, expression in enumerate(expressions))
