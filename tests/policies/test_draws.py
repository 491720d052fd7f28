"""Draws: reproducible on any machine, never a function of the forecast."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import prudent
from prudent import guarantees

PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0], actions=["up", "down"])


def draw_by_hand(salt: str, key: object, mixture: np.ndarray) -> int:
    digest = hashlib.sha256(salt.encode() + b"\0" + str(key).encode()).hexdigest()
    uniform = int(digest[:13], 16) / 16**13
    total = 0.0
    for action, share in enumerate(mixture):
        total += share
        if total > uniform:
            return action
    return int(np.flatnonzero(mixture)[-1])


@pytest.mark.parametrize(
    "keys", [list(range(50)), [f"id-{i}" for i in range(50)], np.arange(50), [i / 7 for i in range(50)]]
)
def test_keyed_draws_follow_the_published_formula(keys: list) -> None:
    policy = prudent.SafetyPolicy(PROBLEM, salt="spring")
    forecasts = np.linspace(0, 1, 50)
    mixtures = policy.predict_proba(forecasts)
    expected = [PROBLEM.actions[draw_by_hand("spring", key, mixtures[i])] for i, key in enumerate(keys)]
    assert policy.predict(forecasts, keys=keys).tolist() == expected


def test_known_draws_stay_the_same_for_ever() -> None:
    """Written down once, so that any change of the draw is noticed."""
    assert hashlib.sha256(b"s\x000").hexdigest()[:13] == "fb2d8077aac50"
    actions = prudent.SafetyPolicy(PROBLEM, salt="s").predict([0.5] * 8, keys=range(8))
    assert actions.tolist() == ["down", "down", "down", "down", "up", "down", "up", "down"]


def test_draws_have_the_right_frequencies() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0, -2.0], [0.0, 0.3, -1.2])
    policy = prudent.SafetyPolicy(problem)
    mixture = policy.predict_proba([0.4])[0]
    actions = policy.predict(np.full(20_000, 0.4), keys=range(20_000))
    shares = np.bincount(actions, minlength=3) / 20_000
    np.testing.assert_allclose(shares, mixture, atol=0.015)
    assert shares[mixture == 0].sum() == 0


def test_salts_draw_independently() -> None:
    one = prudent.SafetyPolicy(PROBLEM, salt="a").predict([0.5] * 2000, keys=range(2000))
    other = prudent.SafetyPolicy(PROBLEM, salt="b").predict([0.5] * 2000, keys=range(2000))
    assert abs((one == other).mean() - 0.5) < 0.05


def test_without_keys_random_state_decides() -> None:
    forecasts = np.full(200, 0.5)
    fixed = prudent.SafetyPolicy(PROBLEM, random_state=1)
    first, second = fixed.predict(forecasts), fixed.predict(forecasts)
    assert (first != second).any()  # successive calls go on drawing
    again = prudent.SafetyPolicy(PROBLEM, random_state=1)
    row_by_row = [again.predict([0.5])[0] for _ in range(400)]
    assert row_by_row == [*first, *second]
    refitted = fixed.fit(forecasts)
    np.testing.assert_array_equal(refitted.predict(forecasts), first)
    assert (first != prudent.SafetyPolicy(PROBLEM, random_state=2).predict(forecasts)).any()


def test_the_draw_does_not_see_the_forecast() -> None:
    """Equal mixtures and keys give equal draws, whatever the forecast."""
    policy = prudent.SafetyPolicy(PROBLEM)
    keys = list(range(300))
    np.testing.assert_array_equal(
        policy.predict(np.linspace(0, 1, 300), keys=keys), policy.predict(np.linspace(1, 0, 300), keys=keys)
    )


def test_labels_keep_their_type() -> None:
    forecasts = [0.1, 0.9]
    for actions, kind in ([("a", "b"), "U"], [(1, 2), "i"], [(0.5, 1.5), "f"], [(True, False), "b"], [("a", 2), "O"]):
        problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=actions)
        labels = prudent.PlugInPolicy(problem).predict(forecasts)
        assert labels.dtype.kind == kind
        assert labels.tolist() == list(actions)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([1, 2], "one entry per row, 3; got 2"),
        ([1, None, 3], "the key of row 1 is"),
        ([1, float("nan"), 3], "the key of row 1 is"),
    ],
)
def test_bad_keys_are_refused(keys: list, message: str) -> None:
    policy = prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).fit([0.2, 0.5, 0.9])
    with pytest.raises(prudent.errors.InputError, match=message):
        policy.predict([0.2, 0.5, 0.9], keys=keys)
