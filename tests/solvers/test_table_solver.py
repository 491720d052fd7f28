"""Solutions on tables: bounds where sums are hard, and the best deterministic rule, which is that of memory."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from tests.cases.lazy import CLASSES, ROWS, check_pure
from tests.reference import Allowed, World, robust_value

import prudent
from prudent import DecisionProblem, guarantees

LINEAR = guarantees.SelfOrthogonal(intercept=True)


def fitted(problem: prudent.DecisionProblem, guarantee: Any, forecasts: np.ndarray, engine: str) -> Any:
    names = [f"f{j}" for j in range(forecasts.shape[1])]
    frame = pl.DataFrame(dict(zip(names, forecasts.T, strict=True)))
    table = frame.lazy() if engine == "polars" else duckdb.connect().from_arrow(frame.to_arrow())
    return prudent.RobustPolicy(problem, guarantee).fit(prudent.scan(table, names))


def exact_dual(problem: prudent.DecisionProblem, multipliers: np.ndarray, forecasts: np.ndarray) -> Fraction:
    """The dual value of ``{1, v}`` in one coordinate, in fractions, which round nothing."""
    low, high = (Fraction(float(bound[0])) for bound in problem.space.bounds)
    rewards = [Fraction(float(reward)) for reward in problem.rewards[:, 0]]
    costs = [Fraction(float(cost)) for cost in problem.costs]
    crossings = {
        (costs[a] - costs[b]) / (rewards[a] - rewards[b])
        for a in range(len(costs))
        for b in range(a)
        if rewards[a] != rewards[b]
    }
    points = [low, high, *(point for point in crossings if low < point < high)]
    values = [max(reward * point - cost for reward, cost in zip(rewards, costs, strict=True)) for point in points]
    first, second = (Fraction(float(number)) for number in multipliers.reshape(-1))
    total = Fraction(0)
    for number in forecasts[:, 0].tolist():
        forecast = Fraction(number)
        tilt = first + second * forecast
        total += min(value + tilt * point for value, point in zip(values, points, strict=True)) - tilt * forecast
    return total / len(forecasts)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("low", [1e4, 1e5, -1e6])
def test_a_box_far_from_the_origin(low: float, engine: str) -> None:
    forecasts = low + np.random.default_rng(1).random((600, 1))
    problem = prudent.DecisionProblem([1.0, -1.0], [low, -1 - low], space=prudent.Box(low, low + 1))
    policy = fitted(problem, LINEAR, forecasts, engine)
    certificate = policy.certificate_
    assert Fraction(certificate.lower) <= exact_dual(problem, policy.multipliers_, forecasts)
    memory = prudent.RobustPolicy(problem, LINEAR).fit(forecasts)
    assert Fraction(certificate.upper) >= exact_dual(problem, memory.multipliers_, forecasts)
    assert certificate.upper - certificate.lower < 1e-4


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_rates_of_rare_events_share_one_cell_of_the_first_grid(engine: str) -> None:
    problem = prudent.DecisionProblem([1000.0, 0.0], [0.05, 0.0])
    forecasts = np.linspace(1e-6, 2e-4, 100)[:, None]
    certificate = fitted(problem, LINEAR, forecasts, engine).certificate_
    memory = prudent.RobustPolicy(problem, LINEAR).fit(forecasts).certificate_
    assert certificate.lower == pytest.approx(memory.lower, abs=1e-6 * problem.utility_range)
    assert certificate.lower <= memory.upper
    assert certificate.upper >= memory.lower


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_lie_close_together(seed: int, d: int) -> None:
    rng = np.random.default_rng([seed, d])
    width = 10 ** rng.uniform(-5, -2)
    forecasts = rng.random(d) * (1 - width) + width * rng.random((30, d))
    rewards = rng.normal(size=(3, d))
    costs = rewards @ forecasts.mean(axis=0) + width * rng.normal(size=3)
    problem = prudent.DecisionProblem(rewards, costs, space=prudent.Box(np.zeros(d), np.ones(d)))
    certificate = fitted(problem, LINEAR, forecasts, "polars").certificate_
    # The same exact guarantee, written with tests that a general solver can tell apart.
    tests = np.column_stack([np.ones(30), (forecasts - forecasts.mean(axis=0)) / width])
    tensor = np.einsum("nk,de->nkde", tests, np.eye(d)).reshape(30, -1, d)
    exactly = Allowed("exact", np.zeros(tensor.shape[1]), np.zeros(0), np.zeros(0, dtype=int))
    world = World(np.zeros(d), np.ones(d), False, forecasts, np.full(30, 1 / 30), tensor, exactly)
    value = robust_value(rewards, costs, world)
    scale = problem.utility_range
    assert certificate.lower <= value + 1e-8 * scale
    assert certificate.upper >= value - 1e-8 * scale
    assert certificate.upper - certificate.lower <= 1e-5 * scale


def test_full_calibration_rounds_outward() -> None:
    low = 1e6
    forecasts = low + np.random.default_rng(0).random((500, 1))
    problem = prudent.DecisionProblem([1.0, -1.0], [low, -1 - low], space=prudent.Box(low, low + 1))
    exact = sum(
        max(Fraction(v) - Fraction(low), Fraction(1 + low) - Fraction(v)) for v in forecasts[:, 0].tolist()
    ) / len(forecasts)
    memory = prudent.RobustPolicy(problem, guarantees.FullyCalibrated()).fit(forecasts).certificate_
    for certificate in (memory, fitted(problem, guarantees.FullyCalibrated(), forecasts, "polars").certificate_):
        assert Fraction(certificate.lower) <= exact <= Fraction(certificate.upper)
        assert certificate.upper - certificate.lower < 1e-6


MATCH = DecisionProblem([1.0, -1.0], [0.0, -1.0])  # p or 1 - p: giving up mixing costs much

#: Deterministic rules, which are found in memory.
PROVEN: list[Any] = [
    (1, MATCH, guarantees.SelfOrthogonal()),
    (1, MATCH, guarantees.FullyCalibrated()),
    ("simplex", CLASSES, guarantees.TopLabel(3)),
]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(("kind", "problem", "guarantee"), PROVEN, ids=lambda case: str(case)[:40])
def test_the_best_rule_is_that_of_memory(
    engine: str, kind: Any, problem: Any, guarantee: Any, weight: str | None
) -> None:
    assert check_pure(engine, ROWS, kind, problem, guarantee, weight) == "optimal"
