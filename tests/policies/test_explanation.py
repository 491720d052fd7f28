"""Explanations agree with the policy and name the nearest change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import guarantees
from prudent.policies.explanation import first_among, neighbours

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


STAFFING = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
GUARANTEES = {
    "nothing": guarantees.Nothing(),
    "unbiased": guarantees.Unbiased(),
    "self-orthogonal": guarantees.SelfOrthogonal(),
    "cubic": guarantees.Polynomial(3),
    "bins": guarantees.Bins(7, "quantile"),
    "decisions": guarantees.DecisionCalibrated(STAFFING),
    "utility": guarantees.UtilityCalibrated(STAFFING),
    "both": guarantees.Bins(4) & guarantees.SelfOrthogonal(intercept=True),
    "function": guarantees.FromFunctions([lambda v: np.sin(9 * v[:, 0])]),
}


@pytest.mark.parametrize("name", GUARANTEES)
@pytest.mark.parametrize("seed", range(3))
def test_bands_are_exact_and_complete(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    forecasts = rng.beta(2, 2, 400)
    policy = prudent.RobustPolicy(STAFFING, GUARANTEES[name], slack=0.01 * seed).fit(forecasts)
    bands = policy.bands()
    assert bands[0].first == 0.0
    assert bands[-1].last == 1.0
    for left, right in pairwise(bands):
        assert np.nextafter(left.last, 1) == right.first
        played = policy.predict_proba([left.last, right.first]) > 0
        assert (played[0] != played[1]).any()
    points = np.concatenate([rng.random(20_000), forecasts])
    place = np.searchsorted([band.first for band in bands], points, side="right") - 1
    expected = np.array([[action in band.actions for action in STAFFING.actions] for band in bands])[place]
    np.testing.assert_array_equal(policy.predict_proba(points) > 0, expected)


def test_a_band_thinner_than_any_grid_is_found() -> None:
    """Two lines cross a third within 1e-9 of each other."""
    thin = prudent.DecisionProblem([0.0, 1.0, 2.0], [0.0, 0.5, 1.0 + 1e-9], actions=["a", "b", "c"])
    bands = prudent.PlugInPolicy(thin).bands()
    assert [band.actions for band in bands] == [("a",), ("b",), ("c",)]
    assert 0 < bands[1].last - bands[1].first < 2e-9


def test_logarithms_leave_the_ends_out() -> None:
    policy = prudent.RobustPolicy(STAFFING, guarantees.LogOdds()).fit(np.linspace(0.05, 0.95, 200))
    bands = policy.bands()
    assert 0 < bands[0].first < 1e-12
    assert 1 - 1e-12 < bands[-1].last < 1


def test_several_coordinates_have_none() -> None:
    with pytest.raises(prudent.errors.InputError, match="one coordinate"):
        prudent.PlugInPolicy(prudent.DecisionProblem([[0, 1], [1, 0]])).bands()


def test_bisection_over_doubles_finds_the_first() -> None:
    for low, high, edge in ((-1.0, 1.0, 5e-324), (-3.0, -1.0, -2.0), (-1.0, 2.0, 0.0), (0.0, 1e300, 1e-200)):
        assert first_among(lambda v, at=edge: v >= at, low, high) == edge


def test_neighbours_are_the_next_doubles_in_order_and_without_repetition() -> None:
    found = neighbours(np.array([1.0, -0.0, 5e-324]), 2)
    around_zero = [-1e-323, -5e-324, 0.0, 5e-324, 1e-323, 1.5e-323]
    around_one = [1 - 2**-52, 1 - 2**-53, 1.0, 1 + 2**-52, 1 + 2**-51]
    np.testing.assert_array_equal(found, [*around_zero, *around_one])
