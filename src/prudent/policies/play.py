"""What policies play on rows, in memory or in an engine, and what they get there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, frozen, rows
from prudent.arrays.column_reductions import smallest_in_rows, sums_of_rows
from prudent.arrays.lazy_narwhals import nw, where
from prudent.cases.ambiguity import Ambiguity
from prudent.cases.cases import require_forecast_columns
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.policies.base import Policy, action_labels
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate
from prudent.solvers.solve import best_policy, worst_world
from prudent.spaces import SNAP_TOLERANCE

if TYPE_CHECKING:
    import polars as pl

    from prudent.cases.scan import TableCases
    from prudent.cases.table_rows import TableAmbiguity, TableRows
    from prudent.solvers.table_solver import TableSolution


@frozen
class World:
    """A world of the rows that take part (of a table: on its cells), what it proves, and what policies get in it."""

    beliefs: FloatArray
    certificate: Certificate
    utilities: FloatArray


@frozen
class Utilities:
    """Mean utilities: of every policy if forecasts are right and on the outcomes, and of best responding if right."""

    nominal: FloatArray
    realised: FloatArray | None
    best: float


class Play(Protocol):
    """What policies play on rows that are in memory or in an engine."""

    @property
    def rows(self) -> Any:
        """The rows."""
        ...

    def worst(self, number: int, worlds: Any, *, beside_optimum: bool = False) -> World:
        """Find the worst world for a policy: that of the best policy, if it is optimal and both are looked at."""
        ...

    def optimum(self, worlds: Any) -> World:
        """Find the worst world for the best policy."""
        ...

    def utilities(self) -> Utilities:
        """Compute what policies get if forecasts are right, and on the outcomes."""
        ...


def play(policies: Sequence[Any], rows: MemoryRows | TableRows, problem: DecisionProblem) -> Play:
    """Find out what policies, or given probabilities, play on rows; in an engine nothing is computed yet."""
    if isinstance(rows, MemoryRows):
        return MemoryPlay(problem, rows, [mixtures_of(policy, rows, problem) for policy in policies])
    return _play_on_table(policies, rows, problem)


@frozen
class MemoryPlay:
    """Mixtures that policies play on rows in memory."""

    problem: DecisionProblem
    rows: MemoryRows
    mixtures: list[FloatArray]

    def worst(self, number: int, worlds: Ambiguity, *, beside_optimum: bool = False) -> World:
        """Find the worst world for a policy."""
        optimum = best_policy(self.problem, worlds) if beside_optimum else None
        found = worst_world(self.problem, worlds, self.mixtures[number], optimum)
        return World(found.beliefs, found.certificate, self._in_world(found.beliefs))

    def optimum(self, worlds: Ambiguity) -> World:
        """Find the worst world for the best policy."""
        found = best_policy(self.problem, worlds)
        return World(found.beliefs, found.certificate, self._in_world(found.beliefs))

    def utilities(self) -> Utilities:
        """Compute what policies get, all by the same sums: best responding gives up exactly zero."""
        rows, problem = self.rows, self.problem
        points = [rows.forecasts] if rows.outcomes is None else [rows.forecasts, rows.outcomes]
        found = problem.expected_utilities(self.mixtures, points, rows.weights)
        best = rows.cache.get(
            ("best utility", problem),
            lambda: problem.expected_utility(problem.best_mixtures(rows.forecasts), rows.forecasts, rows.weights),
        )
        return Utilities(found[:, 0], None if rows.outcomes is None else found[:, 1], best)

    def _in_world(self, beliefs: FloatArray) -> FloatArray:
        return self.problem.expected_utilities(self.mixtures, [beliefs], self.rows.weights)[:, 0]


def mixtures_of(policy: Any, sample: MemoryRows, problem: DecisionProblem) -> FloatArray:
    """Return the probabilities that a policy plays on the rows that take part, or check those given for all rows."""
    if isinstance(policy, Policy) and policy._problem != problem:
        raise InputError("the policy was made for another problem than the one given.")
    if hasattr(policy, "predict_proba"):
        mixtures = rows(policy.predict_proba(sample.forecasts), "probabilities", problem.n_actions)
    else:
        mixtures = rows(policy, "probabilities", problem.n_actions)
        if len(mixtures) != len(sample.everything):
            raise InputError(
                f"probabilities must have one row per forecast, {len(sample.everything)}; got {len(mixtures)}."
            )
        mixtures = mixtures[sample.used]
    wrong = np.flatnonzero((smallest_in_rows(mixtures) < -1e-9) | (np.abs(sums_of_rows(mixtures) - 1.0) > 1e-6))
    if wrong.size:
        raise InputError(
            f"probabilities must be non-negative with sum 1 in every row; "
            f"row {wrong[0]} is {mixtures[wrong[0]].tolist()}."
        )
    mixtures = np.maximum(mixtures, 0.0)
    return mixtures / sums_of_rows(mixtures)[:, None]


@frozen
class TablePlay:
    """TableCases of what policies play on the rows of a table.

    Attributes
    ----------
    problem : DecisionProblem
    rows : TableRows
        With these columns.
    names : list of list of str
        The columns of each policy, one per action.
    certain : list of bool
        Policies that never mix.
    fixed : list of bool
        Policies that play the same at every row.
    """

    problem: DecisionProblem
    rows: TableRows
    names: list[list[str]]
    certain: list[bool]
    fixed: list[bool]

    def worst(self, number: int, worlds: TableAmbiguity, *, beside_optimum: bool = False) -> World:
        """Find the worst world for a policy."""
        from prudent.solvers.table_games import GivenPolicy
        from prudent.solvers.table_solver import solve_table

        if worlds.full:
            best = self.optimum(worlds)
            value = float(best.utilities[number])
            return replace(best, certificate=replace(best.certificate, lower=value, upper=value))
        constant = self.fixed[number] or self.certain[number]
        game = GivenPolicy(self.problem, self.names[number], constant)
        return self._world(solve_table(game, worlds.telling_apart(self._labels(number))))

    def optimum(self, worlds: TableAmbiguity) -> World:
        """Find the worst world for the best policy."""
        from prudent.solvers.table_solver import best_policy_on_table

        found = self._world(best_policy_on_table(self.problem, worlds))
        return replace(found, utilities=self.utilities().nominal) if worlds.full else found  # the forecast is the world

    def utilities(self) -> Utilities:
        """Add up what policies get."""
        from prudent.cases.engine_sums import table_utilities

        rows = self.rows.labelled if self.rows.cases.outcomes else self.rows.placed
        return Utilities(*table_utilities(rows, self.problem, self.names))

    def _labels(self, number: int) -> tuple[Any, ...]:
        """Tell rows apart by the action of a policy that never mixes."""
        from prudent.guarantees.engine_tests import EngineLabel

        if self.fixed[number] or not self.certain[number]:
            return ()
        label = nw.lit(0)
        for action, name in enumerate(self.names[number][1:], start=1):
            label = where(nw.col(name) > 0.5, action, label)
        return (EngineLabel(label, len(self.names[number])),)

    def _world(self, found: TableSolution) -> World:
        beliefs, cells = found.solution.beliefs, found.cells
        weights = cells.weights / cells.total_weight
        at_beliefs = self.problem.linear_utility(beliefs)
        utilities = [weights @ (cells.mixtures(names) * at_beliefs).sum(axis=1) for names in self.names]
        return World(beliefs, found.solution.certificate, np.array(utilities))


def _play_on_table(policies: Sequence[Any], rows: TableRows, problem: DecisionProblem) -> TablePlay:
    """Add what policies play to a table."""
    from prudent.cases.table_rows import TableRows
    from prudent.guarantees.engine_tests import Narwhals
    from prudent.guarantees.expressions import BestResponse

    expressions: dict[str, Any] = {}
    names, certain, fixed, cases = [], [], [], rows.cases
    for number, policy in enumerate(policies):
        _require_written(policy, problem)
        own = [f"prudent_{number}_{action}" for action in range(problem.n_actions)]
        if isinstance(policy, SafetyPolicy):
            mixture = policy._mixtures(np.zeros((1, problem.dimension)))[0]
            expressions |= {name: nw.lit(share) for name, share in zip(own, mixture.tolist(), strict=True)}
        elif (isinstance(policy, PlugInPolicy) or policy.multipliers_ is None) and cases.engine != "pyspark":
            best = Narwhals()(BestResponse(problem))
            expressions |= {name: where(best == action, 1.0, 0.0) for action, name in enumerate(own)}
        else:
            cases = _in_engine(policy, cases, own)
            expressions |= dict.fromkeys(own)
        names.append(own)
        certain.append(policy.deterministic)
        fixed.append(isinstance(policy, SafetyPolicy))
    return TablePlay(problem, TableRows(cases, rows.space, expressions), names, certain, fixed)


def _require_written(policy: Any, problem: DecisionProblem) -> None:
    if not isinstance(policy, (PlugInPolicy, SafetyPolicy, RobustPolicy)):
        raise InputError(
            f"policy must be a PlugInPolicy, SafetyPolicy or RobustPolicy where the rows are in a "
            f"lazy table, since an engine has to compute what it plays; got {type(policy).__name__}. Collect a sample "
            f"of rows for others."
        )
    check_is_fitted(policy)
    if policy._problem != problem:
        raise InputError("the policy was made for another problem than the one given.")


def _in_engine(policy: Policy, columns: TableCases, names: list[str]) -> TableCases:
    """Let the engine compute the probabilities that ``predict_proba`` has, NULL where that refuses a forecast."""
    require_forecast_columns(columns.forecasts, policy._problem.space)
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
        from prudent.policies.sql.statement import spark_probabilities

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


def decide_table(policy: Policy, columns: Any, name: str) -> Any:
    """Add a column of actions to a table; nothing is computed yet."""
    if not isinstance(name, str) or not name:
        raise InputError(f"output must be the name of the new column; got {name!r}.")
    taken = name_taken(columns, name)
    if taken is not None:
        raise InputError(f"output must be a new column; the table has {taken!r} already.")
    require_forecast_columns(columns.forecasts, policy._problem.space)
    if columns.ids is None and not policy.deterministic:
        raise InputError(
            "this policy plays mixtures, and an action is drawn by a key of the record, never by the forecast: name "
            "its column with scan(ids=...)."
        )
    if columns.ids is not None and not policy.deterministic:
        _require_key(columns, columns.ids)
    engine = columns.engine
    if engine == "duckdb":
        expression = policy.to_sql("duckdb", list(columns.forecasts), key=columns.ids)
        quoted = name.replace('"', '""')
        return columns.table.project(f'*, {expression} AS "{quoted}"')
    if engine == "pyspark":
        from pyspark.sql import functions

        expression = policy.to_sql("spark", list(columns.forecasts), key=columns.ids)
        return columns.table.withColumn(name, functions.expr(str(expression)))
    if engine == "polars":
        return _act_in_polars(policy, columns, name)
    raise InputError(
        f"actions are written for tables of DuckDB, Spark and Polars; this one is of {engine}. Write them as SQL "
        f"yourself with policy.to_sql()."
    )


def name_taken(columns: TableCases, name: str) -> str | None:
    """Return the column of a table that an engine would take for a new one; only Polars tells names apart by case."""
    exact = columns.engine == "polars"
    names = columns.frame.collect_schema().names()
    return next((other for other in names if other == name or (not exact and other.lower() == name.lower())), None)


def _require_key(columns: TableCases, name: str) -> None:
    """Refuse ids whose text is not the same everywhere, and with it their draws."""
    kind = columns.frame.collect_schema()[name]
    if not (kind.is_integer() or kind in (nw.String, nw.Unknown)):  # DuckDB's UUIDs are unknown, and have one text
        raise InputError(f"id must be a column of text or whole numbers; {name!r} has type {kind}. Cast it to text.")


def _act_in_polars(policy: Policy, columns: TableCases, name: str) -> Any:
    """Let Polars call the policy on its own batches, when it runs the query."""
    import polars as pl

    labels = action_labels(policy._problem)
    kind = pl.Series(labels.tolist()).dtype

    def act(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height == 0:
            return frame.with_columns(pl.lit(None, dtype=kind).alias(name))
        forecasts = frame.select(columns.forecasts).cast(pl.Float64).to_numpy()
        keys = None if columns.ids is None or policy.deterministic else frame[columns.ids].to_list()
        return frame.with_columns(pl.Series(name, policy.predict(forecasts, keys=keys).tolist(), dtype=kind))

    table = columns.table.lazy()
    return table.map_batches(act, schema={**table.collect_schema(), name: kind})
