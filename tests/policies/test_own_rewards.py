"""Rewards and costs per row, against a linear program that shares no code with the solvers."""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import guarantees


def reference(forecasts: np.ndarray, rewards: np.ndarray, costs: np.ndarray, tests: np.ndarray) -> float:
    """The adversary's program: worlds in [0, 1]^d with the right moments, and the best action of every row."""
    n, d = forecasts.shape
    world, values = cp.Variable((n, d)), cp.Variable(n)
    limits = [world >= 0, world <= 1, tests.T @ (world - forecasts) == 0]
    limits += [values >= cp.sum(cp.multiply(rewards[:, a], world), axis=1) - costs[:, a] for a in range(costs.shape[1])]
    program = cp.Problem(cp.Minimize(cp.sum(values) / n), limits)
    program.solve(solver=cp.HIGHS)
    return float(program.value)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dimension", [1, 3])
def test_the_value_is_that_of_the_linear_program(seed: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = 60, 3
    forecasts = rng.random((n, dimension))
    rewards, costs = rng.normal(size=(n, m, dimension)), rng.normal(size=(n, m)) / 2
    problem = prudent.DecisionProblem(np.zeros((m, dimension)))
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True))
    policy.fit(forecasts, rewards=rewards, costs=costs)
    # One multiplier per test and coordinate: test functions 1, v_1, ..., v_d, each with every coordinate's error.
    expected = reference(forecasts, rewards, costs, np.column_stack([np.ones(n), forecasts]))
    assert policy.certificate_.lower == pytest.approx(expected, abs=1e-6)
    assert policy.certificate_.upper == pytest.approx(expected, abs=1e-6)
    # The mixtures that are played reach it, by plain arithmetic of weak duality.
    mixtures = policy.predict_proba(forecasts, rewards=rewards, costs=costs)
    tests = np.column_stack([np.ones(n), forecasts])
    tilts = tests @ policy.multipliers_
    direction = np.einsum("nm,nmd->nd", mixtures, rewards) + tilts
    pledged = np.minimum(direction, 0).sum(axis=1) - (mixtures * costs).sum(axis=1) - (tilts * forecasts).sum(axis=1)
    assert pledged.mean() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rule", ["plug-in", "threshold", "labels"])
@pytest.mark.parametrize("seed", range(4))
def test_gains_over_a_rule_are_those_of_the_linear_program(seed: int, rule: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    n, m = 60, 3
    forecasts = rng.random((n, 1))
    outcomes = np.clip(forecasts + rng.normal(0.5, 0.1, (n, 1)), 0, 1)
    rewards = np.arange(m)[:, None] + 0.3 * rng.normal(size=(n, m, 1))
    costs = 0.5 * np.arange(m) + 0.1 * rng.normal(size=(n, m))
    problem = prudent.DecisionProblem(np.zeros((m, 1)))
    taken = rng.integers(0, m, n)
    in_use, against = np.eye(m)[taken], prudent.FixedRule(problem, labels=taken)
    if rule == "plug-in":
        against = None
        in_use = np.eye(m)[(rewards[:, :, 0] * forecasts - costs).argmax(axis=1)]
    elif rule == "threshold":
        against = prudent.FixedRule(problem, thresholds=[0.3, 0.6])
        in_use = np.eye(m)[np.searchsorted([0.3, 0.6], forecasts[:, 0], side="right")]
    policy = prudent.RobustPolicy(
        problem,
        guarantees.Bins(5),
        criterion="improvement",
        against=against,
        slack=prudent.Slack(0.01, "linf", center="measured"),
    ).fit(forecasts, outcomes, rewards=rewards, costs=costs)

    own = rewards[:, :, 0]
    world, values = cp.Variable(n), cp.Variable(n)
    tests = np.eye(5)[np.minimum((forecasts[:, 0] * 5).astype(int), 4)]
    errors = tests.T @ (world - outcomes[:, 0]) / n
    limits = [world >= 0, world <= 1, errors <= 0.01, errors >= -0.01]
    limits += [values >= cp.multiply(own[:, a], world) - costs[:, a] for a in range(m)]
    earned = cp.sum(cp.multiply((in_use * own).sum(axis=1), world)) - (in_use * costs).sum()
    expected = float(cp.Problem(cp.Minimize((cp.sum(values) - earned) / n), limits).solve(solver=cp.HIGHS))
    assert expected > 0.01  # there is something to gain
    assert policy.certificate_.lower == pytest.approx(expected, abs=1e-6)
    assert policy.certificate_.upper == pytest.approx(expected, abs=1e-6)

    # What is played reaches it in the worst world for it.
    played = policy.predict_proba(forecasts, rewards=rewards, costs=costs)
    more = cp.sum(cp.multiply(((played - in_use) * own).sum(axis=1), world)) - ((played - in_use) * costs).sum()
    worst = float(cp.Problem(cp.Minimize(more / n), limits[:4]).solve(solver=cp.HIGHS))
    assert worst == pytest.approx(expected, abs=1e-6)
    assert policy.certify(forecasts, rewards=rewards, costs=costs).lower == pytest.approx(expected, abs=1e-6)
    if rule != "labels":  # a list of what was done speaks of these rows only, and is not saved
        policy.save(tmp_path / "policy.json")
        again = prudent.load(tmp_path / "policy.json")
        np.testing.assert_array_equal(again.predict_proba(forecasts, rewards=rewards, costs=costs), played)
        explained = policy.explain(forecasts[0], rewards=rewards[0], costs=costs[0])
        np.testing.assert_allclose(explained.probabilities, played[0], atol=1e-8)


def test_without_a_gain_the_rule_in_use_is_played_with_the_costs_of_rows() -> None:
    rng = np.random.default_rng(0)
    forecasts, costs = rng.random(100), rng.random((100, 2))
    problem = prudent.DecisionProblem([0.0, 1.0])
    # A bin for every row: the forecast is the only world.
    policy = prudent.RobustPolicy(problem, "quantile-bins:100", criterion="improvement").fit(forecasts, costs=costs)
    best = np.eye(2)[(np.outer(forecasts, [0.0, 1.0]) - costs).argmax(axis=1)]
    assert policy.multipliers_ is None
    np.testing.assert_array_equal(policy.predict_proba(forecasts, costs=costs), best)


def test_equal_rows_are_one_problem() -> None:
    rng = np.random.default_rng(0)
    forecasts = rng.random(300)
    problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    guarantee = guarantees.SelfOrthogonal()
    shared = prudent.RobustPolicy(problem, guarantee, slack=0.01).fit(forecasts)
    costs = np.tile(problem.costs, (300, 1))
    own = prudent.RobustPolicy(problem, guarantee, slack=0.01).fit(forecasts, costs=costs)
    assert own.certificate_.lower == pytest.approx(shared.certificate_.lower, abs=1e-6)
    np.testing.assert_array_equal(
        own.predict(forecasts, keys=range(300), costs=costs), own.predict(forecasts, keys=range(300), costs=costs)
    )


def test_rows_of_weight_zero_change_nothing() -> None:
    rng = np.random.default_rng(1)
    forecasts, costs = rng.random(100), rng.random((100, 2)) / 2
    problem = prudent.DecisionProblem([0.0, 1.0])
    weights = np.r_[np.ones(80), np.zeros(20)]
    policy = prudent.RobustPolicy(problem, guarantees.Unbiased())
    some = policy.fit(forecasts, costs=costs, sample_weight=weights).certificate_.lower
    assert some == pytest.approx(policy.fit(forecasts[:80], costs=costs[:80]).certificate_.lower, abs=1e-9)


def test_misuse_is_named() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0])
    policy = prudent.RobustPolicy(problem, guarantees.Unbiased())
    with pytest.raises(prudent.errors.InputError, match="fitted with costs per row; got none"):
        policy.fit([0.1, 0.2], costs=np.ones((2, 2))).predict([0.1])
    with pytest.raises(prudent.errors.InputError, match="fitted with no rewards or costs per row; got costs"):
        policy.fit([0.1, 0.2]).predict_proba([0.1], costs=np.ones((1, 2)))
    with pytest.raises(prudent.errors.InputError, match=r"costs must have shape \(2, 2\)"):
        policy.fit([0.1, 0.2], costs=[1.0, 2.0])
    with pytest.raises(prudent.errors.InputError, match=r"rewards must have shape \(2, 2, 1\)"):
        policy.fit([0.1, 0.2], rewards=np.ones((3, 2)))
    with pytest.raises(prudent.errors.InputError, match="costs must be finite"):
        policy.fit([0.1, 0.2], costs=[[0.0, np.nan], [0.0, 1.0]])
    with pytest.raises(prudent.errors.InputError, match="a guarantee with tests"):
        prudent.RobustPolicy(problem, guarantees.FullyCalibrated()).fit([0.1], costs=[[0.0, 1.0]])
    with pytest.raises(prudent.errors.InputError, match="needs outcomes"):
        prudent.RobustPolicy(problem, guarantees.Unbiased(), slack="audit").fit([0.1], costs=[[0.0, 1.0]])


def loans() -> tuple[prudent.RobustPolicy, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    problem = prudent.DecisionProblem([0.0, 1.0], actions=["refuse", "lend"])
    forecasts = rng.random(200)
    costs = np.column_stack([np.zeros(200), rng.uniform(0.2, 0.8, 200)])
    policy = prudent.RobustPolicy(problem, "self-orthogonal", slack=0.01, salt="loans")
    return policy.fit(forecasts, costs=costs), forecasts, costs


def test_frames_are_matched_by_the_names_of_actions() -> None:
    policy, forecasts, costs = loans()
    frame = pd.DataFrame({"lend": costs[:, 1], "refuse": costs[:, 0]})
    np.testing.assert_array_equal(
        policy.predict_proba(forecasts, costs=frame), policy.predict_proba(forecasts, costs=costs)
    )
    with pytest.raises(prudent.errors.InputError, match=r"one column per action, \['refuse', 'lend'\]"):
        policy.predict(forecasts, costs=frame.rename(columns={"lend": "give"}))


def test_a_loaded_policy_has_what_a_fitted_one_has(tmp_path: Path) -> None:
    policy, forecasts, costs = loans()
    policy.save(tmp_path / "policy.json")
    again = prudent.load(tmp_path / "policy.json")
    np.testing.assert_array_equal(
        again.predict(forecasts, keys=range(200), costs=costs), policy.predict(forecasts, keys=range(200), costs=costs)
    )
    for attribute in ("certificate_", "slack_", "guarantee_"):
        assert getattr(again, attribute) == getattr(policy, attribute)
    assert again.fitted_.per_row == ("costs",)
    assert again.certify(forecasts, costs=costs) == policy.certify(forecasts, costs=costs)


def test_one_case_is_explained_with_its_own_costs() -> None:
    policy, forecasts, costs = loans()
    told = policy.explain(forecasts[7], costs=costs[7])
    np.testing.assert_allclose(told.probabilities, policy.predict_proba(forecasts[7:8], costs=costs[7:8])[0], atol=1e-6)
    bands = policy.bands(costs=costs[7])
    assert bands[0].first == 0.0
    assert bands[-1].last == 1.0
    with pytest.raises(prudent.errors.InputError, match="fitted with costs per row; got none"):
        policy.explain(0.3)
    with pytest.raises(prudent.errors.InputError, match="cannot be written as SQL"):
        policy.to_sql("duckdb", "f")


def test_certificates_for_other_cases_hold() -> None:
    policy, _, _ = loans()
    rng = np.random.default_rng(4)
    forecasts, costs = rng.random(50), np.column_stack([np.zeros(50), rng.uniform(0.2, 0.8, 50)])
    best = prudent.RobustPolicy(policy.problem, policy.guarantee, slack=0.01).fit(forecasts, costs=costs).certificate_
    found = policy.certify(forecasts, costs=costs)
    assert best.lower - 0.1 < found.lower <= best.upper
    assert found.upper >= best.lower
