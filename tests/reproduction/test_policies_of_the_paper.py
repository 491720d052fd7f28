"""The rules that Prudent is compared with, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.policies_of_the_paper import (
    best_response_to_worst_belief,
    minimax_regret_rule,
    regret_under_bounded_error,
)

import prudent

EITHER = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])  # p or 1 - p
FORECASTS = ((np.arange(400) + 0.5) / 400)[:, None]


def test_both_tie_breaks_guarantee_what_the_theory_says() -> None:
    """docs/theory.md, section 3.1: 0.4226 one way, next to nothing the other, against 0.5918."""
    guarantee = prudent.guarantees.SelfOrthogonal()
    policy = prudent.RobustPolicy(EITHER, guarantee).fit(FORECASTS)
    values = {}
    for ties in ("first", "last"):
        mixtures = best_response_to_worst_belief(policy, FORECASTS, ties)
        np.testing.assert_array_equal(np.sort(mixtures, axis=1), np.tile([0.0, 1.0], (400, 1)))
        values[ties] = prudent.worst_case(mixtures, FORECASTS, problem=EITHER, guarantee=guarantee).value
    assert values["first"] == pytest.approx(1 - 1 / np.sqrt(3), abs=2e-3)
    assert 0 <= values["last"] < 2e-3
    assert policy.certificate_.lower == pytest.approx(1 - 1 / np.sqrt(6), abs=1e-3)


def test_the_rule_best_responds_to_the_belief() -> None:
    problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal()).fit(FORECASTS)
    beliefs = policy.worst_case_belief(FORECASTS)
    for ties in ("first", "last"):
        mixtures = best_response_to_worst_belief(policy, FORECASTS, ties)
        earned = (mixtures * problem.utility(beliefs)).sum(axis=1)
        np.testing.assert_allclose(earned, problem.value(beliefs), atol=1e-9)


@pytest.mark.parametrize("error", [0.0, 0.05, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("indifference", [0.0, 0.1, 0.3, 0.5, 0.85, 1.0])
def test_minimax_regret_rule_against_all_thresholds(indifference: float, error: float) -> None:
    problem = prudent.DecisionProblem([0.0, 2.0], [0.0, 2.0 * indifference])
    rule = minimax_regret_rule(problem, FORECASTS, error)
    reached = regret_under_bounded_error(problem, rule, FORECASTS, error)
    thresholds = [np.eye(2)[(FORECASTS[:, 0] >= t).astype(int)] for t in np.linspace(0, 1.1, 441)]
    best = min(regret_under_bounded_error(problem, one, FORECASTS, error) for one in thresholds)
    assert reached <= best + 1e-12
    assert reached == pytest.approx(best, abs=1e-12)
    plug_in = prudent.PlugInPolicy(problem).predict_proba(FORECASTS)
    if error <= indifference <= 1 - error:  # the closed form: there the threshold is the plug-in one
        np.testing.assert_array_equal(rule, plug_in)


def test_regret_by_brute_force() -> None:
    problem = prudent.DecisionProblem([-1.0, 0.0], [0.0, 0.15])
    mixtures = np.random.default_rng(0).dirichlet([1, 1], size=400)
    found = regret_under_bounded_error(problem, mixtures, FORECASTS, 0.1)
    total = 0.0
    for v, mixture in zip(FORECASTS[:, 0], mixtures, strict=True):
        q = np.clip(np.linspace(v - 0.1, v + 0.1, 201), 0, 1)
        utilities = np.stack([-q, np.full_like(q, -0.15)], axis=1)
        total += (utilities.max(axis=1) - utilities @ mixture).max()
    assert found == pytest.approx(total / 400, abs=1e-12)


def test_the_regret_rule_needs_two_actions() -> None:
    with pytest.raises(prudent.errors.InputError, match="two actions"):
        minimax_regret_rule(prudent.DecisionProblem([0.1, 0.2, 0.3]), FORECASTS, 0.1)
    with pytest.raises(prudent.errors.InputError, match="must not be negative"):
        minimax_regret_rule(EITHER, FORECASTS, float("nan"))
