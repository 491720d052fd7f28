"""Actions for the rows of a lazy table, as a lazy table: the same actions as in memory, record by record."""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.errors import InputError
from prudent.policies.base import Policy, action_labels
from prudent.tables.columns import Columns
from prudent.tables.taking_part import without_missing

__all__ = ["decide_table", "name_taken"]


def decide_table(policy: Policy, columns: Any, name: str) -> Any:
    """Add a column of actions to a table; see :meth:`prudent.Policy.decide_table`."""
    if not isinstance(columns, Columns):
        raise InputError(f"columns must come from prudent.columns(); got {type(columns).__name__}.")
    if not isinstance(name, str) or not name:
        raise InputError(f"output must be the name of the new column; got {name!r}.")
    taken = name_taken(columns, name)
    if taken is not None:
        raise InputError(f"output must be a new column; the table has {taken!r} already.")
    if len(columns.forecasts) != policy._problem.dimension:
        raise InputError(
            f"forecasts must name {policy._problem.dimension} column(s), one per coordinate of the outcome space; "
            f"got {list(columns.forecasts)}."
        )
    if columns.id is None and not policy.deterministic:
        raise InputError(
            "this policy plays mixtures, and an action is drawn by a key of the record, never by the forecast: name "
            "its column with columns(id=...)."
        )
    if columns.id is not None and not policy.deterministic:
        _require_key(columns, columns.id)
    if columns.missing == "drop":
        columns = without_missing(columns, columns.forecasts)
    engine = columns.engine
    if engine == "duckdb":
        expression = policy.to_sql("duckdb", list(columns.forecasts), key=columns.id)
        quoted = name.replace('"', '""')
        return columns.table.project(f'*, {expression} AS "{quoted}"')
    if engine == "pyspark":
        from pyspark.sql import functions

        expression = policy.to_sql("spark", list(columns.forecasts), key=columns.id)
        return columns.table.withColumn(name, functions.expr(str(expression)))
    if engine == "polars":
        return _in_polars(policy, columns, name)
    raise InputError(
        f"actions are written for tables of DuckDB, Spark and Polars; this one is of {engine}. Write them as SQL "
        f"yourself with policy.to_sql()."
    )


def name_taken(columns: Columns, name: str) -> str | None:
    """Return the column of a table that an engine would take for a new one; only Polars tells names apart by case."""
    exact = columns.engine == "polars"
    names = columns.frame.collect_schema().names()
    return next((other for other in names if other == name or (not exact and other.lower() == name.lower())), None)


def _require_key(columns: Columns, name: str) -> None:
    """Refuse ids whose text is not the same everywhere, and with it their draws."""
    import narwhals.stable.v2 as nw

    kind = columns.frame.collect_schema()[name]
    if not (kind.is_integer() or kind in (nw.String, nw.Unknown)):  # DuckDB's UUIDs are unknown, and have one text
        raise InputError(f"id must be a column of text or whole numbers; {name!r} has type {kind}. Cast it to text.")


def _in_polars(policy: Policy, columns: Columns, name: str) -> Any:
    """Let Polars call the policy on its own batches, when it runs the query."""
    import polars as pl

    labels = action_labels(policy._problem)
    kind = pl.Series(labels.tolist()).dtype

    def act(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height == 0:
            return frame.with_columns(pl.lit(None, dtype=kind).alias(name))
        forecasts = np.stack([frame[column].cast(pl.Float64).to_numpy() for column in columns.forecasts], axis=1)
        keys = None if columns.id is None or policy.deterministic else frame[columns.id].to_list()
        return frame.with_columns(pl.Series(name, policy.predict(forecasts, keys=keys).tolist(), dtype=kind))

    table = columns.table.lazy()
    return table.map_batches(act, schema={**table.collect_schema(), name: kind})
