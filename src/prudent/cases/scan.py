"""Cases in files and tables: which columns are forecasts, outcomes, weights, ids, periods and context."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from prudent.arrays import frozen, listed
from prudent.arrays.lazy_narwhals import Frame, nw
from prudent.cases.cases import Cases
from prudent.cases.csv_files import with_whole_numbers
from prudent.cases.engine import collect, engine_name, speaking
from prudent.cases.file_sets import Names, Roles, find_files, quoted_name
from prudent.cases.file_table import FileTable, label_text
from prudent.cases.periods import in_engine
from prudent.errors import InputError
from prudent.spaces import Space

_ENGINES = ("duckdb", "polars", "pyspark", "pyspark_connect")
_SINGLE = ("weights", "ids", "periods")


@frozen
class TableCases(Cases):
    """Cases in a lazy table, with the parts that its columns play; made by :func:`scan`.

    Attributes
    ----------
    table : lazy table
        As it was given, or the relation that a path opened.
    forecasts, outcomes : tuple of str
        ``outcomes`` is empty where there are none.
    weights, ids, periods : str or None
    context : tuple of str
    missing : {"refuse", "drop"}
        What happens to rows whose outcome is NULL or NaN.
    files : tuple of str
        What paths, globs and folders came to; empty for other tables.
    connection : DuckDB connection or None
        Of files, which are opened in one of their own.
    """

    table: Any
    forecasts: tuple[str, ...]
    outcomes: tuple[str, ...] = ()
    weights: str | None = None
    ids: str | None = None
    periods: str | None = None
    context: Any = ()  # names of columns
    missing: str = "refuse"
    files: tuple[str, ...] = ()
    frame: Frame = field(repr=False, kw_only=True)
    connection: Any = field(default=None, repr=False, kw_only=True)
    reopen: Callable[[str], TableCases] | None = field(default=None, repr=False, kw_only=True)  # one file alone

    def __repr__(self) -> str:
        parts = ("forecasts", "outcomes", *_SINGLE, "context")
        named = [f"{name}={getattr(self, name)!r}" for name in parts if getattr(self, name)]
        return f"Cases({self.engine} table, {', '.join(named)})"

    def __len__(self) -> int:
        return int(collect(self.frame.select(nw.len().alias("rows")), "counting rows")["rows"][0])

    def __array__(self, *options: Any) -> Any:
        raise InputError(
            f"forecasts must be in memory here; got cases of a {self.engine} table. Policies, audits, ladders, worst "
            f"cases, stress tests and monitors work where the rows are; collect a sample of rows for the rest."
        )

    @property
    def engine(self) -> str:
        """Name of the engine that holds the rows."""
        return engine_name(self.frame)

    @property
    def has_outcomes(self) -> bool:
        """Whether columns of outcomes are named."""
        return bool(self.outcomes)

    @property
    def width(self) -> int:
        """Number of the forecasts' columns."""
        return len(self.forecasts)

    def require_context(self, columns: Sequence[str]) -> None:
        """Refuse a table whose columns of context are not all of these, at least."""
        for name in columns:
            if name not in self.context:
                raise InputError(
                    f"context must name the column {name!r}, by which rows are told apart here: scan(context={name!r})."
                )

    def on(self, space: Space) -> Any:
        """Place the rows on an outcome space, lazily."""
        from prudent.cases.table_rows import TableRows  # late: it builds on this file

        return TableRows(self, space)


def scan(
    table: Any,
    forecasts: str | Names,
    outcomes: str | Names | None = None,
    *,
    weights: str | None = None,
    ids: str | None = None,
    periods: str | None = None,
    every: str | None = None,
    context: str | Names = (),
    missing: Literal["refuse", "drop"] = "refuse",
) -> TableCases:
    """Take the cases of files or of a lazy table; policies, audits and the rest then work where the rows are.

    Parameters
    ----------
    table : lazy table, path, glob, folder, list of them, or FileTable
        A DuckDB relation, a Polars LazyFrame or a Spark DataFrame; or Parquet or CSV files, which open in DuckDB.
    forecasts : str or sequence of str
        One column per coordinate of the outcome space.
    outcomes : str or sequence of str, optional
        As forecasts; on the simplex also one column of class labels.
    weights, ids, periods : str, optional
        Columns of weights, of record ids for draws, and of periods of dependent rows.
    every : {"day", "month", "quarter", "year"}, optional
        Where ``periods`` are dates: the period is the month, say, that a date lies in.
    context : str or sequence of str
        Columns known at decision time.
    missing : {"refuse", "drop"}
        What to do with rows whose outcome is NULL or NaN.

    Examples
    --------
    >>> import duckdb, prudent
    >>> table = duckdb.sql("SELECT (i + 0.5) / 1000 AS risk FROM range(1000) t(i)")
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal())
    >>> round(policy.fit(prudent.scan(table, "risk")).certificate_.lower, 4)   # 1 - 1/sqrt(6)
    0.5918
    """
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing must be 'refuse' or 'drop'; got {missing!r}.")
    given = {"forecasts": forecasts, "outcomes": outcomes, "weights": weights, "ids": ids, "periods": periods}
    names = {what: _names(columns, what) for what, columns in {**given, "context": context}.items()}
    if not names["forecasts"]:
        raise InputError("forecasts must name at least one column.")
    roles = _roles(names)
    source: FileTable | None = table if isinstance(table, FileTable) else None
    if isinstance(table, (str, os.PathLike)):
        table = [table]
    if isinstance(table, (list, tuple)) and table and all(isinstance(path, (str, os.PathLike)) for path in table):
        source = FileTable(find_files([os.fspath(path) for path in table]))
    if source is not None:
        as_written = source is table or source.kind == "csv"
        table = _open(source, roles, names["ids"], as_written=as_written)
    try:
        frame = nw.from_native(table).lazy()
        if engine_name(frame) not in _ENGINES:
            raise TypeError
    except TypeError as error:
        raise InputError(
            f"table must be a DuckDB relation, a Polars LazyFrame, a Spark DataFrame, or the path of Parquet or CSV "
            f"files; got {type(table).__module__}.{type(table).__name__}. Arrays and frames in memory are given to fit "
            f"and audit as they are; what another engine holds, save as Parquet."
        ) from error
    with speaking("reading the table's columns"):
        schema = frame.collect_schema()
    for what, wanted in names.items():
        for name in wanted:
            if name not in schema:
                raise InputError(f"{what} must name columns of the table; {name!r} is none of {list(schema)}.")
            if roles[name] == "number" and not (schema[name].is_numeric() or schema[name] == nw.Boolean):
                raise InputError(f"{what} must be columns of numbers; {name!r} has type {schema[name]}. Cast it first.")
    if every is not None:
        if periods is None:
            raise InputError(f"every says how long periods are, and periods are not given; got every={every!r}.")
        frame = frame.with_columns(in_engine(nw.col(periods), schema[periods], periods, every).alias(periods))
    parts = names["forecasts"], names["outcomes"], weights, ids, periods, names["context"], missing
    found = TableCases(table, *parts, frame=frame)
    if source is None:
        return found

    def alone(file: str) -> TableCases:
        one = FileTable([file], delimiter=source.delimiter) if as_written else [file]
        return scan(one, forecasts, outcomes, weights=weights, periods=periods, every=every, missing=missing)

    return replace(found, files=source.files, connection=source.connection, reopen=alone)


def _names(given: Any, what: str) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) or what in _SINGLE else tuple(listed(given, what))
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must name columns, as text; got {list(names)}.")
    if len(set(names)) < len(names):
        raise InputError(f"{what} must name distinct columns; got {list(names)}.")
    return names


def _roles(names: Mapping[str, tuple[str, ...]]) -> Roles:
    """Say what columns are read as; outcomes are labels where there are not as many as forecasts."""
    outcomes = "number" if len(names["outcomes"]) == len(names["forecasts"]) else "label"
    roles = dict.fromkeys((*names["ids"], *names["periods"], *names["context"]), "name")
    roles |= dict.fromkeys(names["outcomes"], outcomes)
    return roles | dict.fromkeys((*names["forecasts"], *names["weights"]), "number")


def _open(source: FileTable, roles: Roles, ids: Names, *, as_written: bool) -> Any:
    """Open files in DuckDB: numbers are doubles in all rows of all files, whatever the first ones hold.

    Labels are text if they are to be compared ``as_written``, as :func:`prudent.cases.file_rows.read_sample` does.
    """
    opened = source.relation(roles, typed=True)
    known = {column.lower() for column in opened.columns}
    labels = [name for name, role in roles.items() if role == "label" and as_written and name.lower() in known]
    if labels:
        texts = [f"{label_text(quoted_name(name))} AS {quoted_name(name)}" for name in labels]
        opened = opened.project(f"* REPLACE ({', '.join(texts)})")
    whole = [name for name in ids if source.kind == "csv" and roles[name] == "name"]
    return with_whole_numbers(opened, whole[0]) if whole else opened
