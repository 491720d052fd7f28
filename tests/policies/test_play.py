"""Tables of actions and of probabilities: those of Python, names and ids that will not do, rows that are refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from tests.cases.lazy import ROWS, SCALAR, as_table

import prudent
from prudent import DecisionProblem, PlugInPolicy, RobustPolicy, SafetyPolicy, guarantees
from prudent.errors import InputError
from prudent.policies.play import play

POLICY = RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1))


def table_of(engine: str, data: dict[str, Any]) -> Any:
    frame = pl.DataFrame(data)
    if engine == "polars":
        return frame.lazy()
    connection = duckdb.connect()
    connection.register("frame", frame.to_arrow())
    return connection.sql("SELECT * FROM frame")


def collected(table: Any, name: str) -> list[Any]:
    if isinstance(table, pl.LazyFrame):
        return table.collect()[name].to_list()
    return [row[0] for row in table.project(f'"{name}"').fetchall()]


def test_names_that_differ_by_case() -> None:
    data = {"i": [1, 2], "f": [0.3, 0.7], "Action": [9, 9]}
    columns = prudent.scan(table_of("duckdb", data), "f", ids="i")
    with pytest.raises(InputError, match="output must be a new column; the table has 'Action' already"):
        POLICY.predict(columns)
    decided = POLICY.predict(prudent.scan(table_of("polars", data), "f", ids="i"))
    assert collected(decided, "action") == POLICY.predict([[0.3], [0.7]], keys=[1, 2]).tolist()
    played = prudent.scan(table_of("duckdb", {"f": [0.3, 0.7], "Prudent_0_1": [9, 9]}), "f")
    with pytest.raises(InputError, match="the table has 'Prudent_0_1' already"):
        prudent.worst_case(POLICY, played, guarantee=guarantees.SelfOrthogonal())


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("ids", [[1.5, 2.5], [True, False], [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]], ids=str)
def test_ids_that_have_no_text_in_common(engine: str, ids: list[Any]) -> None:
    columns = prudent.scan(table_of(engine, {"i": ids, "f": [0.3, 0.7]}), "f", ids="i")
    with pytest.raises(InputError, match="id must be a column of text or whole numbers; 'i' has type"):
        POLICY.predict(columns)
    sure = prudent.PlugInPolicy(SCALAR)  # draws nothing
    assert collected(sure.predict(columns), "action") == sure.predict([[0.3], [0.7]]).tolist()


def test_uuids_are_keys() -> None:
    table = duckdb.sql("SELECT uuid() AS i, 0.4 AS f FROM range(50)")
    table = duckdb.from_arrow(table.to_arrow_table()).project("i::UUID AS i, f::DOUBLE AS f")
    decided = POLICY.predict(prudent.scan(table, "f", ids="i")).fetchall()
    assert [row[2] for row in decided] == POLICY.predict([[0.4]] * 50, keys=[str(row[0]) for row in decided]).tolist()


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_columns_of_probabilities_are_those_of_python(engine: str) -> None:
    policies = [
        PlugInPolicy(SCALAR),
        SafetyPolicy(SCALAR),
        RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1)),
    ]
    played = play(policies, ROWS.columns(as_table(ROWS, engine), 1).on(SCALAR.space), SCALAR)
    found = played.rows.placed.frame.sort("v0").collect()
    ordered = np.sort(ROWS.data["v"])
    for policy, names in zip(policies, played.names, strict=True):
        table = np.stack([found[name].to_numpy() for name in names], axis=1)
        assert np.array_equal(table, policy.predict_proba(ordered))


@pytest.mark.parametrize(
    "policy",
    [
        np.full((2, 3), 1 / 3),
        "plug-in",
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_policies_that_no_engine_computes_are_refused(policy: Any) -> None:
    columns = prudent.scan(pl.LazyFrame({"v": [0.1, 0.2]}), "v")
    with pytest.raises(InputError, match="policy must be one of the library's"):
        prudent.worst_case(policy, columns, problem=SCALAR, guarantee=guarantees.Unbiased())


def test_a_policy_of_another_problem_is_refused() -> None:
    columns = prudent.scan(pl.LazyFrame({"v": [0.1, 0.2]}), "v")
    other = DecisionProblem([0.0, 1.0], [0.0, 0.5])
    with pytest.raises(InputError, match="another problem"):
        prudent.worst_case(PlugInPolicy(other), columns, problem=SCALAR, guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_bad_rows_are_counted_and_refused(engine: str) -> None:
    frame: Any = pl.LazyFrame({"v": [0.1, None, float("nan"), 0.4, 1.5]})
    if engine == "duckdb":
        frame = duckdb.sql("SELECT * FROM (VALUES (0.1::DOUBLE), (NULL), ('nan'::DOUBLE), (0.4), (1.5)) t(v)")
    robust = RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1))
    for policy in (PlugInPolicy(SCALAR), robust):
        with pytest.raises(InputError, match=r"2 with NULL or NaN in 'v'; 1 outside"):
            prudent.worst_case(policy, prudent.scan(frame, "v"), guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_forecasts_that_only_the_policy_refuses(engine: str) -> None:
    """Log-odds of 0 are infinite; the guarantee of the question would take the row."""
    robust = RobustPolicy(SCALAR, guarantees.LogOdds()).fit(ROWS.forecasts(1))
    with pytest.raises(InputError):
        prudent.worst_case(robust, [0.0, 0.5], guarantee=guarantees.Unbiased())
    frame: Any = pl.LazyFrame({"v": [0.0, 0.5]})
    if engine == "duckdb":
        frame = duckdb.sql("SELECT * FROM (VALUES (0.0::DOUBLE), (0.5)) t(v)")
    with pytest.raises(InputError, match="whose forecast a policy refuses"):
        prudent.worst_case(robust, prudent.scan(frame, "v"), guarantee=guarantees.Unbiased())


def test_a_column_with_a_name_that_is_needed() -> None:
    robust = RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1))
    columns = prudent.scan(pl.LazyFrame({"v": [0.1, 0.2], "prudent_0_1": [0, 0]}), "v")
    with pytest.raises(InputError, match="the table has 'prudent_0_1' already"):
        prudent.worst_case(robust, columns, guarantee=guarantees.Unbiased())
