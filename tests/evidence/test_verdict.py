"""Situations with the verdict that each must get, and the numbers behind every sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.evidence.audits import Audit
from prudent.evidence.verdict import VerdictKind

# p or 1 - p: the decision changes at one half, and the utility range is one.
COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
CLASSES = prudent.DecisionProblem.from_payoffs(
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.5]], classes=["a", "b", "c"]
)
SELF = guarantees.SelfOrthogonal()

Arguments = tuple[Any, Any, guarantees.Guarantee, dict[str, Any]]


def judged(forecasts: Any, outcomes: Any, guarantee: Any, options: dict[str, Any]) -> Audit:
    others = {name: value for name, value in options.items() if name != "problem"}
    return prudent.audit(options.get("problem"), forecasts, outcomes, guarantee=guarantee, **others)


def yes_or_no(rng: np.random.Generator, q: np.ndarray) -> np.ndarray:
    return (rng.random(q.shape) < q).astype(float)


def classes_of(rng: np.random.Generator, q: np.ndarray) -> np.ndarray:
    names = np.array(["a", "b", "c"])
    return names[(rng.random((len(q), 1)) > np.cumsum(q, axis=1)).sum(axis=1).clip(0, 2)]


def calibrated(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, v), SELF, {"problem": COIN}


def decision_calibrated(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, v), guarantees.DecisionCalibrated(COIN), {"problem": COIN}


def utility_calibrated(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, v), guarantees.UtilityCalibrated(COIN), {"problem": COIN}


def wrong_but_not_for_this_decision(rng: np.random.Generator) -> Arguments:
    """Errors cancel on either side of one half, where the decision changes."""
    v = rng.random(20_000)
    q = np.clip(v + 0.2 * np.sin(4 * np.pi * v), 0, 1)
    return v, yes_or_no(rng, q), guarantees.Unbiased(), {"problem": COIN}


def detected_but_harmless(rng: np.random.Generator) -> Arguments:
    """So many rows that a bias of one percent is certain, and costs less than what matters."""
    v = rng.random(200_000)
    return v, yes_or_no(rng, np.clip(v - 0.01, 0, 1)), guarantees.Unbiased(), {"problem": COIN}


def biased(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, 0.7 * v), guarantees.Unbiased(), {"problem": COIN}


def biased_without_a_problem(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, 0.7 * v), guarantees.Unbiased(), {}


def broken_decision_calibration(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, 0.5 + 0.3 * (v - 0.5)), guarantees.DecisionCalibrated(COIN), {"problem": COIN}


def overconfident(rng: np.random.Generator) -> Arguments:
    """Unbiased, but too sure on both sides: no policy can guarantee much more, only better forecasts would help."""
    v = rng.random(5_000)
    return v, yes_or_no(rng, 0.5 + 0.3 * (v - 0.5)), guarantees.Unbiased(), {"problem": COIN}


def wrong_where_the_decision_changes(rng: np.random.Generator) -> Arguments:
    """Right on average in every bin, but in the middle one the forecast points the wrong way."""
    v = rng.random(5_000)
    middle = (v > 0.3) & (v < 0.7)
    q = np.where(middle, np.where(v < 0.5, v + 0.5, v - 0.5), v)
    return v, yes_or_no(rng, q), guarantees.Bins([0.0, 0.3, 0.7, 1.0]), {"problem": COIN}


def nothing_known_and_wrong_way_round(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, 1 - v), guarantees.Nothing(), {"problem": COIN}


def too_few_rows(rng: np.random.Generator) -> Arguments:
    v = rng.random(40)
    return v, yes_or_no(rng, v), SELF, {"problem": COIN}


def too_few_rows_without_a_problem(rng: np.random.Generator) -> Arguments:
    v = rng.random(40)
    return v, yes_or_no(rng, v), SELF, {}


def heavy_weights(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, v), SELF, {"problem": COIN, "weights": 1e-6 + rng.pareto(0.5, 5_000)}


def few_clusters(rng: np.random.Generator) -> Arguments:
    """Five thousand rows, but only twelve independent days."""
    days = np.repeat(np.arange(12), 417)[:5_000]
    v = rng.random(5_000)
    q = np.clip(v + 0.2 * rng.standard_normal(12)[days], 0, 1)
    return v, yes_or_no(rng, q), SELF, {"problem": COIN, "periods": days}


def strict_tolerance(rng: np.random.Generator) -> Arguments:
    v = rng.random(5_000)
    return v, yes_or_no(rng, v), SELF, {"problem": COIN, "tolerance": 0.001, "confidence": 0.99}


def class_never_seen_and_hardly_expected(rng: np.random.Generator) -> Arguments:
    p = rng.dirichlet([5.0, 5.0], 3_000)
    v = np.column_stack([p * 0.9999, np.full(3_000, 1e-4)])
    return v, classes_of(rng, np.column_stack([p, np.zeros(3_000)])), guarantees.Unbiased(), {"problem": CLASSES}


def class_never_seen_but_forecast(rng: np.random.Generator) -> Arguments:
    v = rng.dirichlet(np.ones(3), 3_000)
    q = np.column_stack([v[:, :2] / v[:, :2].sum(axis=1, keepdims=True), np.zeros(3_000)])
    return v, classes_of(rng, q), guarantees.Unbiased(), {"problem": CLASSES}


def calibrated_classes(rng: np.random.Generator) -> Arguments:
    v = rng.dirichlet(np.ones(3), 4_000)
    return v, classes_of(rng, v), SELF, {"problem": CLASSES}


SITUATIONS: list[tuple[Callable[[np.random.Generator], Arguments], VerdictKind]] = [
    (calibrated, VerdictKind.TRUST),
    (decision_calibrated, VerdictKind.TRUST),
    (utility_calibrated, VerdictKind.TRUST),
    (wrong_but_not_for_this_decision, VerdictKind.TRUST),
    (detected_but_harmless, VerdictKind.TRUST),
    (calibrated_classes, VerdictKind.TRUST),
    (class_never_seen_and_hardly_expected, VerdictKind.TRUST),
    (biased, VerdictKind.REPAIR),
    (biased_without_a_problem, VerdictKind.REPAIR),
    (broken_decision_calibration, VerdictKind.REPAIR),
    (overconfident, VerdictKind.REPAIR),
    (class_never_seen_but_forecast, VerdictKind.REPAIR),
    (wrong_where_the_decision_changes, VerdictKind.HEDGE),
    (nothing_known_and_wrong_way_round, VerdictKind.HEDGE),
    (too_few_rows, VerdictKind.NOT_ENOUGH_DATA),
    (too_few_rows_without_a_problem, VerdictKind.NOT_ENOUGH_DATA),
    (heavy_weights, VerdictKind.NOT_ENOUGH_DATA),
    (few_clusters, VerdictKind.NOT_ENOUGH_DATA),
    (strict_tolerance, VerdictKind.NOT_ENOUGH_DATA),
]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("situation", "kind"), SITUATIONS, ids=[situation.__name__ for situation, _ in SITUATIONS])
def test_verdicts(situation: Callable[[np.random.Generator], Arguments], kind: VerdictKind, seed: int) -> None:
    forecasts, outcomes, guarantee, options = situation(np.random.default_rng(seed))
    result = judged(forecasts, outcomes, guarantee, options)
    assert result.verdict.kind is kind, str(result)
    assert str(result.verdict).startswith({"not_enough_data": "not enough data"}.get(kind.value, kind.value))


def test_what_a_violation_too_small_to_be_seen_could_cost_is_told_where_it_decides() -> None:
    told = {}
    for situation, kind in SITUATIONS:
        forecasts, outcomes, guarantee, options = situation(np.random.default_rng(0))
        if "problem" in options:
            told.setdefault(kind, []).append(judged(forecasts, outcomes, guarantee, options).verdict.undetected)
    assert None not in told[VerdictKind.NOT_ENOUGH_DATA]
    assert None in told[VerdictKind.TRUST]


def test_the_hedge_keeps_its_word() -> None:
    forecasts, outcomes, guarantee, options = wrong_where_the_decision_changes(np.random.default_rng(0))
    verdict = judged(forecasts, outcomes, guarantee, options).verdict
    policy = verdict.policy
    assert policy is not None
    worst = prudent.worst_case(policy, forecasts, guarantee=policy.guarantee_, slack=policy.slack_)
    assert verdict.guaranteed == pytest.approx(worst.value, abs=1e-6)
    plug_in = prudent.worst_case(
        prudent.PlugInPolicy(COIN), forecasts, guarantee=policy.guarantee_, slack=policy.slack_
    )
    assert verdict.loss == pytest.approx(policy.certificate_.upper - plug_in.value, abs=1e-6)
    assert verdict.loss <= verdict.bound + 1e-9
    nominal = (policy.predict_proba(forecasts) * COIN.utility(forecasts)).sum(axis=1).mean()
    assert verdict.nominal_cost == pytest.approx(COIN.value(forecasts).mean() - nominal)
    # It really is better here: the outcomes pay it more than best responding.
    realised = (policy.predict_proba(forecasts) * COIN.utility(outcomes)).sum(axis=1).mean()
    best = COIN.utility(outcomes)[np.arange(5_000), COIN.best_response(forecasts)].mean()
    assert realised > best + 0.1


def test_the_sentence_names_what_is_off() -> None:
    forecasts, outcomes, guarantee, options = biased(np.random.default_rng(0))
    sentence = str(judged(forecasts, outcomes, guarantee, options).verdict)
    assert "'1'" in sentence
    assert "outcomes lie below forecasts" in sentence


def test_bound_is_sum_of_slack_times_rewards() -> None:
    forecasts, outcomes, guarantee, options = broken_decision_calibration(np.random.default_rng(0))
    result = judged(forecasts, outcomes, guarantee, options)
    assert result.verdict.bound == pytest.approx(float((result.slack[:, 0] * np.abs(COIN.rewards[:, 0])).sum()))


@pytest.mark.parametrize("constant", [0.0, 1_000.0])
def test_the_bound_ignores_what_no_outcome_sees(constant: float) -> None:
    rng = np.random.default_rng(0)
    q = rng.random(20_000)
    labels = (rng.random(20_000) < np.clip(q + 0.02, 0, 1)).astype(int)
    problem = prudent.DecisionProblem.from_payoffs(np.eye(2) + constant)
    guarantee = guarantees.DecisionCalibrated(problem)
    verdict = prudent.audit(problem, np.column_stack([1 - q, q]), labels, guarantee=guarantee, tolerance=0.1).verdict
    assert verdict.kind is VerdictKind.TRUST
    assert verdict.bound < 0.06


def test_actions_that_nobody_uses_cost_nothing() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(20_000)
    y = (rng.random(20_000) < np.clip(v + 0.02, 0, 1)).astype(float)
    problem = prudent.DecisionProblem([1.0, -1.0, -50.0], [0.0, -1.0, 0.0])
    verdict = prudent.audit(problem, v, y, guarantee=guarantees.DecisionCalibrated(problem), tolerance=0.05).verdict
    assert verdict.kind is VerdictKind.TRUST


def test_every_coordinate_has_its_own_unit() -> None:
    rng = np.random.default_rng(0)
    space = prudent.Box([0, 0], [1, 1_000])
    v = rng.random((60, 2)) * [1, 1_000]
    y = (rng.random((60, 2)) < v / [1, 1_000]) * [1, 1_000]
    result = prudent.audit(space, v, y, guarantee=guarantees.Unbiased())
    assert result.verdict.kind is VerdictKind.NOT_ENOUGH_DATA
