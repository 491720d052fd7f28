"""Slack: units, shapes, sets, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import Slack, guarantees
from prudent.errors import InfeasibleError, InputError
from solutions import solution_of

PROBLEM = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
PLANE = prudent.DecisionProblem([[1.0, 0.2], [0.1, 1.1], [0.6, 0.6]], [0.0, 0.1, 0.05])
RNG = np.random.default_rng(2)
FORECASTS = RNG.random(80)
POINTS = RNG.random((60, 2))


def value(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee, forecasts: np.ndarray, slack: object
) -> float:
    return prudent.RobustPolicy(problem, guarantee, slack=slack).fit(forecasts).certificate_.lower


def test_a_slack_is_a_frozen_value() -> None:
    assert Slack(0.1) == Slack(0.1, "l2", "zero")
    assert Slack([0.1, 0.2]) == Slack(np.array([0.1, 0.2]))
    assert Slack([[0.1]]) == Slack([[0.1]], "linf", "zero")
    assert hash(Slack([[0.1]], "linf")) == hash(Slack(np.array([[0.1]]), "linf"))
    assert Slack(0.1) != Slack(0.2)


def test_numbers_lists_and_slacks_mean_the_same() -> None:
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    expected = value(PROBLEM, guarantee, FORECASTS, 0.02)
    for slack in (
        np.float32(0.02),
        [0.02, 0.02],
        [[0.02], [0.02]],
        Slack(0.02),
        Slack(0.02, "linf"),
        Slack([0.02, 0.02]),
    ):
        assert value(PROBLEM, guarantee, FORECASTS, slack) == pytest.approx(expected, abs=1e-8)


def test_sets_with_a_centre_are_one_sided() -> None:
    guarantee = guarantees.Unbiased()
    one = value(PROBLEM, guarantee, FORECASTS, Slack([[0.02]], "linf", [[0.02]]))
    # Outcomes can only be higher than forecast, which this problem likes.
    assert one >= value(PROBLEM, guarantee, FORECASTS, 0.04) - 1e-9
    assert one == pytest.approx(value(PROBLEM, guarantee, FORECASTS, 0.0), abs=1e-9)


def test_round_slack_lies_between_square_ones() -> None:
    guarantee = guarantees.SelfOrthogonal()
    inner = value(PLANE, guarantee, POINTS, Slack(0.02 / np.sqrt(2), "linf"))
    middle = value(PLANE, guarantee, POINTS, Slack(0.02, "l2"))
    outer = value(PLANE, guarantee, POINTS, Slack(0.02, "linf"))
    assert outer <= middle + 1e-9
    assert middle <= inner + 1e-9
    assert outer < inner


def test_slack_is_in_outcome_units() -> None:
    """Measuring outcomes in other units and slack with them changes nothing."""
    wide = prudent.DecisionProblem(PROBLEM.rewards / 50, PROBLEM.costs, space=prudent.Box(0, 50))
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    assert value(wide, guarantee, 50 * FORECASTS, 50 * 0.02) == pytest.approx(
        value(PROBLEM, guarantee, FORECASTS, 0.02), abs=1e-8
    )


def test_multipliers_belong_to_the_unscaled_tests() -> None:
    wide = prudent.DecisionProblem(PROBLEM.rewards / 50, PROBLEM.costs, space=prudent.Box(0, 50))
    policy = prudent.RobustPolicy(wide, guarantees.SelfOrthogonal(intercept=True), slack=0.5).fit(50 * FORECASTS)
    tests = np.stack([np.ones(80), 50 * FORECASTS], axis=1)
    tilt = tests @ policy.multipliers_
    slope = policy.predict_proba(50 * FORECASTS) @ wide.rewards
    low, high = wide.rewards.min(), wide.rewards.max()
    np.testing.assert_allclose(slope, np.clip(-tilt, low, high), atol=1e-9)


def test_centred_sets_need_outcomes_and_use_them() -> None:
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    slack = Slack(0.01, center="measured")
    with pytest.raises(InputError, match="needs outcomes"):
        prudent.RobustPolicy(PROBLEM, guarantee, slack=slack).fit(FORECASTS)
    outcomes = np.clip(FORECASTS + 0.1, 0, 1)
    policy = prudent.RobustPolicy(PROBLEM, guarantee, slack=slack).fit(FORECASTS, outcomes)
    residual = solution_of(policy, FORECASTS, outcomes).beliefs[:, 0] - outcomes
    assert abs(residual.mean()) <= 0.01 + 1e-9
    assert abs((FORECASTS * residual).mean()) <= 0.01 + 1e-9
    # Under-forecasting is good news here, and the sharper set knows it.
    measured = np.abs([(outcomes - FORECASTS).mean(), (FORECASTS * (outcomes - FORECASTS)).mean()]) + 0.01
    assert policy.certificate_.lower > value(PROBLEM, guarantee, FORECASTS, measured)


def test_outcomes_are_checked_where_they_matter() -> None:
    policy = prudent.RobustPolicy(PROBLEM, guarantees.Unbiased(), slack=Slack(0.1, center="measured"))
    with pytest.raises(InputError, match="one row per forecast, 80; got 3"):
        policy.fit(FORECASTS, [0.1, 0.2, 0.3])
    with pytest.raises(prudent.errors.OutsideSpaceError, match="outcomes must lie in"):
        policy.fit(FORECASTS, FORECASTS + 2)


@pytest.mark.parametrize(
    ("guarantee", "problem", "forecasts", "center"),
    [
        (guarantees.Unbiased(), PROBLEM, FORECASTS, [[0.9]]),
        (guarantees.SelfOrthogonal(intercept=True), PROBLEM, FORECASTS, [[0.5], [-0.4]]),
        (guarantees.SelfOrthogonal(), PLANE, POINTS, [[0.5, 0.5], [0.5, 0.5]]),
        (guarantees.Bins([0, 0.5, 1]), PROBLEM, FORECASTS[FORECASTS < 0.5], [[0.0], [0.3]]),
        (guarantees.Unbiased() & guarantees.Unbiased(), PROBLEM, FORECASTS, [[0.0], [0.1]]),
    ],
)
@pytest.mark.parametrize("radius", [0.0, 0.01])
def test_infeasible_centred_sets_are_refused(
    guarantee: guarantees.Guarantee,
    problem: prudent.DecisionProblem,
    forecasts: np.ndarray,
    center: list,
    radius: float,
) -> None:
    policy = prudent.RobustPolicy(problem, guarantee, slack=Slack(radius, "l2", center))
    with pytest.raises(InfeasibleError, match="no world satisfies the guarantee with this slack"):
        policy.fit(forecasts)


@pytest.mark.parametrize(
    ("slack", "message"),
    [
        (-0.1, "must not be negative; got -0.1"),
        ([0.1], r"one per test \(2,\).*got shape \(1,\)"),
        ([0.1, 0.1, 0.1], r"one per test \(2,\).*got shape \(3,\)"),
        (np.zeros((3, 1)), r"one per moment \(2, 1\); got shape \(3, 1\)"),
        (np.zeros((2, 1, 3)), r"got shape \(2, 1, 3\)"),
        (float("nan"), "slack must be finite"),
        (float("inf"), "slack must be finite"),
        ("lots", "slack must be a number, an array, a Slack, or 'audit' to measure it on outcomes.*; got 'lots'"),
        ([[0.1], [-0.1]], "must not be negative"),
        (None, "slack must be"),
    ],
)
def test_bad_slack_is_refused(slack: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(intercept=True), slack=slack).fit(FORECASTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 0.1, "norm": "l1"}, "norm must be 'l2' or 'linf'; got 'l1'"),
        ({"radius": [[0.1]], "norm": "l2"}, "one per moment and needs norm='linf'"),
        ({"radius": 0.1, "center": "here"}, "center must be 'zero', 'measured' or an array; got 'here'"),
        ({"radius": 0.1, "center": [np.nan]}, "slack center must be finite"),
        ({"radius": "much"}, "slack must be a number, an array"),
    ],
)
def test_bad_slack_objects_are_refused_at_once(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Slack(**arguments)


def test_center_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"slack center must have shape \(1, 1\), one per moment; got \(2,\)"):
        prudent.RobustPolicy(PROBLEM, guarantees.Unbiased(), slack=Slack(0.1, center=[0.1, 0.2])).fit(FORECASTS)


def test_a_slack_is_shown_in_short_and_described_in_full() -> None:
    slack = Slack(np.full((3, 2), 0.1), "linf", np.zeros((3, 2)))
    assert repr(slack) == "Slack(radius=<3 x 2>, norm='linf', center=<3 x 2>)"
    assert slack.to_dict() == {"radius": ((0.1, 0.1),) * 3, "norm": "linf", "center": ((0, 0),) * 3, "confidence": None}
