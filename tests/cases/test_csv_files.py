"""CSV files in an engine: cells further down that differ from the first rows, and delimiters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prudent
from prudent import DecisionProblem, RobustPolicy, guarantees
from prudent.cases.csv_files import find_delimiter
from prudent.errors import EngineError, InputError

PROBLEM = DecisionProblem([1.0, -1.0], [0.0, -1.0])


def guaranteed(table: Any, **options: Any) -> float:
    columns = prudent.scan(table, "f", **options)
    return float(RobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).fit(columns).certificate_.lower)


def in_memory(forecasts: Any, weights: Any = None) -> float:
    policy = RobustPolicy(PROBLEM, guarantees.SelfOrthogonal())
    return float(policy.fit(np.array(forecasts, dtype=float), sample_weight=weights).certificate_.lower)


def write_csv(path: str, *lines: str) -> str:
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def test_fractions_below_whole_numbers_in_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    forecasts, weights = ["1"] * 30_000 + ["0.45"] * 30_000, ["1"] * 40_000 + ["0.25"] * 20_000
    lines = [f"{f},{w},{w}" for f, w in zip(forecasts, weights, strict=True)]
    path = write_csv("late.csv", "f,w,y", *lines)
    numbers = np.array(forecasts, dtype=float), np.array(weights, dtype=float)
    assert guaranteed(path) == pytest.approx(in_memory(numbers[0]), abs=1e-6)
    assert guaranteed(path, weights="w") == pytest.approx(in_memory(*numbers), abs=1e-6)
    found = prudent.audit(None, prudent.scan(path, "f", "y"), guarantee=guarantees.Unbiased())
    expected = prudent.audit(None, *numbers, guarantee=guarantees.Unbiased())
    np.testing.assert_allclose(found.estimates, expected.estimates, atol=1e-12)


def test_ids_in_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text as it is written; draws do not depend on whether a key is a number or its text."""
    monkeypatch.chdir(tmp_path)
    table = prudent.scan(write_csv("a.csv", "i,f", "10,0.5", "007,1"), "f", ids="i").table
    assert table.fetchall() == [("10", 0.5), ("007", 1.0)]


def test_columns_without_a_part_are_text_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = prudent.scan(write_csv("a.csv", "f;zip;zip", "0.5;01234;2.50"), "f").table
    assert (table.columns, table.fetchall()) == (["f", "zip", "zip_1"], [(0.5, "01234", "2.50")])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.csv": ["f,y"]}, "has no row that takes part"),
        ({"a.csv": ["f,y", "0.5,1"], "b.csv": ["y,f", "0.5,1"]}, r"b\.csv: its columns are \['y', 'f'\]"),
        ({"a.csv": ["g,y", "0.5,1"]}, "a.csv: there is no column 'f'"),
        (
            {"a.csv": ["f,y", "0.5,1"], "b.csv": ["f,y", "high,1"]},
            r"b\.csv, row 1 \(line 2\), column 'f': 'high' is not a number",
        ),
        ({"a.csv": ["f;y", "0.5;'a;b'", "0.5;'c;d'"]}, "there is no column 'f'; there are 'f;y'"),
    ],
    ids=["header only", "other order", "absent", "text", "single quotes"],
)
def test_csv_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, list[str]], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in files.items():
        write_csv(name, *lines)
    with pytest.raises((InputError, EngineError), match=words):
        guaranteed(list(files))


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("a|b\n0.5\n0.25\n", ","),
        ("a;b,c\n0.5,1\n", ","),
        ('"a,b";c\n1;2\n', ";"),
        ("a;b\n", ";"),
        ("forecast\n0.5\n", ","),
        ("", ","),
    ],
)
def test_a_comma_stays_unless_another_character_makes_columns(tmp_path: Path, content: str, delimiter: str) -> None:
    (tmp_path / "rows.csv").write_bytes(content.encode())
    assert find_delimiter(str(tmp_path / "rows.csv")) == delimiter
