"""Results are remembered for arrays themselves, and forgotten with them."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import prudent
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


def test_a_fit_on_an_array_that_was_filled_anew_is_a_fresh_fit() -> None:
    rng = np.random.default_rng(1)
    space = prudent.Box([0.0, 0.0], [2.0, 1.0])
    problem = prudent.DecisionProblem([[1.0, 0.2], [0.1, 1.1], [0.6, 0.6]], [0.0, 0.1, 0.05], space=space)
    guarantee = prudent.guarantees.SelfOrthogonal() & prudent.guarantees.Classwise(3)
    forecasts, weights = rng.random((6_000, 2)), rng.random(6_000)
    policy = prudent.RobustPolicy(problem, guarantee, slack=0.01)
    for _ in range(2):
        found = policy.fit(forecasts, sample_weight=weights).certificate_
        fresh = prudent.RobustPolicy(problem, guarantee, slack=0.01)
        assert found == fresh.fit(forecasts.copy(), sample_weight=weights.copy()).certificate_
        forecasts[:], weights[:] = rng.beta(3, 1, (6_000, 2)), rng.random(6_000)
