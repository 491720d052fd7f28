"""The session: uploaded tables, bounded in number and size, a first look at their columns, and reports on them."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, Field

from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.cases import Cases
from prudent.cases.file_rows import BrokenCell, find_broken_rows, read_sample
from prudent.cases.file_sets import PLAIN, Reading, exact, holds_numbers, unreadable
from prudent.cases.file_table import FileTable, label_text, open_table
from prudent.errors import FileFormatError, InfeasibleError, InputError
from prudent.evidence.audits import usual_guarantees
from prudent.policies.file_decisions import capacity_from_text
from prudent.problem import DecisionProblem, problem_from_table
from prudent.report import Report
from prudent.spaces import Space
from prudent.studio.schemas import LONGEST_NAME, ColumnSummary, Guess, Question, guess, has_decimal_commas

MOST_BYTES = 64 << 20
MOST_ROWS = 1_000_000
_MOST_BYTES_OF_ALL = 256 << 20
_MOST_COLUMNS = 1_000
_MOST_CELLS = 100_000_000
_LISTED = 5


class RequestError(Exception):
    """A request cannot be answered: what is wrong, in which part of it, in which rows, and the HTTP status."""

    def __init__(self, message: str, where: str, rows: Sequence[BrokenCell] = (), *, status: int = 422) -> None:
        super().__init__(message)
        self.where, self.rows, self.status = where, rows, status


class DataSet(BaseModel):
    """One uploaded file, and what a first look at it shows."""

    id: str
    name: str
    rows: int
    columns: list[ColumnSummary]
    guess: Guess
    content: Annotated[bytes, Field(exclude=True)]
    reading: Annotated[Any, Field(exclude=True)]  # how the file is written

    def table(self) -> AbstractContextManager[FileTable]:
        """Open it."""
        return open_table(self.content, self.name, self.reading)


class DataSets:
    """All files of this process, by a hash of their content.

    Parameters
    ----------
    most_bytes, most_rows : int
        Of one file.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_rows: int = MOST_ROWS) -> None:
        self.most_bytes, self.most_rows = most_bytes, most_rows
        self._held = BoundedCache(16, _MOST_BYTES_OF_ALL)

    def add(self, content: bytes, name: str, reading: Reading = PLAIN) -> DataSet:
        """Take a file; those used least recently make room."""
        with open_table(content, name, reading) as table:
            plain = Path(table.sources[0])
            if plain.stat().st_size > max(MOST_UNPACKED, len(content)):
                raise RequestError(self.limit, "data", status=413)
            unusable = unusable_columns(table)
            usable = [column for position, column in enumerate(table.columns) if position not in unusable]
            if not usable:
                raise InputError(f"{name}: no column can be used: {_listed(unusable)}.")
            rows = table.count()
            if rows > self.most_rows or len(usable) > _MOST_COLUMNS or rows * len(usable) > _MOST_CELLS:
                message = (
                    f"{name}: there are more than {self.most_rows:,} rows, or more than {_MOST_COLUMNS:,} columns or "
                    f"{_MOST_CELLS:,} cells, which is what the studio takes. Keep only the columns that are needed, "
                    f"take a random part of the rows, or use the command line: prudent report."
                )
                raise RequestError(message, "data", status=413)
            columns, unpacked = summarize_columns(table, usable), plain.read_bytes()
        if reading is PLAIN and has_decimal_commas(columns):
            return self.add(content, name, Reading(table.reading.delimiter, decimal=","))
        start = guess(columns)
        if reading.decimal == ",":
            start.sentence += " Numbers are read with a decimal comma."
        if unusable:
            start.sentence += f" Cannot be used: {_listed(unusable)}."
        identity = hashlib.sha256(content).hexdigest()[:32]
        parts: dict[str, Any] = {"columns": columns, "guess": start, "content": unpacked, "reading": table.reading}
        held = DataSet(id=identity, name=name, rows=rows, **parts)
        self._held.put(identity, held)  # it may have had another name
        return held

    def get(self, identity: str) -> DataSet:
        """Return a file that is here."""

        def unknown() -> NoReturn:
            raise RequestError(
                "the studio does not hold these data any more. Choose the file again.", "data", status=404
            )

        return self._held.get(identity, unknown)

    def __contains__(self, identity: str) -> bool:
        return identity in self._held

    @property
    def limit(self) -> str:
        """How much is allowed, in words."""
        return (
            f"the file has more than {self.most_bytes >> 20} MB, which is what the studio takes. Keep only the columns "
            f"that are needed, save it as Parquet, or use the command line: prudent report."
        )


def _listed(unusable: dict[int, str]) -> str:
    more = f"; and {len(unusable) - _LISTED} more" if len(unusable) > _LISTED else ""
    return "; ".join(list(unusable.values())[:_LISTED]) + more


MOST_UNPACKED = 128 << 20
MOST_MEMORY = 512 << 20  # of DuckDB, should a file say less about itself than it holds
_MOST_LOOKED_AT = 2_000_000  # cells, for values to show
_FINITE = "CASE WHEN isfinite({number}) THEN {number} END"
_ENDS = f"row(count(nullif(trim(CAST({{cell}} AS VARCHAR)), '')), count({_FINITE}), min({_FINITE}), max({_FINITE}))"
_SHOWN = 13
_SHOWN_LETTERS = 40


def unusable_columns(table: FileTable) -> dict[int, str]:
    """Find the columns that no question can name, by position, and say why."""
    found, kinds = {}, unreadable(table.schema or ())
    for position, name in enumerate(table.columns):
        if not name:
            found[position] = f"column {position + 1} has no name"
        elif len(name) > LONGEST_NAME:
            found[position] = f"the name of column {position + 1} has more than {LONGEST_NAME} characters"
        elif position in kinds:
            found[position] = f"{name!r} holds {kinds[position][:_SHOWN_LETTERS]}"
    return found


def summarize_columns(table: FileTable, columns: list[str]) -> list[ColumnSummary]:
    """Summarise columns; refuse what would not fit into memory before it is unpacked."""
    table.require(*columns)
    table.connection.execute(f"SET memory_limit = '{MOST_MEMORY >> 20}MB'")
    if table.schema is not None:
        stated = f"FROM parquet_metadata({exact(table.files)}) SELECT path_in_schema, sum(total_uncompressed_size)"
        sizes = dict(table.connection.execute(f"{stated} GROUP BY 1").fetchall())
        _refuse_large(table, {column: sizes.get(column, 0) for column in columns})
    table.find_percent(columns)
    numeric = [column for column in columns if table.schema is None or holds_numbers(table.schema.field(column).type)]
    texts = [column for column in columns if column not in numeric]
    # Lengths first: a cell that is stored once may stand in many rows.
    lengths = _aggregates(table, texts, "sum(strlen(CAST({cell} AS VARCHAR)))")
    _refuse_large(table, {column: int(length or 0) for column, length in lengths.items()})
    ends, summaries = _aggregates(table, numeric, _ENDS), []
    # Of very many columns only the first rows are looked at.
    cells = [f"left({label_text(table.cell(column))}, {_SHOWN_LETTERS})" for column in columns]
    looked_at = table.table(cells, max(1_000, _MOST_LOOKED_AT // len(columns))).columns
    values = [held.unique().drop_null().slice(0, _SHOWN).to_pylist() for held in looked_at]
    for column, shown in zip(columns, values, strict=True):
        # One bad cell among numbers is for people to see, and does not make a column text.
        filled, known, lower, upper = ends.get(column, (0, 0, None, None))
        number = known > 0 and 2 * known >= filled
        found: Any = {"kind": "number", "lower": lower, "upper": upper} if number else {"kind": "text"}
        summaries.append(ColumnSummary(name=column, values=shown, **found))
    return summaries


def _aggregates(table: FileTable, columns: list[str], expression: str) -> dict[str, Any]:
    """Compute an aggregate of every column."""
    if not columns:
        return {}
    pairs = [(table.cell(column), table.number(column)) for column in columns]
    query = ", ".join(expression.format(cell=cell, number=number) for cell, number in pairs)
    found = table.fetch(lambda rows: rows.aggregate(query).fetchall()[0])
    return dict(zip(columns, found, strict=True))


def _refuse_large(table: FileTable, sizes: dict[str, int]) -> None:
    for column, size in sizes.items():
        if size > MOST_UNPACKED:
            raise InputError(
                f"{table.name}, column {column!r}: unpacked it has more than {MOST_UNPACKED >> 20} MB, which is what "
                f"the studio takes. Leave the column out of the file, or shorten its cells."
            )


# The cache of a sample may hold many times the bytes of its rows, so there are few long samples.
_MAX_SAMPLES, _MAX_BYTES = 8, 32 << 20


@contextmanager
def about(where: str) -> Iterator[None]:
    """Turn errors of the library into errors about a part of the page."""
    try:
        yield
    except (InputError, InfeasibleError, FileFormatError) as error:
        raise RequestError(str(error), where) from error


@about("problem")
def _decision(question: Question) -> DecisionProblem:
    return problem_from_table(question.problem.table())


class Session:
    """Answer questions with the library's own functions.

    Parameters
    ----------
    data_sets : DataSets
    """

    def __init__(self, data_sets: DataSets) -> None:
        self.data_sets = data_sets
        self._rows = BoundedCache(_MAX_SAMPLES, _MAX_BYTES)

    def report(self, question: Question, **page: Any) -> Report:
        """Make the report of a question, in which nothing is computed yet."""
        problem = _decision(question)
        rungs, (cases, _) = usual_guarantees(problem), self.rows(question)
        if question.slack == "audit" and not cases.has_outcomes:
            raise RequestError("measured slack needs outcomes: set the slack by hand.", "slack")
        with about("capacity"):
            capacity = capacity_from_text(question.capacity, problem, len(cases))
        with about("slack"):
            return Report(
                problem,
                cases,
                guarantee=reduce(and_, [rungs[name] for name in question.rungs]) if question.rungs else "auto",
                slack=question.slack,
                capacity=capacity,
                confidence=question.confidence,
                **page,
            )

    def rows(self, question: Question) -> tuple[Cases, str | None]:
        """Read the columns that a question names; say how many rows were left out, and why."""
        self.data_sets.get(question.data)  # data that were dropped are not answered from the cache
        space = _decision(question).space  # the rows depend on its bounds, not on what actions are worth
        key = question.data, question.columns.model_dump_json(), question.skip_broken_rows, repr(space)
        return self._rows.get(key, lambda: self._read(question, space))

    def _read(self, question: Question, space: Space) -> tuple[Cases, str | None]:
        self._rows.discard(lambda key: key[0] not in self.data_sets)
        columns = question.columns
        named, broken = (columns.forecast, columns.outcome, columns.weight), list[BrokenCell]()
        with self.data_sets.get(question.data).table() as table:
            try:
                read = read_sample(table, space, *named, columns.period, **question.reading)
                read.cases.on(space)
            except (InputError, FileFormatError) as error:
                with suppress(InputError, FileFormatError):  # the message is about columns or the file as a whole
                    broken = find_broken_rows(table, space, *named)
                raise RequestError(str(error), "columns", broken) from error
        return read.cases, read.left_out
