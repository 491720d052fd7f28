"""What all policies promise: a row's mixture never depends on the rows beside it, and scikit-learn's checks pass.

Each of scikit-learn's checks brings data of some width of its own, while a policy takes forecasts of the width of its
problem. So every policy is built for every width that the checks use, and a check has to pass where the widths agree.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any, Self

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from tests.test_conformance import policy_classes

import prudent
from prudent import guarantees


@pytest.fixture(params=["interval", "box", "simplex", "degenerate"])
def fitted(request: pytest.FixtureRequest) -> tuple[prudent.RobustPolicy, np.ndarray]:
    rng = np.random.default_rng(3)
    if request.param == "interval":
        problem = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
        forecasts = rng.random((60, 1))
    elif request.param == "box":
        problem = prudent.DecisionProblem(rng.normal(size=(6, 3)), 0.3 * rng.normal(size=6))
        forecasts = rng.random((60, 3))
    elif request.param == "simplex":
        problem = prudent.DecisionProblem.from_payoffs(rng.normal(size=(6, 4)))
        forecasts = rng.dirichlet(np.ones(4), size=60)
    else:  # integer payoffs: many actions meet in one point
        problem = prudent.DecisionProblem(rng.integers(-1, 2, size=(8, 2)).astype(float))
        forecasts = rng.integers(0, 5, size=(60, 2)) / 4
    return prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts), forecasts


def test_order_does_not_matter(fitted: tuple[prudent.RobustPolicy, np.ndarray]) -> None:
    policy, forecasts = fitted
    order = np.random.default_rng(0).permutation(len(forecasts))
    np.testing.assert_allclose(
        policy.predict_proba(forecasts)[order], policy.predict_proba(forecasts[order]), atol=1e-12
    )


def test_single_rows_agree_with_the_batch(fitted: tuple[prudent.RobustPolicy, np.ndarray]) -> None:
    policy, forecasts = fitted
    alone = np.vstack([policy.predict_proba(row[None]) for row in forecasts])
    np.testing.assert_allclose(policy.predict_proba(forecasts), alone, atol=1e-12)


def test_keyed_draws_depend_only_on_key_salt_and_mixture(fitted: tuple[prudent.RobustPolicy, np.ndarray]) -> None:
    policy, forecasts = fitted
    keys = [f"record-{i}" for i in range(len(forecasts))]
    order = np.random.default_rng(1).permutation(len(forecasts))
    together = policy.predict(forecasts, keys=keys)
    apart = policy.predict(forecasts[order], keys=[keys[i] for i in order])
    np.testing.assert_array_equal(together[order], apart)


def test_refitting_gives_the_same_policy(fitted: tuple[prudent.RobustPolicy, np.ndarray]) -> None:
    policy, forecasts = fitted
    again = prudent.RobustPolicy(policy.problem, policy.guarantee).fit(forecasts)
    np.testing.assert_array_equal(policy.multipliers_, again.multipliers_)
    np.testing.assert_array_equal(policy.predict_proba(forecasts), again.predict_proba(forecasts))


@pytest.mark.parametrize("shape", ["column", "strided", "plane"])
def test_other_floats_and_strides_play_the_same(shape: str) -> None:
    rng = np.random.default_rng(4)
    if shape == "plane":
        problem = prudent.DecisionProblem(rng.normal(size=(4, 2)), 0.3 * rng.normal(size=4))
        forecasts = rng.random((70_000, 2)).astype(np.float32)
    else:
        problem = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
        forecasts = rng.random((70_000, 3)).astype(np.float32)[:, 1]
        forecasts = forecasts if shape == "strided" else forecasts[:, None].copy()
    exact = np.ascontiguousarray(forecasts, dtype=np.float64)
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(forecasts[:3_000])
    np.testing.assert_array_equal(policy.predict_proba(forecasts), policy.predict_proba(exact))
    assert (
        policy.certificate_.lower
        == prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(exact[:3_000]).certificate_.lower
    )


def test_a_bound_that_float32_cannot_hold_is_still_a_bound() -> None:
    """0.1 as float32 lies above 0.1: it is moved onto the box like any rounding, not let through."""
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -0.1], space=prudent.Box(0.0, 0.1))
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(np.linspace(0, 0.1, 50))
    above = np.full(3, 0.1, dtype=np.float32)
    assert float(above[0]) > 0.1
    np.testing.assert_array_equal(policy.predict_proba(above), policy.predict_proba(np.full(3, 0.1)))


def test_a_policy_does_not_keep_the_tests_of_all_rows() -> None:
    problem = prudent.DecisionProblem([0.2, 0.9], [0.0, 0.3])
    policy = prudent.RobustPolicy(problem, guarantees.Polynomial(3)).fit(np.random.default_rng(0).random(5_000))
    assert policy.fitted_.tests.values.base is None
    assert policy.fitted_.tests.values.shape == (0, 4)


WIDTHS = (1, 2, 3, 4, 5, 10, 20, 30)

DRAWS = "draws without keys follow random_state row by row; probabilities are invariant, see above"
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


def recalibrated(problem: prudent.DecisionProblem) -> prudent.RecalibratedPolicy:
    shift = prudent.recalibration.ScalingCalibrator("shift", space=problem.space)
    points = np.linspace(-1e6, 1e6, 12)[:, None] + np.zeros(problem.dimension)
    # A copy: one of the checks compares hashes, and those of arrays depend on how they lie in memory.
    return prudent.RecalibratedPolicy(deepcopy(shift.fit(points, points)), prudent.PlugInPolicy(problem))


class WithoutOutcomes(prudent.RobustPolicy):
    """The checks bring a ``y`` of one column, whatever the width of their data: no outcome of these forecasts."""

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        return super().fit(X, sample_weight=sample_weight)


def first_action(forecasts: np.ndarray) -> list[int]:
    return [0] * len(forecasts)


POLICIES = {
    "RobustPolicy": (lambda p: WithoutOutcomes(p, promise(p), random_state=0), EXCEPTIONS_WHEN_DRAWING),
    "PureRobustPolicy": (lambda p: WithoutOutcomes(p, promise(p), randomize=False), EXCEPTIONS),
    "PlugInPolicy": (prudent.PlugInPolicy, EXCEPTIONS),
    "SafetyPolicy": (lambda p: prudent.SafetyPolicy(p, random_state=0), EXCEPTIONS_WHEN_DRAWING),
    "FixedRule": (lambda p: prudent.FixedRule(p, function=first_action), EXCEPTIONS),
    "RecalibratedPolicy": (lambda p: recalibrated(p), EXCEPTIONS),
}


def test_scikit_learn_checks_every_policy() -> None:
    made = {type(make(make_problem(1))) for make, _ in POLICIES.values()}
    assert {prudent.RobustPolicy if kind is WithoutOutcomes else kind for kind in made} == policy_classes()


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
