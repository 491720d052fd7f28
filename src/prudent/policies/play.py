"""What policies play on rows, in memory or in an engine, and what they get there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import AnyArray, FloatArray, context_rows, frozen, nw, rows, smallest_in_rows, sums_of_rows, where
from prudent.cases.cases import require_forecast_columns
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.policies.base import Policy, action_labels
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Solution
from prudent.solvers.solve import best_policy, worst_world
from prudent.spaces import SNAP_TOLERANCE

if TYPE_CHECKING:
    import polars as pl

    from prudent.cases.scan import TableCases
    from prudent.cases.table_rows import TableRows
    from prudent.guarantees.engine_tests import EngineLabel


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


@frozen
class MemoryPlay:
    """Mixtures that policies play on rows in memory."""

    problem: DecisionProblem
    rows: MemoryRows
    mixtures: list[FloatArray]

    def worst(self, number: int, worlds: Any, *, beside_optimum: bool = False) -> World:
        """Find the worst world for a policy: that of the best policy, if it is optimal and both are looked at."""
        optimum = best_policy(self.problem, worlds) if beside_optimum else None
        return self._world(worst_world(self.problem, worlds, self.mixtures[number], optimum))

    def optimum(self, worlds: Any) -> World:
        """Find the worst world for the best policy."""
        return self._world(best_policy(self.problem, worlds))

    def utilities(self) -> Utilities:
        """Compute what policies get, all by the same sums: best responding gives up exactly zero."""
        rows, problem = self.rows, self.problem
        points = [rows.forecasts] if rows.outcomes is None else [rows.forecasts, rows.outcomes]
        mixtures = [*self.mixtures, problem.best_mixtures(rows.forecasts)]
        found = problem.expected_utilities(mixtures, points, rows.weights)
        return Utilities(found[:-1, 0], None if rows.outcomes is None else found[:-1, 1], float(found[-1, 0]))

    def _world(self, found: Solution) -> World:
        utilities = self.problem.expected_utilities(self.mixtures, [found.beliefs], self.rows.weights)[:, 0]
        return World(found.beliefs, found.certificate, utilities)


@frozen
class TablePlay:
    """Columns of what policies play on the rows of a table.

    Attributes
    ----------
    problem : DecisionProblem
    rows : TableRows
        With these columns.
    names : list of list of str
        The columns of each policy, one per action.
    labels : list of tuple of EngineLabel, or None
        What tells rows apart at which each policy plays differently; None for policies that mix by the row.
    """

    problem: DecisionProblem
    rows: TableRows
    names: list[list[str]]
    labels: list[tuple[EngineLabel, ...] | None]

    def worst(self, number: int, worlds: Any, *, beside_optimum: bool = False) -> World:
        """Find the worst world for a policy."""
        from prudent.solvers.table_solver import GivenPolicy

        labels = self.labels[number]
        game = GivenPolicy(self.problem, self.names[number], constant=labels is not None)
        return self._world(game, worlds.telling_apart(labels or ()))

    def optimum(self, worlds: Any) -> World:
        """Find the worst world for the best policy."""
        from prudent.solvers.table_solver import BestPolicy

        return self._world(BestPolicy(self.problem), worlds)

    def utilities(self) -> Utilities:
        """Add up what policies get."""
        from prudent.cases.table_rows import table_utilities

        rows = self.rows.labelled if self.rows.cases.outcomes else self.rows.placed
        return Utilities(*table_utilities(rows, self.problem, self.names))

    def _world(self, game: Any, worlds: Any) -> World:
        from prudent.solvers.table_solver import solve_table

        found = solve_table(game, worlds)
        beliefs, cells = found.solution.beliefs, found.cells
        weights = cells.weights / cells.total_weight
        at_beliefs = self.problem.linear_utility(beliefs)
        utilities = [weights @ (cells.mixtures(names) * at_beliefs).sum(axis=1) for names in self.names]
        return World(beliefs, found.solution.certificate, np.array(utilities))


#: What policies play on rows that are in memory or in an engine.
Play = MemoryPlay | TablePlay


def play(policies: Sequence[Any], rows: MemoryRows | TableRows, problem: DecisionProblem) -> Play:
    """Find out what policies, or given probabilities, play on rows; in an engine nothing is computed yet."""
    if any(isinstance(policy, Policy) and policy._problem != problem for policy in policies):
        raise InputError("the policy was made for another problem than the one given.")
    if isinstance(rows, MemoryRows):
        return MemoryPlay(problem, rows, [_mixtures_of(policy, rows, problem) for policy in policies])
    return play_on_table(policies, rows, problem)


def _mixtures_of(policy: Any, sample: MemoryRows, problem: DecisionProblem) -> FloatArray:
    """Return the probabilities that a policy plays on the rows that take part, or check those given for all rows."""
    if isinstance(policy, Policy):
        return policy.on_rows(sample)
    rule = getattr(policy, "predict_proba", None)
    mixtures = rows(policy if rule is None else rule(sample.forecasts), "probabilities", problem.n_actions)
    if rule is None:
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


def play_on_table(policies: Sequence[Any], rows: TableRows, problem: DecisionProblem) -> TablePlay:
    """Add what policies play to a table."""
    from prudent.cases.table_rows import TableRows
    from prudent.guarantees.engine_tests import EngineLabel, Narwhals
    from prudent.guarantees.expressions import BestResponse

    expressions: dict[str, Any] = {}
    names, labels, cases = [], list[tuple[EngineLabel, ...] | None](), rows.cases
    for number, policy in enumerate(policies):
        if not isinstance(policy, Policy):
            raise InputError(
                f"policy must be one of the library's where the rows are in a lazy table, "
                f"since an engine has to compute what it plays; got {type(policy).__name__}. Collect a sample of rows "
                f"for others."
            )
        own = [f"prudent_{number}_{action}" for action in range(problem.n_actions)]
        if isinstance(policy, PlugInPolicy) and cases.engine != "pyspark":
            best = Narwhals()(BestResponse(problem))  # three times as fast as SQL with steps
            expressions |= {name: where(best == action, 1.0, 0.0) for action, name in enumerate(own)}
        else:
            table = _with_probabilities(policy, cases, own)
            cases = replace(cases, table=table, frame=nw.from_native(table))
            expressions |= dict.fromkeys(own)
        label = nw.lit(0)
        for action, name in enumerate(own[1:], start=1):
            label = where(nw.col(name) > 0.5, action, label)
        names.append(own)
        fixed = isinstance(policy, SafetyPolicy)
        labels.append(() if fixed else (EngineLabel(label, len(own)),) if policy.deterministic else None)
    return TablePlay(problem, TableRows(cases, rows.space, expressions), names, labels)


def _with_probabilities(policy: Policy, cases: TableCases, names: list[str]) -> Any:
    """Let the engine compute the probabilities that ``predict_proba`` has, NULL where that refuses a forecast."""

    def written(dialect: str) -> str:
        from prudent.policies.sql.statement import probability_columns

        return probability_columns(policy, dialect, cases.forecasts, names)

    def computed(_: pl.DataFrame, points: FloatArray, context: dict[str, AnyArray]) -> Sequence[Any]:
        near = policy._problem.space.distance(points) <= SNAP_TOLERANCE  # NaN is not
        mixtures = np.full((len(points), len(names)), np.nan)
        if near.any():
            # Where its guarantee does not take some row NULL says so, and the table is refused.
            with suppress(InputError):
                mixtures[near] = policy.predict_proba(points[near], context=context_rows(context, near))
        return list(mixtures.T)

    return _with_columns(policy, cases, {name: [0.0] for name in names}, written, computed)


def decide_table(policy: Policy, cases: Any, name: str) -> Any:
    """Add a column of actions to a table; nothing is computed yet."""
    if not isinstance(name, str) or not name:
        raise InputError(f"output must be the name of the new column; got {name!r}.")
    if not policy.deterministic:
        if cases.ids is None:
            raise InputError(
                "this policy plays mixtures, and an action is drawn by a key of the record, never by the forecast: "
                "name its column with scan(ids=...)."
            )
        kind = cases.frame.collect_schema()[cases.ids]
        if not (kind.is_integer() or kind in (nw.String, nw.Unknown)):  # DuckDB's UUIDs are unknown, and have one text
            raise InputError(
                f"id must be a column of text or whole numbers; {cases.ids!r} has type {kind}. Cast it to text."
            )

    def written(dialect: str) -> str:
        from prudent.policies.sql.formulas import DIALECTS

        action = policy.to_sql(dialect, cases.forecasts, key=cases.ids)
        return f"{action} AS {DIALECTS[dialect].identifier(name)}"

    def computed(frame: pl.DataFrame, points: FloatArray, context: dict[str, AnyArray]) -> Sequence[Any]:
        keys = None if policy.deterministic else frame[cases.ids].to_list()
        return [policy.predict(points, keys=keys, context=context).tolist() if len(points) else []]

    return _with_columns(policy, cases, {name: action_labels(policy._problem).tolist()}, written, computed)


def _with_columns(
    policy: Policy,
    cases: TableCases,
    examples: dict[str, list[Any]],
    written: Callable[[str], str],
    computed: Callable[[pl.DataFrame, FloatArray, dict[str, AnyArray]], Sequence[Any]],
) -> Any:
    """Let DuckDB or Spark compute new columns, written in its dialect, and Polars call a function on its batches.

    The function gets a batch, its forecasts and context when Polars runs the query; ``examples`` of the values by the
    names of the columns tell their types before.
    """
    _require_new(policy, cases, list(examples))
    table: Any = nw.to_native(cases.frame)
    if cases.engine == "duckdb":
        return table.project(f"*, {written('duckdb')}")
    if cases.engine != "polars":
        return table.selectExpr("*", written("spark"))
    import polars as pl

    kinds = {name: pl.Series(values).dtype for name, values in examples.items()}

    def extend(frame: pl.DataFrame) -> pl.DataFrame:
        points = frame.select(cases.forecasts).cast(pl.Float64).to_numpy()
        context = {name: frame[name].to_numpy() for name in policy.columns}
        columns = zip(kinds.items(), computed(frame, points, context), strict=True)
        return frame.with_columns(
            *(pl.Series(name, values, kind, nan_to_null=kind.is_float()) for (name, kind), values in columns)
        )

    return table.map_batches(extend, schema={**table.collect_schema(), **kinds})


def _require_new(policy: Policy, cases: TableCases, names: list[str]) -> None:
    """Refuse names that the engine would take for columns of the table; only Polars tells names apart by case."""
    require_forecast_columns(cases.forecasts, policy._problem.space)
    cases.require_context(policy.columns)
    fold = str if cases.engine == "polars" else str.lower
    for other in cases.frame.collect_schema().names():
        if fold(other) in map(fold, names):
            raise InputError(f"output must be a new column; the table has {other!r} already.")
