"""A row's mixture never depends on the rows that come with it."""

from __future__ import annotations

import numpy as np
import pytest

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
