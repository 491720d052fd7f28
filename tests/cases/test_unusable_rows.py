"""What is said about rows that cannot be used: every one is counted once, by its own reason, and in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cases.lazy import SCALAR

import prudent
from prudent import Box, DecisionProblem, RobustPolicy, guarantees
from prudent.errors import InputError

NAN = float("nan")


def refused(table: Any, forecasts: Any = "f", **options: Any) -> str:
    """The message of a fit."""
    problem = SCALAR if isinstance(forecasts, str) else DecisionProblem([[1.0, 0.0], [0.0, 1.0]], space=Box(0, 1))
    table = pl.LazyFrame(table) if isinstance(table, dict) else table
    with pytest.raises(InputError) as caught:
        RobustPolicy(problem, guarantees.Unbiased()).fit(prudent.scan(table, forecasts, **options))
    return str(caught.value).removeprefix("the table has rows that cannot be used: ")


def test_rows_left_out_as_told_are_not_to_blame() -> None:
    found = refused({"f": [0.1, 0.2, 0.5, 7.0], "y": [0.0, None, None, None]}, outcomes="y", missing="drop")
    assert found == "1 outside Box(0.0, 1.0). Repair or filter these rows."


def test_a_row_is_counted_once() -> None:
    found = refused({"f": [None, 0.1, 5.0, NAN], "g": [None, 0.1, 0.2, 0.3]}, ["f", "g"])
    assert found.startswith("2 with NULL or NaN in 'f'; 1 outside Box(")
    assert found.endswith("Repair or filter these rows.")


def test_weights() -> None:
    found = refused({"f": [0.1, 0.2, 0.3, 9.0], "w": [None, -1.0, float("inf"), -1.0]}, weights="w")
    assert found.startswith("1 with NULL or NaN in 'w'; 3 with 'w' below 0 or above 1e+60.")


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_outcomes_and_groups(engine: str) -> None:
    data = {"f": [0.1, 0.2, 0.3, 0.4, 8.0], "y": [0.0, None, 1.0, 7.0, None], "g": [1.0, 2.0, NAN, 1.0, 2.0]}
    table: Any = pl.LazyFrame(data)
    if engine == "duckdb":
        connection = duckdb.connect()
        connection.register("frame", pl.DataFrame(data).to_arrow())
        table = connection.sql("SELECT * FROM frame")
    columns = prudent.scan(table, "f", "y", periods="g")
    with pytest.raises(
        InputError,
        match=r"1 with NULL or NaN in 'g'; 1 outside Box\(0\.0, 1\.0\); 2 whose outcome .* out with missing='drop'\.$",
    ):
        prudent.audit(None, columns, guarantee=guarantees.Unbiased())


def test_groups_that_are_nan_are_refused_as_in_memory() -> None:
    data = {"f": [0.1, 0.2, 0.3], "y": [0.0, 0.0, 1.0], "g": [1.0, 2.0, NAN]}
    with pytest.raises(InputError, match="periods must name a period for every row"):
        prudent.audit(None, data["f"], data["y"], guarantee=guarantees.Unbiased(), periods=data["g"])
    columns = prudent.scan(pl.LazyFrame(data), "f", "y", periods="g")
    with pytest.raises(InputError, match="1 with NULL or NaN in 'g'"):
        prudent.audit(None, columns, guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_first_bad_row_of_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name, cells in {"a": [0.1, 0.2], "b": [0.3, None], "c": [0.3, 7.0]}.items():
        frame = pl.DataFrame({"f": cells, "y": [1.0, 0.0]}, schema={"f": pl.Float64, "y": pl.Float64})
        frame.write_csv(f"{name}.csv") if kind == "csv" else frame.write_parquet(f"{name}.parquet")
    line = " (line 3)" if kind == "csv" else ""
    for files, place in {
        f"[abc].{kind}": f"b.{kind}, row 2{line}, column 'f': the cell is empty, and a number is needed.",
        f"[ac].{kind}": f"c.{kind}, row 2{line}, column 'f': 7 lies outside the outcome space, [0, 1].",
    }.items():
        with pytest.raises(InputError) as caught:
            prudent.audit(None, prudent.scan(files, "f", "y"), guarantee=guarantees.Unbiased())
        assert str(caught.value).startswith(place)


@pytest.mark.parametrize("outcome", [["1.0", "0.0"], ["yes", "no"]], ids=str)
def test_outcomes_that_are_no_numbers(outcome: list[str]) -> None:
    frame = pl.LazyFrame({"f": [0.1, 0.2], "y": outcome})
    with pytest.raises(InputError, match="outcomes must be columns of numbers; 'y' has type String"):
        prudent.scan(frame, "f", "y")


@pytest.mark.parametrize("weight", [1e308, 1e200, 1e61])
def test_weights_that_are_too_large(weight: float) -> None:
    data = {"f": [0.1, 0.2, 0.4], "y": [0.0, 0.0, 1.0], "w": [weight] * 3}
    assert refused(data, weights="w").startswith("3 with 'w' below 0 or above 1e+60.")
    columns = prudent.scan(pl.LazyFrame(data), "f", "y", weights="w")
    with pytest.raises(InputError, match="3 with 'w' below 0 or above"):
        prudent.audit(None, columns, guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("group", [None, "g"])
def test_weights_that_are_too_small_to_be_added_up(group: str | None) -> None:
    data = {"f": [0.1, 0.2, 0.4], "y": [0.0, 0.0, 1.0], "w": [1e-120] * 3, "g": [1, 2, 3]}
    columns = prudent.scan(pl.LazyFrame(data), "f", "y", weights="w", periods=group)
    with pytest.raises(InputError, match="weights must add up to at least 1e-60; got 3e-120"):
        prudent.audit(None, columns, guarantee=guarantees.Unbiased())
    with pytest.raises(InputError, match="weights must add up to at least 1e-60; got 3e-120"):
        RobustPolicy(SCALAR, guarantees.Unbiased()).fit(columns)


@pytest.mark.parametrize("scale", [1e-55, 1.0, 1e60])
@pytest.mark.parametrize("group", [None, "g"])
def test_the_scale_of_weights_does_not_matter(scale: float, group: str | None) -> None:
    data = {"f": [0.1, 0.2, 0.4, 0.6], "y": [0.0, 0.0, 1.0, 1.0], "w": [1.0, 0.5, 0.25, 1e-40], "g": [1, 2, 3, 1]}
    weights = [scale * weight for weight in data["w"]]
    frame = pl.LazyFrame({**data, "w": weights})
    columns = prudent.scan(frame, "f", "y", weights="w", periods=group)
    table = prudent.audit(None, columns, guarantee=guarantees.Unbiased())
    groups = None if group is None else data["g"]
    memory = prudent.audit(
        None, data["f"], data["y"], guarantee=guarantees.Unbiased(), weights=data["w"], periods=groups
    )
    assert table.estimates == pytest.approx(memory.estimates, rel=1e-12)
    assert table.measured.radii >= memory.measured.radii  # few rows: a table has sums only
    unscaled = pl.LazyFrame(data)
    again = prudent.audit(
        None, prudent.scan(unscaled, "f", "y", weights="w", periods=group), guarantee=guarantees.Unbiased()
    )
    assert table.measured.radii == pytest.approx(again.measured.radii, rel=1e-6)
    fitted = RobustPolicy(SCALAR, guarantees.Unbiased()).fit(columns).certificate_.lower
    expected = RobustPolicy(SCALAR, guarantees.Unbiased()).fit(data["f"], sample_weight=data["w"]).certificate_.lower
    assert fitted == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("column", ["f", "y", "w"])
def test_nan_in_parquet_that_statistics_hide(tmp_path: Path, own: bool, column: str) -> None:
    """DuckDB takes every comparison that holds for the least and the largest number of a column to hold for NaN."""
    rows = {"f": [0.1, 0.5, 0.9], "y": [0.0, 1.0, 1.0], "w": [1.0, 2.0, 1.0]}
    rows[column][1] = NAN
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    table: Any = path if own else duckdb.connect().read_parquet(path)
    columns = prudent.scan(table, "f", "y", weights="w")
    words = f"row 2, column '{column}': nan stands for a missing value" if own else "rows that cannot be used: 1 w"
    with pytest.raises(InputError, match=words):
        prudent.audit(None, columns, guarantee=guarantees.Unbiased())
    if column != "y":
        with pytest.raises(InputError, match=words):
            RobustPolicy(SCALAR, guarantees.Unbiased()).fit(columns)
