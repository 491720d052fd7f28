"""Cases in files and tables: which columns are forecasts, outcomes, weights, ids, periods and context."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from prudent.arrays import Frame, frozen, listed, nw
from prudent.cases.cases import Cases, in_engine, require_options
from prudent.cases.engine import collect, engine_name, speaking
from prudent.cases.file_sets import NUMBERS, Names, Reading, Roles, quoted_name
from prudent.cases.file_table import FileTable
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
    source : FileTable or None
        Of files, which are opened in a DuckDB connection of their own.
    """

    table: Any
    forecasts: tuple[str, ...]
    outcomes: tuple[str, ...] = ()
    weights: str | None = None
    ids: str | None = None
    periods: str | None = None
    context: Any = ()  # names of columns
    missing: str = "refuse"
    source: FileTable | None = None
    frame: Frame = field(repr=False, kw_only=True)

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

    def in_memory(self, space: Space) -> Cases:
        """Read the rows that take part into memory."""
        return self.on(space).in_memory()

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
    delimiter: str = ",",
    decimal: str = ".",
    hubverse: str | None = None,
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
    delimiter, decimal : str
        Of CSV: what stands between cells (for a comma another character is taken if only that makes columns of the
        names and of the first row), and the decimal mark.
    hubverse : {"pmf", "quantile"}, optional
        Of Hubverse files, with a row for each task and class or level, these become columns.

    Examples
    --------
    >>> import duckdb, prudent
    >>> table = duckdb.sql("SELECT (i + 0.5) / 1000 AS risk FROM range(1000) t(i)")
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal())
    >>> round(policy.fit(prudent.scan(table, "risk")).certificate_.lower, 4)   # 1 - 1/sqrt(6)
    0.5918
    """
    require_options(missing, every, periods)
    given = {"forecasts": forecasts, "outcomes": outcomes, "weights": weights, "ids": ids, "periods": periods}
    names = {what: _names(columns, what) for what, columns in {**given, "context": context}.items()}
    if not names["forecasts"]:
        raise InputError("forecasts must name at least one column.")
    # Outcomes are labels where there are not as many as forecasts.
    outcome = "outcome" if len(names["outcomes"]) == len(names["forecasts"]) else "label"
    read_as = {"periods": "name", "context": "name", "ids": "id", "outcomes": outcome}
    read_as |= {"forecasts": "number", "weights": "number"}
    roles = {name: role for what, role in read_as.items() for name in names[what]}
    source: FileTable | None = table if isinstance(table, FileTable) else None
    if isinstance(table, (str, os.PathLike)):
        table = [table]
    if isinstance(table, (list, tuple)) and table and all(isinstance(path, (str, os.PathLike)) for path in table):
        source = FileTable([os.fspath(path) for path in table], reading=Reading(delimiter, decimal, hubverse))
    if source is not None:
        table = _open(source, roles)
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
            if roles[name] in NUMBERS and not (schema[name].is_numeric() or schema[name] == nw.Boolean):
                raise InputError(f"{what} must be columns of numbers; {name!r} has type {schema[name]}. Cast it first.")
    if every is not None and periods is not None:
        frame = frame.with_columns(in_engine(nw.col(periods), schema[periods], periods, every).alias(periods))
    parts = names["forecasts"], names["outcomes"], weights, ids, periods, names["context"], missing
    return TableCases(table, *parts, source, frame=frame)


def _names(given: Any, what: str) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) or what in _SINGLE else tuple(listed(given, what))
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must name columns, as text; got {list(names)}.")
    if len(set(names)) < len(names):
        raise InputError(f"{what} must name distinct columns; got {list(names)}.")
    return names


def _open(source: FileTable, roles: Roles) -> Any:
    """Open files in DuckDB: numbers are doubles in all rows of all files, labels text, as they are in memory."""
    source.use(roles)
    opened = source.relation()
    # DuckDB may know others from the folders' names.
    written = [f"{source.value(name)} AS {quoted_name(name)}" for name in roles if name in source.columns]
    return opened.project(f"* REPLACE ({', '.join(written)})") if written else opened
