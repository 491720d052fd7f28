"""The worst case of policies on lazy tables: the same numbers as in memory, and honest refusals."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from tests.tables.lazy import CASES, ROWS, SCALAR, as_table, check_worst_case

import prudent
from prudent import Box, DecisionProblem, InputError, PlugInPolicy, RobustPolicy, SafetyPolicy, Simplex, guarantees
from prudent.policies.played_columns import played_columns
from prudent.tables.rows import place_rows

CHOSEN = [CASES[number] for number in (0, 3, 4, 6, 8, 9, 12, 14, 15, 18, 20)]


@pytest.mark.parametrize(("kind", "problem", "guarantee"), CHOSEN, ids=lambda case: str(case)[:40])
def test_duckdb_finds_the_worst_case_of_memory(kind: Any, problem: Any, guarantee: Any) -> None:
    check_worst_case("duckdb", kind, problem, guarantee, weight="w")


@pytest.mark.parametrize(("kind", "problem", "guarantee"), CHOSEN[1::2], ids=lambda case: str(case)[:40])
def test_polars_finds_the_worst_case_of_memory(kind: Any, problem: Any, guarantee: Any) -> None:
    check_worst_case("polars", kind, problem, guarantee)


@pytest.mark.parametrize("slack", [0.01, "audit", prudent.Slack("audit", center="measured")], ids=str)
def test_slack_on_a_table(slack: Any) -> None:
    check_worst_case("duckdb", 1, SCALAR, guarantees.SelfOrthogonal(intercept=True), slack=slack)


def test_the_example_of_the_docstring_on_a_table() -> None:
    """Best responding under self-orthogonality: 0.2362, against 1 - 1/sqrt(6) for the best policy."""
    problem = DecisionProblem([1.0, -1.0], [0.0, -1.0])
    table = duckdb.sql("SELECT (i + 0.5) / 1000 AS risk FROM range(1000) t(i)")
    columns = prudent.columns(table, forecasts="risk")
    result = prudent.worst_case(PlugInPolicy(problem), columns, guarantee=guarantees.SelfOrthogonal())
    assert result.value == pytest.approx(0.2362, abs=1e-4)
    assert "cells of a table" in result.certificate.message


def test_cells_that_are_too_coarse_are_divided() -> None:
    """Actions change within a first cell: only divided ones tell them apart."""
    narrow = 0.3 + 1e-3 * np.random.default_rng(3).random(4_000)
    problem = DecisionProblem([0.0, 1.0], [0.0, 0.3005])
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    columns = prudent.columns(pl.LazyFrame({"v": narrow}), forecasts="v")
    memory = prudent.worst_case(PlugInPolicy(problem), narrow, guarantee=guarantee).certificate
    table = prudent.worst_case(PlugInPolicy(problem), columns, guarantee=guarantee).certificate
    assert table.status == "optimal"
    assert table.lower <= memory.upper
    assert memory.lower <= table.upper


@pytest.mark.parametrize("space", [Box([0] * 5, [1] * 5), Simplex(6)], ids=str)
def test_more_coordinates_than_a_grid_divides(space: Any) -> None:
    rng = np.random.default_rng(0)
    d = space.dimension
    forecasts = rng.random((4_000, d)) if isinstance(space, Box) else rng.dirichlet(np.ones(d), 4_000)
    problem = DecisionProblem(rng.normal(size=(3, d)), space=space)
    names = [f"v{j}" for j in range(d)]
    columns = prudent.columns(pl.LazyFrame(dict(zip(names, forecasts.T, strict=True))), forecasts=names)
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    memory = prudent.worst_case(PlugInPolicy(problem), forecasts, guarantee=guarantee).certificate
    table = prudent.worst_case(PlugInPolicy(problem), columns, guarantee=guarantee).certificate
    assert table.lower <= memory.upper
    assert memory.lower <= table.upper
    assert table.gap <= 1e-6 * problem.utility_range


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_columns_of_probabilities_are_those_of_python(engine: str) -> None:
    policies = [
        PlugInPolicy(SCALAR),
        SafetyPolicy(SCALAR),
        RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1)),
    ]
    played = played_columns(policies, ROWS.columns(as_table(ROWS, engine), 1), SCALAR)
    rows = place_rows(played.columns, SCALAR.space, played=played.expressions)
    found = rows.frame.sort("v0").collect()
    ordered = np.sort(ROWS.data["v"])
    for policy, names in zip(policies, played.names, strict=True):
        table = np.stack([found[name].to_numpy() for name in names], axis=1)
        assert np.array_equal(table, policy.predict_proba(ordered))


@pytest.mark.parametrize(
    "policy",
    [
        np.full((2, 3), 1 / 3),
        "plug-in",
        prudent.RowwiseRobustPolicy(guarantees.Unbiased()),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_policies_that_no_engine_computes_are_refused(policy: Any) -> None:
    columns = prudent.columns(pl.LazyFrame({"v": [0.1, 0.2]}), forecasts="v")
    with pytest.raises(InputError, match="policy must be a PlugInPolicy, SafetyPolicy, RobustPolicy"):
        prudent.worst_case(policy, columns, problem=SCALAR, guarantee=guarantees.Unbiased())


def test_a_policy_of_another_problem_is_refused() -> None:
    columns = prudent.columns(pl.LazyFrame({"v": [0.1, 0.2]}), forecasts="v")
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
        with pytest.raises(InputError, match=r"1 with NULL in 'v'; 1 with NaN in 'v'; 1 outside"):
            prudent.worst_case(policy, prudent.columns(frame, forecasts="v"), guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_missing_forecasts_are_left_out_when_told(engine: str) -> None:
    frame: Any = pl.LazyFrame({"v": [0.1, None, float("nan"), 0.4]})
    if engine == "duckdb":
        frame = duckdb.sql("SELECT * FROM (VALUES (0.1::DOUBLE), (NULL), ('nan'::DOUBLE), (0.4)) t(v)")
    columns = prudent.columns(frame, forecasts="v", missing="drop")
    robust = RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1))
    memory = prudent.worst_case(robust, [0.1, 0.4], guarantee=guarantees.Unbiased())
    table = prudent.worst_case(robust, columns, guarantee=guarantees.Unbiased())
    assert table.value == pytest.approx(memory.value, abs=2e-6)


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
        prudent.worst_case(robust, prudent.columns(frame, forecasts="v"), guarantee=guarantees.Unbiased())


def test_what_is_said_twice_or_missing() -> None:
    columns = prudent.columns(pl.LazyFrame({"v": [0.1, 0.2]}), forecasts="v")
    policy = PlugInPolicy(SCALAR)
    with pytest.raises(InputError, match="sample_weight of a table: say it in prudent.columns"):
        prudent.worst_case(policy, columns, guarantee=guarantees.Unbiased(), sample_weight=[1, 1])
    with pytest.raises(InputError, match="outcomes must be named"):
        prudent.worst_case(policy, columns, guarantee=guarantees.Unbiased(), slack="audit")
    with pytest.raises(InputError, match="slack has no meaning for FullyCalibrated"):
        prudent.worst_case(policy, columns, guarantee=guarantees.FullyCalibrated(), slack=0.1)
    with pytest.raises(InputError, match="its tests are Python functions"):
        prudent.worst_case(policy, columns, guarantee=guarantees.FromFunctions([lambda v: v[:, 0]]))
    with pytest.raises(InputError, match="forecasts must name 1 column"):
        wide = prudent.columns(pl.LazyFrame({"v": [0.1], "u": [0.2]}), forecasts=["v", "u"])
        prudent.worst_case(policy, wide, guarantee=guarantees.Unbiased())
