"""What policies play, as columns of a lazy table: the probabilities of their actions at every row, or an action."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import frozen
from prudent.arrays.lazy_narwhals import Expr, nw, where
from prudent.cases.engine_rows import without_missing
from prudent.cases.scan import Columns
from prudent.errors import InputError
from prudent.guarantees.engine_tests import EngineLabel, Narwhals
from prudent.guarantees.expressions import BestResponse
from prudent.policies.base import Policy, action_labels
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import TiltedPolicy
from prudent.policies.sql.statement import spark_probabilities
from prudent.problem import DecisionProblem
from prudent.spaces import SNAP_TOLERANCE

if TYPE_CHECKING:
    import polars as pl


@frozen
class PlayedColumns:
    """A table with what policies play on it.

    Attributes
    ----------
    problem : DecisionProblem
    columns : Columns
        With more columns than before where an engine computes probabilities itself.
    expressions : dict
        Every column of probabilities: an expression of the placed forecast, or None for a column of the table.
    names : list of list of str
        The columns of each policy, one per action.
    certain : list of bool
        Policies that never mix.
    fixed : list of bool
        Policies that play the same at every row.
    """

    problem: DecisionProblem
    columns: Columns
    expressions: dict[str, Expr | None]
    names: list[list[str]]
    certain: list[bool]
    fixed: list[bool]

    def apart(self, number: int) -> tuple[EngineLabel, ...]:
        """Tell rows apart by the action of a policy that never mixes."""
        if self.fixed[number] or not self.certain[number]:
            return ()
        names = self.names[number]
        label = nw.lit(0)
        for action, name in enumerate(names[1:], start=1):
            label = where(nw.col(name) > 0.5, action, label)
        return (EngineLabel(label, len(names)),)


def played_columns(policies: Sequence[Any], columns: Columns, problem: DecisionProblem) -> PlayedColumns:
    """Add what policies play to a table; nothing is computed yet."""
    expressions: dict[str, Any] = {}
    names, certain, fixed = [], [], []
    for number, policy in enumerate(policies):
        _require_written(policy, problem)
        own = [f"prudent_{number}_{action}" for action in range(problem.n_actions)]
        if isinstance(policy, SafetyPolicy):
            mixture = policy._mixtures(np.zeros((1, problem.dimension)))[0]
            expressions |= {name: nw.lit(share) for name, share in zip(own, mixture.tolist(), strict=True)}
        elif (isinstance(policy, PlugInPolicy) or policy.multipliers_ is None) and columns.engine != "pyspark":
            best = Narwhals()(BestResponse(problem))
            expressions |= {name: where(best == action, 1.0, 0.0) for action, name in enumerate(own)}
        else:
            columns = _in_engine(policy, columns, own)
            expressions |= dict.fromkeys(own)
        names.append(own)
        certain.append(policy.deterministic)
        fixed.append(isinstance(policy, SafetyPolicy))
    return PlayedColumns(problem, columns, expressions, names, certain, fixed)


def _require_written(policy: Any, problem: DecisionProblem) -> None:
    if not isinstance(policy, (PlugInPolicy, SafetyPolicy, TiltedPolicy)):
        raise InputError(
            f"policy must be a PlugInPolicy, SafetyPolicy, RobustPolicy or PureRobustPolicy where the rows are in a "
            f"lazy table, since an engine has to compute what it plays; got {type(policy).__name__}. Collect a sample "
            f"of rows for others."
        )
    check_is_fitted(policy)
    if policy._problem != problem:
        raise InputError("the policy was made for another problem than the one given.")


def _in_engine(policy: Policy, columns: Columns, names: list[str]) -> Columns:
    """Let the engine compute the probabilities that ``predict_proba`` has, NULL where that refuses a forecast."""
    _require_coordinates(policy, columns)
    taken = [other for other in (name_taken(columns, name) for name in names) if other is not None]
    if taken:
        raise InputError(f"the table must not have a column {taken[0]!r}, a name that is needed here; rename it.")
    table: Any = nw.to_native(columns.frame)
    engine = columns.engine
    if engine == "polars":
        table = _in_polars(policy, table, columns.forecasts, names)
    elif engine == "duckdb":
        written: Any = policy.to_sql(engine, list(columns.forecasts), output="probabilities", invalid="null")
        texts = zip(names, written.values(), strict=True)
        table = table.project(", ".join(["*", *(f'{text} AS "{name}"' for name, text in texts)]))
    elif engine == "pyspark":
        table = table.selectExpr("*", spark_probabilities(policy, columns.forecasts, names))
    else:
        raise InputError(
            f"what a {type(policy).__name__} plays is written for tables of DuckDB, Spark and Polars; this one is of "
            f"{engine}. Collect a sample of rows."
        )
    return replace(columns, table=table, frame=nw.from_native(table))


def _in_polars(policy: Policy, table: pl.LazyFrame, forecasts: tuple[str, ...], names: list[str]) -> pl.LazyFrame:
    """Let Polars call the policy on its own batches, when it runs the query."""
    import polars as pl

    def play(frame: pl.DataFrame) -> pl.DataFrame:
        points = frame.select(forecasts).cast(pl.Float64).to_numpy()
        near = policy._problem.space.distance(points) <= SNAP_TOLERANCE  # NaN is not
        mixtures = np.full((len(points), len(names)), np.nan)
        if near.any():
            # Where its guarantee does not take some row NULL says so, and the table is refused.
            with suppress(InputError):
                mixtures[near] = policy.predict_proba(points[near])
        columns = [pl.Series(name, mixtures[:, a], nan_to_null=True) for a, name in enumerate(names)]
        return frame.with_columns(*columns)

    return table.map_batches(play, schema={**table.collect_schema(), **dict.fromkeys(names, pl.Float64())})


def _require_coordinates(policy: Policy, columns: Columns) -> None:
    if len(columns.forecasts) != policy._problem.dimension:
        raise InputError(
            f"forecasts must name {policy._problem.dimension} column(s), one per coordinate of the outcome space; "
            f"got {list(columns.forecasts)}."
        )


def decide_table(policy: Policy, columns: Any, name: str) -> Any:
    """Add a column of actions to a table; see :meth:`prudent.Policy.decide_table`."""
    if not isinstance(columns, Columns):
        raise InputError(f"columns must come from prudent.columns(); got {type(columns).__name__}.")
    if not isinstance(name, str) or not name:
        raise InputError(f"output must be the name of the new column; got {name!r}.")
    taken = name_taken(columns, name)
    if taken is not None:
        raise InputError(f"output must be a new column; the table has {taken!r} already.")
    _require_coordinates(policy, columns)
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
        return _act_in_polars(policy, columns, name)
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
    kind = columns.frame.collect_schema()[name]
    if not (kind.is_integer() or kind in (nw.String, nw.Unknown)):  # DuckDB's UUIDs are unknown, and have one text
        raise InputError(f"id must be a column of text or whole numbers; {name!r} has type {kind}. Cast it to text.")


def _act_in_polars(policy: Policy, columns: Columns, name: str) -> Any:
    """Let Polars call the policy on its own batches, when it runs the query."""
    import polars as pl

    labels = action_labels(policy._problem)
    kind = pl.Series(labels.tolist()).dtype

    def act(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height == 0:
            return frame.with_columns(pl.lit(None, dtype=kind).alias(name))
        forecasts = frame.select(columns.forecasts).cast(pl.Float64).to_numpy()
        keys = None if columns.id is None or policy.deterministic else frame[columns.id].to_list()
        return frame.with_columns(pl.Series(name, policy.predict(forecasts, keys=keys).tolist(), dtype=kind))

    table = columns.table.lazy()
    return table.map_batches(act, schema={**table.collect_schema(), name: kind})
