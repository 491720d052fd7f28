"""Parquet files whose columns have other types than the first: nothing is rounded or guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent import DecisionProblem, RobustPolicy, guarantees
from prudent.errors import InputError

PROBLEM = DecisionProblem([1.0, -1.0], [0.0, -1.0])
WHOLE, FRACTIONS = [1, 0], [0.3, 0.45]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Write tables to Parquet files in the current folder, in this order."""
    monkeypatch.chdir(tmp_path)

    def write(*tables: dict[str, Any]) -> list[str]:
        for number, table in enumerate(tables):
            pq.write_table(pa.table(table), f"{number}.parquet")
        return [f"{number}.parquet" for number in range(len(tables))]

    return write


def guaranteed(table: Any, **options: Any) -> float:
    columns = prudent.scan(table, "f", **options)
    return float(RobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).fit(columns).certificate_.lower)


def in_memory(forecasts: Any, weights: Any = None) -> float:
    policy = RobustPolicy(PROBLEM, guarantees.SelfOrthogonal())
    return float(policy.fit(np.array(forecasts, dtype=float), sample_weight=weights).certificate_.lower)


@pytest.mark.parametrize("kind", ["float", "double", "decimal"])
@pytest.mark.parametrize("turned", [False, True])
def test_forecasts_that_are_whole_in_the_first_file(files: Any, kind: str, turned: bool) -> None:
    types = {"float": pa.float32(), "double": pa.float64(), "decimal": pa.decimal128(4, 2)}
    tables = [{"f": WHOLE}, {"f": pa.array(FRACTIONS, pa.float64()).cast(types[kind])}]
    expected = in_memory([*WHOLE, *(np.float32(FRACTIONS) if kind == "float" else FRACTIONS)])
    assert guaranteed(files(*(tables[::-1] if turned else tables))) == pytest.approx(expected, abs=1e-9)


def test_weights_are_not_rounded(files: Any) -> None:
    """Not even to single precision, which DuckDB has in mind for whole numbers next to it."""
    weights = [[16_777_217, 1], [0.3, 0.7]]
    paths = files({"f": FRACTIONS, "w": weights[0]}, {"f": WHOLE, "w": pa.array(weights[1], pa.float32())})
    columns = prudent.scan(paths, "f", weights="w")
    assert columns.table.project("w").fetchall()[:2] == [(16_777_217.0,), (1.0,)]
    expected = in_memory([*FRACTIONS, *WHOLE], np.concatenate([weights[0], np.float32(weights[1])]))
    assert guaranteed(paths, weights="w") == pytest.approx(expected, abs=1e-6)


def test_outcomes_that_are_true_or_false_in_the_first_file(files: Any) -> None:
    forecasts, outcomes = [[0.1, 0.2], [0.5, 0.6]], [[True, False], [0.4, 0.25]]
    paths = files(*({"f": f, "y": y} for f, y in zip(forecasts, outcomes, strict=True)))
    columns = prudent.scan(paths, "f", "y")
    found = prudent.audit(None, columns, guarantee=guarantees.Unbiased()).estimates
    expected = prudent.audit(
        None, np.ravel(forecasts), [1.0, 0.0, 0.4, 0.25], guarantee=guarantees.Unbiased()
    ).estimates
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_rows_keep_the_order_of_files_and_columns_that_only_some_have(files: Any) -> None:
    paths = files({"f": [1], "i": [1]}, {"i": [2], "f": [0.5], "note": ["b"]}, {"f": [0], "i": [3]})
    table = prudent.scan(paths, "f", ids="i").table
    assert table.project("f, i, note").fetchall() == [(1.0, 1, None), (0.5, 2, "b"), (0.0, 3, None)]


def test_names_keep_their_spelling(files: Any) -> None:
    paths = files({"Risk": [1], "I": ["a"]}, {"Risk": [0.5], "I": ["b"]}, {"RISK": [0.25], "i": ["c"]})
    table = prudent.scan(paths, "Risk", ids="I").table
    assert (table.columns, table.fetchall()) == (["Risk", "I"], [(1.0, "a"), (0.5, "b"), (0.25, "c")])


def test_one_scan_where_all_files_are_alike(files: Any) -> None:
    """Text has several ways to be stored that make no difference."""
    paths = files({"f": [0.5], "i": ["a"]}, {"f": [0.25], "i": pa.array(["b"]).dictionary_encode()})
    table = prudent.scan(paths, "f", ids="i").table
    assert "UNION" not in table.explain().upper()
    assert table.fetchall() == [(0.5, "a"), (0.25, "b")]
    paths = files({"f": [0.5], "i": ["a"]}, {"f": [1], "i": ["b"]})
    assert "UNION" in prudent.scan(paths, "f", ids="i").table.explain().upper()


def test_columns_that_folders_name(files: Any) -> None:
    for day, forecasts in (("1", [0, 1]), ("2", FRACTIONS)):
        Path(f"logs/day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"f": forecasts}), f"logs/day={day}/rows.parquet")
    columns = prudent.scan("logs", "f", periods="day")
    assert columns.table.project("f, day").fetchall() == [(0.0, 1), (1.0, 1), (0.3, 2), (0.45, 2)]


def test_a_file_without_any_value(files: Any) -> None:
    paths = files({"f": pa.nulls(2), "i": pa.nulls(2)}, {"f": FRACTIONS, "i": ["a", "b"]})
    table = prudent.scan(paths, "f", ids="i").table
    assert table.fetchall() == [(None, None), (None, None), (0.3, "a"), (0.45, "b")]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"f": ["0.3"], "w": [1.0], "i": [2]}, "1.parquet, column 'f': it holds string, not numbers"),
        ({"f": [0.3], "w": ["1"], "i": [2]}, "1.parquet, column 'w': it holds string, not numbers"),
        ({"f": [0.3], "w": [1.0], "i": ["2"]}, "1.parquet, column 'i': it holds string, and int64 in 0.parquet"),
        ({"f": [0.3], "w": [1.0], "i": [2.0]}, "1.parquet, column 'i': it holds double, and int64 in 0.parquet"),
        ({"f": [0.3], "w": [1.0]}, "1.parquet: there is no column 'i'"),
        ({"f": [0.3], "F": [0.1], "w": [1.0], "i": [2]}, r"1.parquet: DuckDB cannot tell the columns"),
    ],
    ids=["text", "text weight", "text id", "float id", "absent", "twice"],
)
@pytest.mark.parametrize("turned", [False, True])
def test_one_file_of_many_holds_something_else(files: Any, second: Any, words: str, turned: bool) -> None:
    paths = files({"f": [0.5], "w": [2.0], "i": [1]}, second)
    if turned and " and " in words:
        words = "0.parquet, column 'i': it holds int64, and"
    with pytest.raises(InputError, match=words):
        prudent.scan(paths[::-1] if turned else paths, "f", weights="w", ids="i")
