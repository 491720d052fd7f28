"""Guarantees for decision problems, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import Box, guarantees
from prudent.errors import InputError

UNIT = Box(0, 1)
V = np.array([[0.0], [0.25], [0.5], [0.75], [1.0]])


def test_decision_regions_are_a_partition_by_the_first_declared() -> None:
    problem = prudent.DecisionProblem([1.0, 2.0], [0.0, 0.5], actions=["one", "two"])
    tests = guarantees.DecisionCalibrated(problem).evaluate(V, UNIT)
    np.testing.assert_array_equal(tests.values.argmax(axis=1), [0, 0, 0, 1, 1])  # the tie at 0.5 goes to "one"
    assert (tests.values.sum(axis=1) == 1).all()
    assert tests.names == ("best response one", "best response two")


def test_unseen_regions_keep_minus_the_reward() -> None:
    problem = prudent.DecisionProblem([1.0, 2.0], [0.0, 0.5])
    policy = prudent.RobustPolicy(problem, guarantees.DecisionCalibrated(problem)).fit([0.1, 0.2])
    np.testing.assert_array_equal(policy.multipliers_, [[-1], [-2]])
    np.testing.assert_array_equal(policy.predict_proba([0.9]), [[0, 1]])


def test_problems_of_other_spaces_are_refused() -> None:
    problem = prudent.DecisionProblem([1.0, 2.0], space=Box(0, 7))
    for family in (guarantees.DecisionCalibrated, guarantees.UtilityCalibrated):
        with pytest.raises(InputError, match="all problems must share one space"):
            family(problem).evaluate(V, UNIT)
        with pytest.raises(InputError, match="non-empty list"):
            family([])
        with pytest.raises(InputError, match="non-empty list"):
            family(["problem"])


def test_utility_calibration_is_the_reward_of_the_best_response() -> None:
    problem = prudent.DecisionProblem([[1.0, 2.0], [3.0, 0.0]])
    tests = guarantees.UtilityCalibrated(problem).evaluate(np.array([[0.1, 0.9], [0.9, 0.1]]), problem.space)
    np.testing.assert_array_equal(tests.values[:, 0], [[1, 2], [3, 0]])
    assert tests.multiplier_shape == (1,)
