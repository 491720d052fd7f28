"""Bands: exact thresholds, none forgotten."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.policies.bands import first_among, neighbours

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
    around_one = [*(1 - np.arange(4, 0, -1) * 2**-53), 1.0, 1 + 2**-52, 1 + 2**-51]
    np.testing.assert_array_equal(found, [*around_zero, *around_one])
