"""Which columns of a lazy table are forecasts, outcomes, weights, ids and groups."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from prudent.arrays import listed
from prudent.errors import InputError
from prudent.tables.csv_files import found_delimiter, open_csv, with_whole_numbers
from prudent.tables.engine import engine_name, speaking
from prudent.tables.file_sets import find_files, kind_of_files, own_connection
from prudent.tables.parquet_files import Role, open_parquet

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["Columns", "columns"]

_Others = tuple[str | None, str | None, str | None]


@dataclass(frozen=True, eq=False)
class Columns:
    """A lazy table and the parts that its columns play; made by :func:`columns`.

    Attributes
    ----------
    table : lazy table
        As it was given, or the relation that a path opened.
    forecasts, outcomes : tuple of str
        ``outcomes`` is empty where there are none.
    weight, id, group : str or None
    missing : {"refuse", "drop", "drop outcomes"}
        What happens to rows whose forecast, weight or (in an audit) outcome is NULL or NaN.
    files : tuple of str
        What paths, globs and folders came to; empty for other tables.
    connection : DuckDB connection or None
        Of files, which are opened in one of their own.
    """

    table: Any
    forecasts: tuple[str, ...]
    outcomes: tuple[str, ...] = ()
    weight: str | None = None
    id: str | None = None
    group: str | None = None
    missing: str = "refuse"
    files: tuple[str, ...] = ()
    frame: nw.LazyFrame[Any] = field(repr=False, kw_only=True)
    connection: Any = field(default=None, repr=False, kw_only=True)
    reopen: Callable[[str], Columns] | None = field(default=None, repr=False, kw_only=True)  # one of the files alone
    may_drop: bool = field(default=True, repr=False, kw_only=True)  # whoever opened it can say missing="drop"
    written: bool = field(default=False, repr=False, kw_only=True)  # as in CSV, where every label is text

    def __repr__(self) -> str:
        engine = engine_name(self.frame)
        parts = [f"forecasts={list(self.forecasts)}"]
        parts += [f"outcomes={list(self.outcomes)}"] if self.outcomes else []
        parts += [f"{name}={value!r}" for name in ("weight", "id", "group") if (value := getattr(self, name))]
        return f"Columns({engine} table, {', '.join(parts)})"

    @property
    def engine(self) -> str:
        """Name of the engine that holds the rows."""
        return engine_name(self.frame)


def columns(
    table: Any,
    *,
    forecasts: str | Sequence[str],
    outcomes: str | Sequence[str] | None = None,
    weight: str | None = None,
    id: str | None = None,  # noqa: A002  # the word that users have for it
    group: str | None = None,
    missing: Literal["refuse", "drop", "drop outcomes"] = "refuse",
) -> Columns:
    """Say which columns of a lazy table are what; policies, audits and the rest then work where the rows are.

    Parameters
    ----------
    table : lazy table, path, glob, folder, or list of them
        A DuckDB relation, a Polars LazyFrame or a Spark DataFrame; or Parquet or CSV files, which open in DuckDB.
        Tables of Ibis and (not for all tests) Dask are fitted on and audited, too; others that narwhals carries are
        tried as they are, untested.
    forecasts : str or sequence of str
        One column per coordinate of the outcome space.
    outcomes : str or sequence of str, optional
        As forecasts; on the simplex also one column of class labels.
    weight, id, group : str, optional
        Columns of weights, of record ids for draws, and of groups of dependent rows.
    missing : {"refuse", "drop", "drop outcomes"}
        What to do with rows that have NULL or NaN in a column that is needed: refuse the table, leave them out, or
        leave them out where only the outcome is missing.

    Examples
    --------
    >>> import duckdb, prudent
    >>> table = duckdb.sql("SELECT (i + 0.5) / 1000 AS risk FROM range(1000) t(i)")
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal())
    >>> round(policy.fit(prudent.columns(table, forecasts="risk")).value_, 4)   # 1 - 1/sqrt(6)
    0.5918
    """
    import narwhals.stable.v2 as nw

    if missing not in ("refuse", "drop", "drop outcomes"):
        raise InputError(f"missing must be 'refuse' or 'drop' (or 'drop outcomes'); got {missing!r}.")
    names = {
        "forecasts": _names(forecasts, "forecasts"),
        "outcomes": () if outcomes is None else _names(outcomes, "outcomes"),
        **{what: () if name is None else (name,) for what, name in (("weight", weight), ("id", id), ("group", group))},
    }
    for what, wanted in names.items():
        if not all(isinstance(name, str) for name in wanted):
            raise InputError(f"{what} must name columns, as text; got {list(wanted)}.")
    files: tuple[str, ...] = ()
    connection: Any = None
    reopen: Callable[[str], Columns] | None = None
    if isinstance(table, (str, os.PathLike)):
        table = [table]
    if isinstance(table, (list, tuple)) and table and all(isinstance(path, (str, os.PathLike)) for path in table):
        files, connection = find_files([os.fspath(path) for path in table]), own_connection()
        table = _open(files, connection, names["forecasts"], names["outcomes"], (weight, id, group))
        reopen = partial(columns, forecasts=forecasts, outcomes=outcomes, weight=weight, group=group, missing=missing)
    try:
        frame = nw.from_native(table)
    except TypeError as error:
        raise InputError(
            f"table must be a DuckDB relation, a Polars LazyFrame, a Spark DataFrame, or the path of "
            f"Parquet or CSV files; got {type(table).__module__}.{type(table).__name__}."
        ) from error
    if isinstance(frame, nw.DataFrame):
        frame = frame.lazy()
    with speaking("reading the table's columns"):
        schema = frame.collect_schema()
    labelled = len(names["outcomes"]) == 1 < len(names["forecasts"])
    for what, wanted in names.items():
        for name in wanted:
            if name not in schema:
                raise InputError(f"{what} must name columns of the table; {name!r} is none of {list(schema)}.")
            truth = what == "outcomes" and schema[name] == nw.Boolean
            number = what in ("forecasts", "weight") or (what == "outcomes" and not labelled)
            if number and not (schema[name].is_numeric() or truth):
                raise InputError(f"{what} must be columns of numbers; {name!r} has type {schema[name]}. Cast it first.")
    return Columns(
        table,
        names["forecasts"],
        names["outcomes"],
        weight,
        id,
        group,
        missing,
        files,
        frame=frame,
        connection=connection,
        reopen=reopen,
        written=bool(files) and kind_of_files(files) == "csv",
    )


def _names(given: str | Sequence[str], what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(listed(given, what))
    if not names:
        raise InputError(f"{what} must name at least one column.")
    if len(set(names)) < len(names):
        raise InputError(f"{what} must name distinct columns; got {list(names)}.")
    return names


def _open(
    files: tuple[str, ...], connection: Any, forecasts: tuple[str, ...], outcomes: tuple[str, ...], others: _Others
) -> Any:
    """Open files in DuckDB; numbers are doubles in all rows of all files, whatever the first ones look like."""
    weight, identity, group = others
    labelled = len(outcomes) != len(forecasts)
    numbers = list(dict.fromkeys([*forecasts, *([weight] if weight else []), *(() if labelled else outcomes)]))
    values = [name for name in (*(outcomes if labelled else ()), identity, group) if name and name not in numbers]
    if kind_of_files(files) == "parquet":
        roles: dict[str, Role] = {name: "label" if name in outcomes else "name" for name in values}
        roles |= {name: "outcome" if name in outcomes else "number" for name in numbers}
        return open_parquet(connection, files, roles)
    table = open_csv(connection, files, numbers, values, found_delimiter(connection, files[0]))
    return with_whole_numbers(table, identity) if identity in values else table
