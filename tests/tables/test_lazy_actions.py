"""Tables of actions: names that an engine cannot tell apart, ids that are no keys, and rows without forecast."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import polars as pl
import pytest
from tests.tables.lazy import ROWS, SCALAR

import prudent
from prudent import InputError, RobustPolicy, guarantees

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
    columns = prudent.columns(table_of("duckdb", data), forecasts="f", id="i")
    with pytest.raises(InputError, match="output must be a new column; the table has 'Action' already"):
        POLICY.decide_table(columns)
    decided = POLICY.decide_table(prudent.columns(table_of("polars", data), forecasts="f", id="i"))
    assert collected(decided, "action") == POLICY.predict([[0.3], [0.7]], keys=[1, 2]).tolist()
    played = prudent.columns(table_of("duckdb", {"f": [0.3, 0.7], "Prudent_0_1": [9, 9]}), forecasts="f")
    with pytest.raises(InputError, match="the table must not have a column 'Prudent_0_1'"):
        prudent.worst_case(POLICY, played, guarantee=guarantees.SelfOrthogonal())


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("ids", [[1.5, 2.5], [True, False], [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]], ids=str)
def test_ids_that_have_no_text_in_common(engine: str, ids: list[Any]) -> None:
    columns = prudent.columns(table_of(engine, {"i": ids, "f": [0.3, 0.7]}), forecasts="f", id="i")
    with pytest.raises(InputError, match="id must be a column of text or whole numbers; 'i' has type"):
        POLICY.decide_table(columns)
    sure = prudent.PlugInPolicy(SCALAR)  # draws nothing
    assert collected(sure.decide_table(columns), "action") == sure.predict([[0.3], [0.7]]).tolist()


def test_uuids_are_keys() -> None:
    table = duckdb.sql("SELECT uuid() AS i, 0.4 AS f FROM range(50)")
    table = duckdb.from_arrow(table.to_arrow_table()).project("i::UUID AS i, f::DOUBLE AS f")
    decided = POLICY.decide_table(prudent.columns(table, forecasts="f", id="i")).fetchall()
    assert [row[2] for row in decided] == POLICY.predict([[0.4]] * 50, keys=[str(row[0]) for row in decided]).tolist()


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_rows_without_forecast_are_left_out_as_told(engine: str) -> None:
    data = {"i": [1, 2, 3, 4], "f": [0.3, None, float("nan"), 0.7]}
    columns = prudent.columns(table_of(engine, data), forecasts="f", id="i", missing="drop")
    decided = POLICY.decide_table(columns)
    assert collected(decided, "i") == [1, 4]
    assert collected(decided, "action") == POLICY.predict([[0.3], [0.7]], keys=[1, 4]).tolist()
