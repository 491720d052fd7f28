"""Which columns of a lazy table are forecasts, outcomes, weights, ids and groups."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from prudent.arrays import listed
from prudent.errors import InputError, MissingExtraError
from prudent.tables.engine import engine_name, speaking

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["Columns", "columns"]

_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}


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
    missing : {"refuse", "drop"}
        What happens to rows whose forecast, weight or (in an audit) outcome is NULL or NaN.
    files : tuple of str
        What a path or glob came to; empty for other tables.
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
    missing: Literal["refuse", "drop"] = "refuse",
) -> Columns:
    """Say which columns of a lazy table are what; policies, audits and the rest then work where the rows are.

    Parameters
    ----------
    table : lazy table, path or glob
        A DuckDB relation, a Polars LazyFrame or a Spark DataFrame; or the path or glob of Parquet or CSV files, which
        open in DuckDB. Other lazy tables that narwhals carries are tried as they are, untested.
    forecasts : str or sequence of str
        One column per coordinate of the outcome space.
    outcomes : str or sequence of str, optional
        As forecasts; on the simplex also one column of class labels.
    weight, id, group : str, optional
        Columns of weights, of record ids for draws, and of groups of dependent rows.
    missing : {"refuse", "drop"}
        What to do with rows that have NULL or NaN in a column that is needed.

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

    if missing not in ("refuse", "drop"):
        raise InputError(f"missing must be 'refuse' or 'drop'; got {missing!r}.")
    files: tuple[str, ...] = ()
    if isinstance(table, (str, os.PathLike)):
        table, files = _open(os.fspath(table))
    try:
        frame = nw.from_native(table)
    except TypeError as error:
        raise InputError(
            f"table must be a DuckDB relation, a Polars LazyFrame, a Spark DataFrame, or the path of "
            f"Parquet or CSV files; got {type(table).__module__}.{type(table).__name__}."
        ) from error
    if isinstance(frame, nw.DataFrame):
        frame = frame.lazy()
    names = {
        "forecasts": _names(forecasts, "forecasts"),
        "outcomes": () if outcomes is None else _names(outcomes, "outcomes"),
        **{what: () if name is None else (name,) for what, name in (("weight", weight), ("id", id), ("group", group))},
    }
    with speaking("reading the table's columns"):
        schema = frame.collect_schema()
    for what, wanted in names.items():
        for name in wanted:
            if not isinstance(name, str) or name not in schema:
                raise InputError(f"{what} must name columns of the table; {name!r} is none of {list(schema)}.")
            if what in ("forecasts", "weight") and not schema[name].is_numeric():
                raise InputError(f"{what} must be columns of numbers; {name!r} has type {schema[name]}. Cast it first.")
    return Columns(table, names["forecasts"], names["outcomes"], weight, id, group, missing, files, frame=frame)


def _names(given: str | Sequence[str], what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(listed(given, what))
    if not names:
        raise InputError(f"{what} must name at least one column.")
    if len(set(names)) < len(names):
        raise InputError(f"{what} must name distinct columns; got {list(names)}.")
    return names


def _open(path: str) -> tuple[Any, tuple[str, ...]]:
    """Open files in DuckDB, each with its name at hand."""
    files = tuple(sorted(glob.glob(path, recursive=True))) if glob.has_magic(path) else (path,)  # noqa: PTH207
    if not files or not all(Path(file).is_file() for file in files):
        raise InputError(f"table must be the path of existing files; {path!r} names none.")
    kinds = {_ENDINGS.get(Path(file).suffix.lower(), "") for file in files}
    if len(kinds) > 1 or "" in kinds:
        raise InputError(f"table must be Parquet or CSV files, all of one kind; {path!r} has others.")
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("duckdb", "duckdb", "opening files as a table") from error
    # A connection of its own: nothing here touches the caller's session.
    connection = duckdb.connect()
    with speaking(f"opening {path}"):
        if kinds == {"parquet"}:
            return connection.read_parquet(list(files), filename=False), files
        listed_files = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        return connection.sql(f"SELECT * FROM read_csv([{listed_files}])"), files  # noqa: S608  # names are quoted
