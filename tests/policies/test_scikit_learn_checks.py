"""scikit-learn's own estimator checks, for estimators of fixed width and bounded input.

Each of its checks brings data of some width of its own, while a policy takes
forecasts of the width of its problem. So every policy is built for every
width that the checks use, and a check has to pass where the widths agree.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import prudent
from prudent import guarantees

WIDTHS = (1, 2, 3, 4, 5, 10, 20, 30)

DRAWS = "draws without keys follow random_state row by row; probabilities are invariant, see test_invariance.py"
EXCEPTIONS = {
    "check_array_api_input": "scikit-learn itself skips it unless SCIPY_ARRAY_API is set",
    "check_dtype_object": "wants a TypeError for objects; all input errors of this library are ValueErrors",
}
EXCEPTIONS_WHEN_DRAWING = EXCEPTIONS | {
    "check_methods_sample_order_invariance": DRAWS,
    "check_methods_subset_invariance": DRAWS,
}


def make_problem(width: int) -> prudent.DecisionProblem:
    rewards = np.arange(3 * width).reshape(3, width) % 4 - 1.0
    return prudent.DecisionProblem(rewards, [0.0, 0.5, 1.0], space=prudent.Box([-1e6] * width, [1e6] * width))


def promise(problem: prudent.DecisionProblem) -> guarantees.Guarantee:
    return guarantees.SelfOrthogonal() if problem.dimension <= 5 else guarantees.Unbiased()


POLICIES = {
    "RobustPolicy": (lambda p: prudent.RobustPolicy(p, promise(p), random_state=0), EXCEPTIONS_WHEN_DRAWING),
    "PureRobustPolicy": (lambda p: prudent.PureRobustPolicy(p, promise(p)), EXCEPTIONS),
    "PlugInPolicy": (prudent.PlugInPolicy, EXCEPTIONS),
    "SafetyPolicy": (lambda p: prudent.SafetyPolicy(p, random_state=0), EXCEPTIONS_WHEN_DRAWING),
}


@pytest.mark.parametrize("name", POLICIES)
def test_scikit_learn_checks(name: str) -> None:
    make, exceptions = POLICIES[name]
    outcomes: dict[str, dict[int, str]] = {}
    for width in WIDTHS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # several checks warn about their own data
            results = check_estimator(make(make_problem(width)), on_fail=None, on_skip=None)
        for result in results:
            text = result["status"] if result["exception"] is None else f"{result['status']}: {result['exception']}"
            outcomes.setdefault(result["check_name"], {})[width] = text
    never = {check for check, seen in outcomes.items() if "passed" not in seen.values()}
    assert never == set(exceptions) & set(outcomes), {check: outcomes[check] for check in never - set(exceptions)}
    assert len(outcomes) > 40
