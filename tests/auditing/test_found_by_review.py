"""Defects that an independent reading found, each with the smallest case that showed it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import InputError, VerdictKind, guarantees
from prudent.auditing import movement
from prudent.moments import estimate_moments, moment_sums

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
SELF = guarantees.SelfOrthogonal()


def test_slack_of_regions_that_nobody_uses_is_no_drift() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem([1.0, -1.0, 8.0], [0.0, -1.0, 7.4])  # the third action is never best
    policy = prudent.RobustPolicy(problem, guarantees.DecisionCalibrated(problem), slack=0.05).fit(rng.random(2_000))
    assert prudent.PolicyMonitor(policy, tolerance=0.05).update(rng.random(200)).alarms == ()


@pytest.mark.parametrize("constant", [0.0, 30.0, 100.0])
def test_a_constant_in_all_payoffs_changes_no_statistics(constant: float) -> None:
    payoffs = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, -60.0]])
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rare = 0.015 * rng.random(100)
        v = np.column_stack([0.6 - rare / 2, 0.4 - rare / 2, rare])
        y = (rng.random((100, 1)) > np.cumsum(v, axis=1)).sum(axis=1).clip(0, 2)
        problem = prudent.DecisionProblem.from_payoffs(payoffs + constant)
        rejected += bool(prudent.audit(v, y, guarantees.UtilityCalibrated(problem), space=problem.space).rejected)
    assert rejected <= 4


@pytest.mark.parametrize("grouped", [False, True])
def test_rare_outcomes_are_expected_per_coordinate_and_per_unit(grouped: bool) -> None:
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        v = np.column_stack([0.03 * rng.random(100), rng.random(100)])
        y = np.column_stack([rng.random(100) < v[:, 0], np.clip(v[:, 1] + 0.1 * rng.normal(size=100), 0, 1)])
        groups = np.arange(100)
        if grouped:
            v, y, groups = (np.repeat(values, 10, axis=0) for values in (v, y, groups))
        space = prudent.Box([0, 0], [1, 1])
        result = prudent.audit(v, y.astype(float), guarantees.Unbiased(), space=space, groups=groups)
        rejected += "1 x y[0]" in result.rejected
    assert rejected <= 4


@pytest.mark.parametrize("constant", [0.0, 1_000.0])
def test_the_bound_ignores_what_no_outcome_sees(constant: float) -> None:
    rng = np.random.default_rng(0)
    q = rng.random(20_000)
    labels = (rng.random(20_000) < np.clip(q + 0.02, 0, 1)).astype(int)
    problem = prudent.DecisionProblem.from_payoffs(np.eye(2) + constant)
    guarantee = guarantees.DecisionCalibrated(problem)
    verdict = prudent.audit(np.column_stack([1 - q, q]), labels, guarantee, problem=problem, tolerance=0.1).verdict
    assert verdict.kind is VerdictKind.TRUST
    assert verdict.bound < 0.06


def test_actions_that_nobody_uses_cost_nothing() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(20_000)
    y = (rng.random(20_000) < np.clip(v + 0.02, 0, 1)).astype(float)
    problem = prudent.DecisionProblem([1.0, -1.0, -50.0], [0.0, -1.0, 0.0])
    verdict = prudent.audit(v, y, guarantees.DecisionCalibrated(problem), problem=problem, tolerance=0.05).verdict
    assert verdict.kind is VerdictKind.TRUST


def test_the_bootstrap_refuses_levels_beyond_its_draws() -> None:
    v = np.random.default_rng(0).random(500)
    with pytest.raises(InputError, match="too few for confidence"):
        prudent.audit(v, np.clip(v + 0.3, 0, 1), guarantees.Unbiased(), method="bootstrap", confidence=0.9999)


def test_measured_slack_keeps_its_confidence() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(2_000)
    y = (rng.random(2_000) < 0.8 * v).astype(float)
    ladder = prudent.guarantee_ladder(v, y, COIN, confidence=0.9)
    assert ladder.best.policy.slack_confidence_ == 0.9
    assert prudent.confidence_certificate(ladder.best.policy, rng.random(500)).confidence == pytest.approx(0.85)
    assert prudent.audit(v, y, SELF, problem=COIN).verdict.policy.slack_confidence_ == 0.95


def test_cross_fitting_certifies_what_is_played() -> None:
    rng = np.random.default_rng(5)
    v, weights = rng.random(60), rng.pareto(1.2, 60) + 0.05
    certificate = prudent.confidence_certificate(
        prudent.RobustPolicy(COIN, SELF), v, sample_weight=weights, cv=2, method="normal"
    )
    expected = sum(s * p.predict_proba(v) for s, p in zip(certificate.shares, certificate.policies, strict=True))
    np.testing.assert_allclose(certificate.predict_proba(v), expected)
    assert sum(certificate.shares) == pytest.approx(1.0)


def test_cross_fitting_refuses_clusters_with_measured_slack() -> None:
    v = np.random.default_rng(0).random(40)
    policy = prudent.RobustPolicy(COIN, SELF, slack="audit")
    with pytest.raises(InputError, match="as if rows were independent"):
        prudent.confidence_certificate(policy, v, cv=2, outcomes=v, groups=np.arange(40) // 2)


def test_rows_without_weight_are_no_units() -> None:
    rng = np.random.default_rng(0)
    policy = prudent.RobustPolicy(COIN, SELF).fit(rng.random(2_000))
    fresh, weights = rng.random(50), np.zeros(50)
    weights[0] = 1
    with pytest.raises(InputError, match="at least two independent rows"):
        prudent.confidence_certificate(policy, fresh, sample_weight=weights)
    weights[1] = 1
    padded = prudent.confidence_certificate(policy, fresh, sample_weight=weights, method="normal")
    assert padded.lower == prudent.confidence_certificate(policy, fresh[:2], method="normal").lower


@pytest.mark.parametrize("n", [7, 8, 30, 100])
def test_equal_pledges_are_not_judged_by_rounding(n: int) -> None:
    policy = prudent.RobustPolicy(COIN, SELF).fit(np.random.default_rng(0).random(2_000))
    certificate = prudent.confidence_certificate(policy, np.full(n, 0.37))
    assert certificate.method == "bernstein"
    assert certificate.lower >= -movement(policy)


def test_ranges_are_per_coordinate_and_per_cell() -> None:
    rng = np.random.default_rng(0)
    space = prudent.Box([0, 0], [1, 1_000])
    v = rng.random((150, 2)) * [1, 1_000]
    sums = moment_sums(guarantees.Classwise(5), space, v, v, np.full(150, 1 / 150))
    np.testing.assert_allclose(sums.widths, np.repeat([2.0, 2_000.0], 5))
    policy = prudent.RobustPolicy(COIN, guarantees.Binned.uniform(50)).fit(rng.random(3_000))
    assert movement(policy) <= np.abs(policy.multipliers_).max() + 1e-12


def test_every_coordinate_has_its_own_unit() -> None:
    rng = np.random.default_rng(0)
    space = prudent.Box([0, 0], [1, 1_000])
    v = rng.random((60, 2)) * [1, 1_000]
    y = (rng.random((60, 2)) < v / [1, 1_000]) * [1, 1_000]
    result = prudent.audit(v, y, guarantees.Unbiased(), space=space)
    assert result.verdict.kind is VerdictKind.NOT_ENOUGH_DATA


def test_a_monitor_keeps_the_policy_that_it_was_given() -> None:
    rng = np.random.default_rng(0)
    policy = prudent.RobustPolicy(COIN, SELF).fit(rng.random(2_000))
    monitor = prudent.PolicyMonitor(policy)
    policy.fit(0.3 * rng.random(500))
    x = 0.7 + 0.3 * rng.random(2_000)
    monitor.update(x, (rng.random(2_000) < x).astype(float), ids=range(2_000))
    assert monitor.n_outcomes == 2_000


def test_an_outcome_may_come_with_its_row_again() -> None:
    policy = prudent.RobustPolicy(COIN, SELF).fit(np.random.default_rng(0).random(500))
    monitor = prudent.PolicyMonitor(policy)
    monitor.update([0.3], ids=["a"]).update([0.3], [1.0], ids=["a"])
    assert (monitor.n_pending, monitor.n_outcomes, monitor.n_forecasts) == (0, 1, 1)
    monitor.update([0.4, 0.4], [np.nan, 1.0], ids=["b", "b"])
    assert (monitor.n_pending, monitor.n_outcomes, monitor.n_forecasts) == (0, 2, 2)
    with pytest.raises(InputError, match="time must be text"):
        monitor.update([0.3], ids=["c"], time=datetime.now(UTC))
    assert monitor.n_forecasts == 2


def test_swapped_columns_are_refused() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0]])
    frame = pd.DataFrame(rng.random((200, 2)), columns=["a", "b"])
    policy = prudent.RobustPolicy(problem, SELF).fit(frame)
    fresh = pd.DataFrame(rng.random((200, 2)), columns=["a", "b"])
    prudent.confidence_certificate(policy, fresh)
    prudent.PolicyMonitor(policy).update(fresh)
    with pytest.raises(ValueError, match="feature names"):
        prudent.PolicyMonitor(policy).update(fresh[["b", "a"]])
    with pytest.raises(ValueError, match="feature names"):
        prudent.confidence_certificate(policy, fresh[["b", "a"]])


def test_loaded_policies_are_like_fitted_ones(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    prudent.RobustPolicy(COIN, guarantees.FullyCalibrated()).fit([0.1, 0.9]).save(path)
    with pytest.raises(InputError, match="FullyCalibrated"):
        prudent.PolicyMonitor(prudent.load(path))
    narrow = prudent.RobustPolicy(COIN, guarantees.Binned([0.0, 0.2, 0.3])).fit([0.1, 0.25])
    narrow.save(path)
    np.testing.assert_array_equal(prudent.load(path).predict_proba([0.15]), narrow.predict_proba([0.15]))


def test_audited_slack_of_mixed_tests_is_accepted() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0]])
    v = rng.random((300, 2))
    y = (rng.random((300, 2)) < v).astype(float)
    guarantee = guarantees.Unbiased() & guarantees.UtilityCalibrated(problem)
    result = prudent.audit(v, y, guarantee)
    policy = prudent.RobustPolicy(problem, guarantee, slack=result.slack).fit(v)
    assert policy.certificate_.gap < 1e-6


def test_errors_name_the_callers_rows() -> None:
    v = np.full((40_000, 1), 0.5)
    v[30_000] = 0.0
    with pytest.raises(InputError, match="row 30000"):
        estimate_moments(guarantees.LogOdds(), prudent.Box(0, 1), v, v, np.full(40_000, 1 / 40_000), confidence=0.95)


def test_small_ones() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(100)
    with pytest.raises(InputError, match="at least one row"):
        prudent.audit(v, [], SELF)
    by_pair = prudent.audit(v, v, SELF, groups=[(i // 10, "x") for i in range(100)])
    assert by_pair.measured.spread.n_units == 10
    assert prudent.audit(v, v, SELF, groups=[1, "1"] * 50).measured.spread.n_units == 2
    policy = prudent.RobustPolicy(COIN, SELF).fit(np.round(v, 3))
    prudent.confidence_certificate(policy, np.round(rng.random(5_000), 3))
    assert np.isnan(prudent.PolicyMonitor(policy).moments()["upper"]).all()
    with pytest.raises(InputError, match="problem must be a DecisionProblem"):
        prudent.confidence_certificate(prudent.RobustPolicy(None, SELF), v, cv=2)


def test_bars_of_negative_utilities_grow_with_them() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem.from_payoffs([[0.0, -10.0], [-3.0, -3.0]])
    q = rng.random(500)
    ladder = prudent.guarantee_ladder(np.column_stack([1 - q, q]), (rng.random(500) < q).astype(int), problem)
    from prudent.plots import LadderDisplay

    bars = LadderDisplay(ladder).plot().ax_.patches
    lengths = [bar.get_width() for bar in bars]
    assert int(np.argmax(lengths)) == [rung is ladder.best for rung in ladder.rungs].index(True)
    assert min(lengths) > 0
