"""Results are remembered for arrays that do not change, and for no others."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.remembering import remembered_for_arrays, unchanging_arrays

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


def test_inside_a_promise_results_are_remembered_until_an_array_dies() -> None:
    calls: list[int] = []

    @remembered_for_arrays
    def total(array: np.ndarray, factor: int) -> float:
        calls.append(factor)
        return factor * float(array.sum())

    one = np.ones(3)
    assert [total(one, 2), total(one, 2)] == [6.0, 6.0]
    assert calls == [2, 2]
    with unchanging_arrays():
        assert [total(one, 2), total(one, 2), total(one, 3), total(one.copy(), 2)] == [6.0, 6.0, 9.0, 6.0]
        assert calls == [2, 2, 2, 3, 2]
        for size in range(1, 50):  # arrays that die give their number to others
            assert total(np.ones(size), 2) == 2 * size
            gc.collect()
    assert total(one, 2) == 6.0
    assert calls[-1] == 2
    assert len(calls) == 5 + 49 + 1
