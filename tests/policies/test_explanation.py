"""Explanations agree with the policy and name the nearest change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import guarantees

LINE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
CLASSES = prudent.DecisionProblem.from_payoffs(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]], actions=["a", "b", "c", "ask"], classes=["x", "y", "z"]
)
FORECASTS = np.random.default_rng(0).beta(2, 3, size=200)
FAMILIES = [
    guarantees.Nothing(),
    guarantees.Unbiased(),
    guarantees.SelfOrthogonal(),
    guarantees.SelfOrthogonal(intercept=True),
    guarantees.Polynomial(3),
    guarantees.Bins(6, "quantile"),
    guarantees.Classwise(4),
    guarantees.LogOdds(),
    guarantees.Temperature(),
    guarantees.DecisionCalibrated(LINE),
    guarantees.UtilityCalibrated(LINE),
    guarantees.Bins(3) & guarantees.SelfOrthogonal(),
    guarantees.LogOdds() & guarantees.Polynomial(2),
    guarantees.FullyCalibrated(),
]


@pytest.mark.parametrize("kind", [prudent.RobustPolicy, partial(prudent.RobustPolicy, randomize=False)])
@pytest.mark.parametrize("guarantee", FAMILIES, ids=repr)
def test_nearest_changes_are_exact_in_one_coordinate(guarantee: guarantees.Guarantee, kind: type) -> None:
    policy = kind(LINE, guarantee).fit(FORECASTS)
    grid = np.linspace(1e-4, 1 - 1e-4, 20_001)
    support = policy.predict_proba(grid) > 0
    for forecast in (0.05, 0.27, 0.41, 0.5, 0.83):
        story = policy.explain(forecast)
        np.testing.assert_array_equal(story.probabilities, policy.predict_proba([forecast])[0])
        now = np.array(story.probabilities) > 0
        for word, side in (("up", grid > forecast), ("down", grid < forecast)):
            seen = np.abs(grid - forecast)[side & (support != now).any(axis=1)]
            found = [change for change in story.next_actions if change.direction == word]
            if seen.size == 0:
                assert not found or abs(found[0].forecast[0] - (word == "up")) < 1e-4
                continue
            (change,) = found
            assert seen.min() - 2e-4 <= change.distance <= seen.min()
            there = policy.predict_proba([change.forecast[0]])[0] > 0
            assert change.played == tuple(np.array(LINE.actions)[there])
            assert (there != now).any()
            back = np.nextafter(change.forecast[0], forecast)
            np.testing.assert_array_equal(policy.predict_proba([back])[0] > 0, now)


def test_belief_utilities_and_binding_test() -> None:
    policy = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal(intercept=True)).fit(FORECASTS)
    story = policy.explain(0.4)
    belief = policy.worst_case_belief([0.4])
    assert story.belief == tuple(belief[0])
    np.testing.assert_array_equal(story.utility_at_belief, LINE.utility(belief)[0])
    np.testing.assert_array_equal(story.utility_at_forecast, LINE.utility([0.4])[0])
    one, slope = policy.multipliers_[:, 0]
    assert dict(story.contributions) == pytest.approx({"1": abs(one), "v": abs(0.4 * slope)})
    assert story.binding == max(story.contributions, key=lambda pair: pair[1])[0]


def test_mixtures_and_certain_actions_read_differently() -> None:
    policy = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal()).fit(FORECASTS)
    mixed = next(v for v in np.linspace(0.3, 0.6, 301) if policy.predict_proba([v]).max() < 0.9)
    story = policy.explain(mixed)
    assert story.action is None
    assert "mixes" in str(story)
    sure = policy.explain(0.1)
    assert sure.action == "0.8x"
    assert "the action is 0.8x" in str(sure)
    assert "binds most is 'v'" in str(sure)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((6e-12, 1.0 - 6e-12, 0.0), "the action is 1.0x (100%)."),
        ((6e-12, 0.25, 0.75), "the policy mixes 1.0x (25%) and 1.2x (75%)."),
        ((0.001, 0.999, 0.0), "the policy mixes 0.8x (0.1%) and 1.0x (99.9%)."),
    ],
)
def test_tiny_shares_are_not_spelled_out(shares: tuple[float, ...], told: str) -> None:
    story = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal()).fit(FORECASTS).explain(0.1)
    assert str(replace(story, probabilities=shares)).startswith(f"At the forecast 0.1 {told}")


def test_several_classes_are_explained_without_a_next_action() -> None:
    forecasts = np.random.default_rng(1).dirichlet([1, 1, 1], 300)
    for policy in (
        prudent.RobustPolicy(CLASSES, guarantees.SelfOrthogonal()).fit(forecasts),
        prudent.PlugInPolicy(CLASSES),
    ):
        story = policy.explain([0.5, 0.3, 0.2])
        assert story.next_actions == ()
        assert "change" not in str(story)


def test_policies_fitted_on_named_columns_explain_plain_numbers() -> None:
    policy = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal()).fit(pd.DataFrame({"risk": FORECASTS}))
    assert policy.explain(0.1).action == "0.8x"  # and no warning about names


def test_the_two_habits() -> None:
    plug_in = prudent.PlugInPolicy(LINE).explain(0.25)
    assert plug_in.belief == plug_in.forecast == (0.25,)
    assert "believes the forecast" in str(plug_in)
    assert plug_in.next_actions[0].forecast[0] == pytest.approx(5 / 18)
    safety = prudent.SafetyPolicy(LINE).explain([[0.25]])
    assert safety.next_actions == ()
    assert "No other forecast" in str(safety)


@pytest.mark.parametrize("bad", [[0.1, 0.2], [[0.1], [0.2]], "0.5", None, np.nan, 1.5])
def test_only_one_valid_case_is_taken(bad: object) -> None:
    with pytest.raises(prudent.errors.InputError):
        prudent.PlugInPolicy(LINE).explain(bad)
