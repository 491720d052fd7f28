"""What policies play, as columns of a lazy table: the probabilities of their actions at every row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.decisions import best_response_label
from prudent.guarantees.elementary import Nothing
from prudent.guarantees.written import Block
from prudent.policies.base import Policy
from prudent.policies.in_tables import name_taken
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy
from prudent.policies.sql.statement import spark_probabilities
from prudent.problem import DecisionProblem
from prudent.spaces import SNAP_TOLERANCE, Box, Space
from prudent.tables.columns import Columns

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import polars as pl

__all__ = ["PlayedColumns", "played_columns"]


@dataclass(frozen=True, eq=False)
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
    expressions: dict[str, nw.Expr | None]
    names: list[list[str]]
    certain: list[bool]
    fixed: list[bool]

    def apart(self, number: int) -> tuple[Block, ...]:
        """Tell rows apart by the action of a policy that never mixes."""
        import narwhals.stable.v2 as nw

        if self.fixed[number] or not self.certain[number]:
            return ()
        names = self.names[number]
        label = nw.lit(0)
        for action, name in enumerate(names[1:], start=1):
            label = nw.when(nw.col(name) > 0.5).then(nw.lit(action)).otherwise(label)
        return tuple(
            replace(block, label=label, n_labels=len(names)) for block in Nothing().write(self.problem.space).blocks
        )


def played_columns(policies: Sequence[Any], columns: Columns, problem: DecisionProblem) -> PlayedColumns:
    """Add what policies play to a table; nothing is computed yet."""
    import narwhals.stable.v2 as nw

    expressions: dict[str, Any] = {}
    names, certain, fixed = [], [], []
    for number, policy in enumerate(policies):
        _require_written(policy, problem)
        own = [f"prudent_{number}_{action}" for action in range(problem.n_actions)]
        if isinstance(policy, SafetyPolicy):
            mixture = policy._mixtures(problem.space.support_minimizer(np.ones((1, problem.dimension))))[0]
            expressions |= {name: nw.lit(share) for name, share in zip(own, mixture.tolist(), strict=True)}
        elif (isinstance(policy, PlugInPolicy) or policy.multipliers_ is None) and columns.engine != "pyspark":
            best = best_response_label(problem)
            expressions |= {
                name: nw.when(best == action).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
                for action, name in enumerate(own)
            }
        else:
            columns = _in_engine(policy, columns, own)
            expressions |= dict.fromkeys(own)
        names.append(own)
        certain.append(policy.deterministic)
        fixed.append(isinstance(policy, SafetyPolicy))
    return PlayedColumns(problem, columns, expressions, names, certain, fixed)


def _require_written(policy: Any, problem: DecisionProblem) -> None:
    if not isinstance(policy, (PlugInPolicy, SafetyPolicy, RobustPolicy, PureRobustPolicy)):
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
    import narwhals.stable.v2 as nw

    d = policy._problem.dimension
    if len(columns.forecasts) != d:
        raise InputError(
            f"forecasts must name {d} column(s), one per coordinate of the outcome space; "
            f"got {list(columns.forecasts)}."
        )
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
        points = np.stack([frame[column].cast(pl.Float64).to_numpy() for column in forecasts], axis=1)
        near = _near(policy._problem.space, points)
        mixtures = np.full((len(points), len(names)), np.nan)
        if near.any():
            # Where its guarantee does not take some row NULL says so, and the table is refused.
            with suppress(InputError):
                mixtures[near] = policy.predict_proba(points[near])
        columns = [pl.Series(name, mixtures[:, a], nan_to_null=True) for a, name in enumerate(names)]
        return frame.with_columns(*columns)

    return table.map_batches(play, schema={**table.collect_schema(), **dict.fromkeys(names, pl.Float64())})


def _near(space: Space, points: FloatArray) -> Any:
    """Say which points a policy moves onto the space, if they are not there."""
    if isinstance(space, Box):
        low, high = space.bounds
        reach = SNAP_TOLERANCE * (high - low)
        return ((points >= low - reach) & (points <= high + reach)).all(axis=1)
    total = points.sum(axis=1)
    return (points >= -SNAP_TOLERANCE).all(axis=1) & (np.abs(total - 1.0) <= SNAP_TOLERANCE)
