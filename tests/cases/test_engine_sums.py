"""Stress tests on lazy tables against those in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.cases.lazy import CASES, ROWS, SCALAR, as_table, check_stress

import prudent
from prudent import PlugInPolicy, guarantees
from prudent.errors import InputError


@pytest.mark.parametrize(
    ("engine", "number", "weight"),
    [("duckdb", 3, "w"), ("polars", 8, None), ("polars", 14, "w"), ("polars", 15, None), ("polars", 18, "w")],
)
def test_tables_are_stressed_as_memory_is(engine: str, number: int, weight: str | None) -> None:
    check_stress(engine, *CASES[number], weight)


def test_without_outcomes_nothing_is_realised() -> None:
    columns = prudent.scan(as_table(ROWS, "polars"), "v")
    result = prudent.stress_test({"plug-in": PlugInPolicy(SCALAR)}, columns, guarantee=guarantees.Unbiased())
    assert result.realised is None
    assert "realised" not in str(result)


def test_measured_slack_and_missing_outcomes() -> None:
    data = dict(ROWS.data)
    data["y"] = np.where(np.arange(6_000) % 3 > 0, data["y"], np.nan)
    known = ~np.isnan(data["y"])
    policies = {"plug-in": PlugInPolicy(SCALAR)}
    guarantee = guarantees.SelfOrthogonal()
    columns = prudent.scan(pl.LazyFrame(data), "v", "y", missing="drop")
    table = prudent.stress_test(policies, columns, guarantee=guarantee, slack="audit")
    memory = prudent.stress_test(policies, data["v"][known], data["y"][known], guarantee=guarantee, slack="audit")
    np.testing.assert_allclose(table.nominal, memory.nominal, atol=1e-12)
    np.testing.assert_allclose(table.realised, memory.realised, atol=1e-12)
    np.testing.assert_allclose(table.worst, memory.worst, atol=2e-6)
    strict = prudent.scan(pl.LazyFrame(data), "v", "y")
    with pytest.raises(InputError, match="2,000 whose outcome is missing"):
        prudent.stress_test(policies, strict, guarantee=guarantee)


@pytest.mark.parametrize(
    ("policies", "options", "words"),
    [
        ({"array": np.ones((6_000, 3)) / 3}, {"problem": SCALAR}, "policy must be one of the library's"),
        ({"plug-in": PlugInPolicy(SCALAR)}, {"outcomes": [1.0]}, "outcomes of cases"),
        ({}, {}, "non-empty mapping"),
    ],
)
def test_bad_questions(policies: Any, options: dict[str, Any], words: str) -> None:
    columns = ROWS.columns(as_table(ROWS, "polars"), 1)
    with pytest.raises(InputError, match=words):
        prudent.stress_test(policies, columns, guarantee=guarantees.Unbiased(), **options)
