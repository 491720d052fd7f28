"""What all guarantees share: joining, and numbers that must be whole."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.errors import InputError


def test_and_joins_names_and_mixes_scalar_with_vector() -> None:
    problem = prudent.DecisionProblem([[1.0, 2.0], [3.0, 0.0]])
    both = guarantees.Unbiased() & guarantees.Unbiased() & guarantees.UtilityCalibrated(problem)
    assert len(both.parts) == 3
    tests = both.evaluate(np.array([[0.1, 0.9]]), problem.space)
    assert tests.names == ("1 x y[0]", "1 x y[1]", "1 x y[0] (2)", "1 x y[1] (2)", "utility")
    assert tests.values.shape == (1, 5, 2)
    assert tests.groups.tolist() == [0, 0, 1, 1, 2]
    with pytest.raises(TypeError):
        guarantees.Unbiased() & "something"


def test_best_responding_needs_no_forecast_at_which_all_tests_are_defined() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    joined = guarantees.LogOdds() & guarantees.UtilityCalibrated(problem) & guarantees.Bins([0, 0.5, 1])
    multipliers = joined.plug_in_multipliers(problem)
    np.testing.assert_array_equal(multipliers, [0, 0, -1, 0, 0])
    functions = guarantees.FromFunctions([np.sin, np.ravel]) & guarantees.UtilityCalibrated(problem)
    np.testing.assert_array_equal(functions.plug_in_multipliers(problem), [0, 0, -1])
    rng = np.random.default_rng(0)
    forecasts = rng.uniform(0.3, 0.7, 500)
    outcomes = (rng.random(500) < forecasts).astype(float)
    assert prudent.audit(problem, forecasts, outcomes, guarantee=joined).n_rows == 500


@pytest.mark.parametrize("make", [guarantees.Polynomial, guarantees.TopLabel, guarantees.Bins])
@pytest.mark.parametrize("count", [-1, 2.5, "3", True])
def test_counts_must_be_whole(make: object, count: object) -> None:
    with pytest.raises(InputError, match="must be a whole number"):
        make(count)
