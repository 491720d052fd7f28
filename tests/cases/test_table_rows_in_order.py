"""A monitor that reads lazy tables: the rows of memory in the order of their ids, all or nothing."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from tests.cases.lazy import BOX, CLASSES, SCALAR, Rows, as_table, make_rows

import prudent
from prudent import PolicyMonitor, RobustPolicy, guarantees
from prudent.errors import EngineError, InputError
from prudent.monitoring import MonitorState


def shuffled(rows: Rows) -> Rows:
    order = np.random.default_rng(0).permutation(len(rows.data["id"]))
    return Rows({name: column[order] for name, column in rows.data.items()})


def fitted(kind: Any, problem: prudent.DecisionProblem, rows: Rows) -> RobustPolicy:
    return RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(rows.forecasts(kind)[:2_000])


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(("kind", "problem"), [(1, SCALAR), (3, BOX), ("simplex", CLASSES)], ids=["1", "3", "simplex"])
def test_rows_count_in_the_order_of_their_ids(engine: str, kind: Any, problem: Any) -> None:
    rows = make_rows(3_000, 5)
    policy = fitted(kind, problem, rows)
    memory = PolicyMonitor(policy).update(rows.forecasts(kind), rows.outcomes(kind), ids=rows.data["id"].tolist())
    mixed = shuffled(rows)
    table = PolicyMonitor(policy).update(mixed.columns(as_table(mixed, engine), kind, id="id"))
    assert table.evidence == memory.evidence
    assert table.n_outcomes == memory.n_outcomes == 3_000
    assert np.array_equal(table.moments()["estimate"], memory.moments()["estimate"])


def test_more_rows_than_are_read_at_once_and_an_alarm() -> None:
    rows = make_rows(120_000, 6)
    late = np.arange(120_000) >= 60_000
    broken = Rows({**rows.data, "y": np.where(late, 0.5 * rows.data["y"], rows.data["y"])})
    policy = fitted(1, SCALAR, rows)
    memory = PolicyMonitor(policy).update(broken.forecasts(1), broken.outcomes(1), time="night")
    mixed = shuffled(broken)
    table = PolicyMonitor(policy)
    assert table.update(mixed.columns(as_table(mixed, "duckdb"), 1, id="id"), time="night") is table
    assert table.state is MonitorState.BROKEN
    assert {(alarm.stream, alarm.row, alarm.time) for alarm in table.alarms} == {
        (alarm.stream, alarm.row, alarm.time) for alarm in memory.alarms
    }
    assert min(alarm.row for alarm in table.alarms) > 60_000
    assert table.n_forecasts == 120_000


def test_outcomes_that_are_missing_may_follow() -> None:
    frame = pl.LazyFrame({"id": ["b", "a", "c"], "v": [0.2, 0.4, 0.6], "y": [1.0, None, 0.0]})
    monitor = PolicyMonitor(fitted(1, SCALAR, make_rows(3_000)))
    monitor.update(prudent.scan(frame, "v", "y", ids="id"))
    assert (monitor.n_forecasts, monitor.n_outcomes, monitor.n_pending) == (3, 2, 1)
    monitor.add_outcomes(["a"], [1.0])
    assert monitor.n_pending == 0
    monitor.update(prudent.scan(frame, "v", "y", ids="id"))
    assert (monitor.n_forecasts, monitor.n_repeated) == (3, 3)


def test_without_outcomes_only_forecasts_are_watched() -> None:
    rows = make_rows(500)
    monitor = PolicyMonitor(fitted(1, SCALAR, make_rows(3_000)))
    monitor.update(prudent.scan(as_table(rows, "polars"), "v", ids="id"))
    assert (monitor.n_forecasts, monitor.n_outcomes) == (500, 0)


GOOD = {"id": [1, 2, 3], "v": [0.2, 0.4, 0.6], "y": [0.0, 1.0, 1.0], "w": [1.0, 1.0, 1.0], "t": [0.5, 1.5, 2.5]}


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"ids": None}, "no order of their own.*ids that grow with time"),
        ({}, {"weights": "w"}, "weights has no meaning"),
        ({}, {"periods": "w"}, "periods has no meaning"),
        ({}, {"ids": "t"}, "id must be a column of text or whole numbers"),
        ({"id": [1, 2, 2]}, {}, "1 in 'id' repeat another"),
        ({"id": [1, None, 2]}, {}, "'id' is NULL in 1"),
        ({"v": [0.2, None, 0.3]}, {}, "1 with NULL or NaN in 'v'"),
        ({"v": [0.2, 1.7, 0.3]}, {}, "1 outside"),
        ({"y": [0.2, 1.7, 0.3]}, {}, "1 whose outcome is missing or outside"),
        ({"id": [], "v": [], "y": [], "w": [], "t": []}, {}, "no row that takes part"),
    ],
)
def test_tables_that_are_refused_change_nothing(change: dict[str, Any], options: dict[str, Any], words: str) -> None:
    monitor = PolicyMonitor(fitted(1, SCALAR, make_rows(3_000)))
    kinds = {"id": pl.Int64, "v": pl.Float64, "y": pl.Float64, "w": pl.Float64, "t": pl.Float64}
    frame = pl.LazyFrame({**GOOD, **change}, schema=kinds)
    with pytest.raises(InputError, match=words):
        monitor.update(prudent.scan(frame, **{"forecasts": "v", "outcomes": "y", "ids": "id", **options}))
    assert monitor.n_forecasts == 0


def test_outcomes_and_ids_are_named_in_columns() -> None:
    monitor = PolicyMonitor(fitted(1, SCALAR, make_rows(3_000)))
    columns = prudent.scan(pl.LazyFrame(GOOD), "v", ids="id")
    with pytest.raises(InputError, match="outcomes of cases: say it in"):
        monitor.update(columns, [0.0, 1.0, 1.0])


def test_a_class_that_is_none_is_refused_not_awaited() -> None:
    rows = make_rows(300)
    data = {**rows.data, "label": np.where(np.arange(300) == 7, 9, rows.data["label"])}
    monitor = PolicyMonitor(fitted("simplex", CLASSES, make_rows(3_000)))
    with pytest.raises(InputError, match="1 whose outcome is missing or outside"):
        monitor.update(Rows(data).columns(pl.LazyFrame(data), "simplex", id="id"))


def test_a_failure_half_way_leaves_the_monitor_as_it_was() -> None:
    """At the last row, in the second part, a test of the policy's guarantee exceeds its bound."""
    guarantee = guarantees.FromFunctions([lambda v: 1.0 + (v[:, 0] > 0.8)], bounds=[1.0])
    policy = RobustPolicy(SCALAR, guarantee).fit(np.linspace(0.1, 0.7, 500))
    monitor = PolicyMonitor(policy).update([0.2, 0.3])
    before = monitor.evidence
    v = np.append(np.linspace(0.1, 0.7, 59_999), 0.9)
    columns = prudent.scan(pl.LazyFrame({"v": v, "id": np.arange(60_000)}), "v", ids="id")
    with pytest.raises(InputError, match="above its declared bound"):
        monitor.update(columns)
    assert (monitor.evidence, monitor.n_forecasts) == (before, 2)


def test_a_file_that_is_gone(tmp_path: Any) -> None:
    path = tmp_path / "rows.parquet"
    duckdb.sql("SELECT range AS id, random() AS v FROM range(1000)").write_parquet(str(path))
    columns = prudent.scan(str(path), "v", ids="id")
    monitor = PolicyMonitor(fitted(1, SCALAR, make_rows(3_000))).update([0.2, 0.3])
    path.unlink()
    with pytest.raises(EngineError, match="nothing was changed"):
        monitor.update(columns)
    assert monitor.n_forecasts == 2
