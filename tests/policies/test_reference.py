"""The two habits that robust policies are compared with."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import prudent
from prudent.errors import InputError


def test_safety_ignores_the_forecast_even_in_ties() -> None:
    problem = prudent.DecisionProblem([[1, -1], [-1, -1], [0, 1], [0, -1]])
    mixtures = prudent.SafetyPolicy(problem).predict_proba(np.random.default_rng(0).random((50, 2)))
    assert (mixtures == mixtures[0]).all()


PROBLEM = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.25, 0.55], actions=["low", "mid", "high"])
COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])  # the safety policy mixes
RNG = np.random.default_rng(0)
FORECASTS = RNG.random(300)
OUTCOMES = (RNG.random(300) < FORECASTS**2).astype(float)
FRESH = RNG.random(200)
ISOTONIC = prudent.recalibration.IsotonicCalibrator().fit(FORECASTS, OUTCOMES)


@pytest.mark.parametrize(
    "inner",
    [
        prudent.PlugInPolicy(PROBLEM),
        prudent.SafetyPolicy(COIN, salt="a salt of its own"),
        prudent.RobustPolicy(PROBLEM, "self-orthogonal", slack=0.05, random_state=0).fit(ISOTONIC.transform(FORECASTS)),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_it_plays_the_policy_on_recalibrated_forecasts(inner: Any) -> None:
    policy = prudent.RecalibratedPolicy(ISOTONIC, inner)
    moved = ISOTONIC.transform(FRESH)
    assert policy.problem == inner.problem
    assert policy.deterministic == inner.deterministic
    np.testing.assert_array_equal(policy.predict_proba(FRESH), inner.predict_proba(moved))
    np.testing.assert_array_equal(policy.predict(FRESH, keys=range(200)), inner.predict(moved, keys=range(200)))
    np.testing.assert_array_equal(policy.worst_case_belief(FRESH), inner.worst_case_belief(moved))


def test_best_responses_to_recalibrated_forecasts_by_hand() -> None:
    policy = prudent.RecalibratedPolicy(ISOTONIC, prudent.PlugInPolicy(PROBLEM))
    utilities = ISOTONIC.transform(FRESH) * PROBLEM.rewards[:, 0] - PROBLEM.costs
    assert policy.predict(FRESH).tolist() == [PROBLEM.actions[k] for k in utilities.argmax(axis=1)]
    assert policy.predict(FRESH).tolist() != prudent.PlugInPolicy(PROBLEM).predict(FRESH).tolist()


def test_rewards_and_costs_of_rows_reach_the_policy() -> None:
    policy = prudent.RecalibratedPolicy(ISOTONIC, prudent.PlugInPolicy(PROBLEM))
    costs = RNG.random((200, 3))
    utilities = ISOTONIC.transform(FRESH) * PROBLEM.rewards[:, 0] - costs
    np.testing.assert_array_equal(policy.predict_proba(FRESH, costs=costs).argmax(axis=1), utilities.argmax(axis=1))


def test_copies_keep_what_was_fitted() -> None:
    policy = prudent.RecalibratedPolicy(ISOTONIC, prudent.PlugInPolicy(PROBLEM))
    for twin in (clone(policy), pickle.loads(pickle.dumps(policy))):
        np.testing.assert_array_equal(twin.predict_proba(FRESH), policy.predict_proba(FRESH))


def test_parts_must_be_what_they_are_called() -> None:
    for parts in ((prudent.PlugInPolicy(PROBLEM), ISOTONIC), (None, prudent.PlugInPolicy(PROBLEM)), (ISOTONIC, 3)):
        with pytest.raises(InputError, match="recalibrator must be a fitted Recalibrator, and policy a Policy"):
            prudent.RecalibratedPolicy(*parts).predict(FRESH)


def test_thresholds_belong_to_the_action_above() -> None:
    rule = prudent.FixedRule(PROBLEM, thresholds=[0.3, 0.6])
    assert rule.predict([0.0, 0.2999, 0.3, 0.5999, 0.6, 1.0]).tolist() == ["low", "low", "mid", "mid", "high", "high"]
    reversed_rule = prudent.FixedRule(PROBLEM, thresholds=[0.5], actions=["high", "low"])
    assert reversed_rule.predict([0.4, 0.5]).tolist() == ["high", "low"]
    assert prudent.FixedRule(PROBLEM, thresholds=[], actions=["mid"]).predict([0.1, 0.9]).tolist() == ["mid", "mid"]


def test_functions_and_labels_decide_as_they_say() -> None:
    function = prudent.FixedRule(PROBLEM, function=lambda v: np.where(v[:, 0] > 0.5, "high", "low"))
    assert function.predict([0.2, 0.8]).tolist() == ["low", "high"]
    assert prudent.FixedRule(PROBLEM, labels=["mid", "low"]).predict([0.2, 0.8]).tolist() == ["mid", "low"]
    assert function.deterministic
    np.testing.assert_array_equal(function.worst_case_belief([0.2, 0.8]), [[0.2], [0.8]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs one of thresholds, function and labels"),
        ({"thresholds": [0.3, 0.6], "labels": ["low"] * 3}, "needs one of thresholds, function and labels"),
        ({"thresholds": [0.6, 0.3]}, "thresholds must rise"),
        ({"thresholds": [0.3, 0.3]}, "thresholds must rise"),
        ({"thresholds": 0.3}, "thresholds must be a list"),
        ({"thresholds": [0.3]}, "actions must be 2, one more than thresholds"),
        ({"thresholds": [0.3], "actions": ["low", "jump"]}, "actions must be among the actions .* got 'jump'"),
        ({"labels": ["low"]}, "labels must be one per forecast, 3; got 1"),
        ({"labels": ["low", "mid", "jump"]}, "labels must be among the actions .* got 'jump'"),
        ({"labels": ["low", "mid", ["high"]]}, "labels must be among the actions"),
        ({"function": lambda v: ["low"]}, "labels must be one per forecast, 3; got 1"),
    ],
)
def test_rules_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.FixedRule(PROBLEM, **given).predict([0.1, 0.5, 0.9])


def test_thresholds_are_for_one_coordinate() -> None:
    classes = prudent.DecisionProblem.from_payoffs(np.eye(3))
    with pytest.raises(InputError, match="on forecasts of one coordinate"):
        prudent.FixedRule(classes, thresholds=[0.3, 0.6]).predict([[0.2, 0.3, 0.5]])
