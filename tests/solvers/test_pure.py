"""The best deterministic rule against trying them all."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
import reference
from prudent import guarantees


def tiny_world(seed: int, d: int, simplex: bool, n: int, m: int, k: int):
    rng = np.random.default_rng(seed)
    rewards, costs = rng.normal(size=(m, d)), 0.4 * rng.normal(size=m)
    forecasts = rng.dirichlet(np.ones(d), size=n) if simplex else rng.random((n, d))
    weights = rng.random(n) + 0.2
    weights /= weights.sum()
    tests = rng.normal(size=(40, d))

    def vector_test(j: int):
        return lambda v: np.sin(3 * v @ tests[j])[:, None] * tests[j + 10]

    guarantee = guarantees.FromFunctions([vector_test(j) for j in range(k)])
    tensor = np.stack([vector_test(j)(forecasts) for j in range(k)], axis=1)
    allowed = reference.Allowed("exact", np.zeros(k), np.zeros(k), np.arange(k))
    world = reference.World(np.zeros(d), np.ones(d), simplex, forecasts, weights, tensor, allowed)
    problem = prudent.DecisionProblem(rewards, costs, space=prudent.Simplex(d) if simplex else None)
    return problem, guarantee, rewards, costs, world


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("d", "simplex"), [(1, False), (2, False), (3, True)])
def test_one_multiplier_is_exact(seed: int, d: int, simplex: bool) -> None:
    problem, guarantee, rewards, costs, world = tiny_world(seed, d, simplex, n=4, m=3, k=1)
    rule = prudent.PureRobustPolicy(problem, guarantee).fit(world.forecasts, sample_weight=world.weights)
    best = reference.best_pure_value(rewards, costs, world)
    assert rule.certificate_.status == prudent.Status.OPTIMAL
    assert rule.certificate_.lower == pytest.approx(best, abs=1e-7)
    played = rule.predict_proba(world.forecasts)
    assert reference.worst_case(rewards, costs, played, world) == pytest.approx(best, abs=1e-7)


def test_several_multipliers_are_certified_and_nearly_always_best() -> None:
    """Never above the best rule, always what the rule secures; the search finds the best in nearly all."""
    found = 0
    for seed in range(15):
        d, simplex = [(1, False), (2, False), (3, True)][seed % 3]
        problem, guarantee, rewards, costs, world = tiny_world(seed, d, simplex, n=4, m=3, k=3)
        rule = prudent.PureRobustPolicy(problem, guarantee).fit(world.forecasts, sample_weight=world.weights)
        best = reference.best_pure_value(rewards, costs, world)
        secured = reference.worst_case(rewards, costs, rule.predict_proba(world.forecasts), world)
        assert rule.certificate_.lower == pytest.approx(secured, abs=1e-6)
        assert rule.certificate_.lower <= best + 1e-6
        if rule.certificate_.status == prudent.Status.OPTIMAL:
            assert rule.certificate_.lower == pytest.approx(best, abs=1e-5)
        found += rule.certificate_.lower >= best - 1e-6
    assert found >= 12


def test_slack_and_weights_with_one_multiplier() -> None:
    rng = np.random.default_rng(4)
    problem = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
    forecasts, weights = rng.random((5, 1)), rng.random(5) + 0.1
    weights /= weights.sum()
    for slack in (0.01, 0.1, 0.5):
        rule = prudent.PureRobustPolicy(problem, guarantees.SelfOrthogonal(), slack=slack)
        rule.fit(forecasts, sample_weight=weights)
        allowed = reference.Allowed("box", np.zeros(1), np.array([slack]), np.zeros(1, dtype=int))
        world = reference.World(np.zeros(1), np.ones(1), False, forecasts, weights, forecasts[:, None, :], allowed)
        best = reference.best_pure_value(problem.rewards, problem.costs, world)
        assert rule.certificate_.lower == pytest.approx(best, abs=1e-7)


def test_where_mixing_is_not_needed_the_rule_is_proven_best() -> None:
    problem = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
    forecasts = np.random.default_rng(0).random(200)
    rule = prudent.PureRobustPolicy(problem, guarantees.Binned.uniform(5)).fit(forecasts)
    assert rule.certificate_.status == prudent.Status.OPTIMAL
    assert rule.certificate_.gap < 1e-9
    assert "needs no mixing" in rule.certificate_.message


def test_status_is_honest_where_nothing_is_proven() -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    forecasts = (np.arange(200) + 0.5) / 200
    rule = prudent.PureRobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts)
    assert rule.certificate_.status == prudent.Status.NOT_PROVEN
    assert "is not" in rule.certificate_.message
    assert rule.certificate_.upper > rule.certificate_.lower
