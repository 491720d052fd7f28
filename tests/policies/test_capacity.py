"""Rules within a capacity, against a program that shares no code; and everything else that knows about capacity."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
import reference
from instances import Instance, random_instance

CASES = 500


def random_capacity(rng: np.random.Generator, problem: prudent.DecisionProblem, used: np.ndarray) -> dict:
    """One to three resources; some bind and some do not, and some rule keeps to all."""
    m, count = problem.n_actions, int(rng.integers(1, 4))
    uses = rng.random((count, m)).round(2) if rng.random() < 0.5 else (rng.random((count, m)) < 0.5) * 1.0
    uses[:, rng.integers(m)] = 0.0 if rng.random() < 0.7 else uses.min(axis=1)
    share = rng.choice([0.0, 0.3, 0.7, 0.95, 1.5], p=[0.05, 0.25, 0.3, 0.3, 0.1], size=count)
    mixture = rng.dirichlet(np.ones(m))
    limits = np.maximum(uses @ used * share, np.minimum(uses @ mixture, uses @ used))
    if count == 1:
        limits = np.maximum(uses @ used * share, uses.min(axis=1))
    names = [f"resource {j}" for j in range(count)]
    return {
        name: (dict(zip(problem.actions, use.tolist(), strict=True)), float(limit))
        for name, use, limit in zip(names, uses, limits, strict=True)
    }


def matrices(problem: prudent.DecisionProblem, capacity: dict) -> tuple[np.ndarray, np.ndarray]:
    uses = [[use[action] for action in problem.actions] for use, _ in capacity.values()]
    return np.array(uses), np.array([limit for _, limit in capacity.values()])


def check(instance: Instance, capacity: dict, criterion: str) -> bool:
    """Compare with the reference; return whether a capacity binds."""
    world, problem, unit = instance.world, instance.problem, instance.range
    given = {"guarantee": instance.guarantee, "slack": instance.slack, "criterion": criterion}
    policy = prudent.RobustPolicy(problem, capacity=capacity, **given)
    policy.fit(world.forecasts, instance.outcomes, sample_weight=world.weights)
    uses, limits = matrices(problem, capacity)
    in_use = None
    if criterion == "improvement":
        follow = prudent.RobustPolicy(problem, "fully-calibrated", capacity=capacity)
        in_use = follow.fit(world.forecasts, sample_weight=world.weights).predict_proba(world.forecasts)
        assert (uses @ (world.weights @ in_use) <= limits + 1e-9).all()
    value, _ = reference.capacity_value(instance.rewards, instance.costs, world, uses, limits, in_use)
    found, accuracy = policy.certificate_, 2e-7 * unit
    assert found.lower <= value + accuracy, instance.label
    assert found.upper >= value - accuracy, instance.label
    assert found.gap <= 1e-6 * unit, f"{instance.label}: {found}"
    played = policy.predict_proba(world.forecasts)
    used, prices = uses @ (world.weights @ played), np.array(list(policy.shadow_prices_.values()))
    assert (used <= limits + 1e-9).all(), instance.label
    assert np.abs(used - limits)[prices > 1e-6 * unit].max(initial=0.0) <= 1e-9 or found.upper <= 1e-8 * unit
    gained = played if in_use is None else played - in_use
    secured = reference.worst_case(instance.rewards, instance.costs, gained, world)
    assert secured >= found.lower - accuracy, instance.label
    if criterion == "utility" and len(limits) == 1:
        check_price(instance, uses, limits, value, float(prices[0]))
    return bool((prices > 0).any())


def check_price(instance: Instance, uses: np.ndarray, limits: np.ndarray, value: float, price: float) -> None:
    """Where both slopes of the value in the limit are the same, the price is that slope."""
    step = 1e-4 * max(float(np.ptp(uses)), 1e-3)
    if limits[0] - step < uses.min() or np.ptp(uses) == 0:
        return
    above, below = (
        reference.capacity_value(instance.rewards, instance.costs, instance.world, uses, limits + side * step)[0]
        for side in (1, -1)
    )
    slopes = np.array([above - value, value - below]) / step
    accuracy = 1e-2 * instance.range
    assert slopes.min() - accuracy <= price <= slopes.max() + accuracy, instance.label
    if abs(slopes[0] - slopes[1]) <= 1e-3 * instance.range:
        assert abs(price - slopes.mean()) <= 2e-3 * instance.range, instance.label


def case(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = random_instance(int(rng.integers(1 << 30)))
    while instance.rewards.shape[1] > 3 or len(instance.costs) == 1:
        instance = random_instance(int(rng.integers(1 << 30)))
    free = prudent.RobustPolicy(instance.problem, instance.guarantee, slack=instance.slack)
    free.fit(instance.world.forecasts, instance.outcomes, sample_weight=instance.world.weights)
    used = instance.world.weights @ free.predict_proba(instance.world.forecasts)
    capacity = random_capacity(rng, instance.problem, used)
    criterion = "utility" if free.multipliers_ is None or rng.random() < 0.6 else "improvement"
    check(instance, capacity, criterion)


@pytest.mark.parametrize("seed", range(48))
def test_random_capacities_agree_with_the_reference(seed: int) -> None:
    case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(48, CASES))
def test_more_random_capacities_agree_with_the_reference(seed: int) -> None:
    case(seed)


TREAT = prudent.DecisionProblem([0.0, 1.0, 0.6], [0.0, 0.4, 0.15], actions=["wait", "treat", "call"], unit="EUR")
CARE = prudent.DecisionProblem.from_payoffs(
    [[0, -10, -4], [-1, -1, -2], [-2, -1.5, 0]], actions=["leave", "treat", "refer"]
)


def cases_of(problem: prudent.DecisionProblem, n: int = 3000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.beta(2, 3, size=n) if problem is TREAT else rng.dirichlet([2, 2, 2], size=n)


@pytest.mark.parametrize("problem", [TREAT, CARE])
@pytest.mark.parametrize("guarantee", ["self-orthogonal", "fully-calibrated", "nothing"])
def test_use_is_exactly_the_capacity_on_thousands_of_rows(problem: prudent.DecisionProblem, guarantee: str) -> None:
    forecasts = cases_of(problem)
    policy = prudent.RobustPolicy(problem, guarantee, capacity={"treat": 0.1}).fit(forecasts)
    assert policy.certificate_.status == "optimal"
    assert policy.predict_proba(forecasts)[:, 1].mean() == pytest.approx(0.1, abs=1e-9)
    assert policy.shadow_prices_["treat"] > 0
    assert "one more unit is worth" in str(policy.certificate_)
