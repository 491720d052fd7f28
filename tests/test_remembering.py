"""Results are remembered for arrays themselves, and forgotten with them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.remembering import remembered_for_arrays, steady


def test_the_same_arrays_and_arguments_are_computed_once() -> None:
    calls = []

    @remembered_for_arrays
    def scaled(values: np.ndarray, factor: float) -> np.ndarray:
        calls.append(factor)
        return values * factor

    values = np.arange(3.0)
    steady(values)
    assert scaled(values, 2.0) is scaled(values, 2.0)
    assert calls == [2.0]
    np.testing.assert_array_equal(scaled(values, 3.0), [0.0, 3.0, 6.0])
    assert calls == [2.0, 3.0]
    assert scaled(values.copy(), 2.0) is not scaled(values, 2.0)  # equal arrays are others


def test_results_go_with_the_first_array_that_goes() -> None:
    @remembered_for_arrays
    def total(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.array([one.sum() + other.sum()])

    stays = np.ones(4)
    steady(stays)
    found = []
    for _ in range(50):  # numbers of dead arrays are given to new ones
        goes = np.random.default_rng(len(found)).random(4)
        steady(goes)
        found.append(weakref.ref(total(stays, goes)))
        assert float(total(stays, goes)[0]) == 4.0 + goes.sum()
    del goes
    gc.collect()
    assert all(result() is None for result in found)


def test_arrays_that_nobody_called_steady_may_change() -> None:
    @remembered_for_arrays
    def total(values: np.ndarray) -> float:
        return float(values.sum())

    values = np.ones(3)
    assert total(values) == 3.0
    values[:] = 2.0
    assert total(values) == 6.0


RNG = np.random.default_rng(0)
BOX = prudent.DecisionProblem(
    RNG.normal(size=(4, 2)), 2 * RNG.normal(size=4), space=prudent.Box([0.0, -5.0], [10.0, 7.0])
)
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(4, 3)))


def fill(forecasts: np.ndarray, problem: prudent.DecisionProblem, shape: float) -> None:
    if isinstance(problem.space, prudent.Simplex):
        forecasts[:] = RNG.dirichlet(np.full(problem.dimension, shape), size=len(forecasts))
    else:
        low, high = problem.space.bounds
        forecasts[:] = low + (high - low) * RNG.beta(shape, 1.0, size=forecasts.shape)


@pytest.mark.parametrize("n", [300, 6_000])
@pytest.mark.parametrize(
    ("problem", "guarantee", "slack"),
    [
        (BOX, guarantees.SelfOrthogonal(), 0.0),
        (BOX, guarantees.SelfOrthogonal() & guarantees.UtilityCalibrated(BOX), 0.02),
        (BOX, guarantees.SelfOrthogonal() & guarantees.Classwise(3), 0.01),
        (CLASSES, guarantees.SelfOrthogonal(intercept=True), 0.0),
        (CLASSES, guarantees.SelfOrthogonal() & guarantees.Classwise(3), 0.01),
    ],
)
def test_an_array_that_is_filled_again_is_a_new_sample(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee, slack: float, n: int
) -> None:
    forecasts, weights = np.empty((n, problem.dimension)), np.ones(n)
    fill(forecasts, problem, 1.0)
    prudent.RobustPolicy(problem, guarantee, slack=slack).fit(forecasts, sample_weight=weights)
    fill(forecasts, problem, 3.0)
    weights[:] = RNG.random(n)
    again = prudent.RobustPolicy(problem, guarantee, slack=slack).fit(forecasts, sample_weight=weights)
    fresh = prudent.RobustPolicy(problem, guarantee, slack=slack).fit(forecasts.copy(), sample_weight=weights.copy())
    assert again.certificate_ == fresh.certificate_
    np.testing.assert_array_equal(again.multipliers_, fresh.multipliers_)
