"""What rules would have earned on past cases, and its errors, against plain arithmetic."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import prudent
from prudent.advice.past_cases import PastCases, play_rule
from prudent.cases.cases import Cases
from prudent.cases.mean_bounds import Means

PROBLEM = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.25, 0.55], actions=["low", "mid", "high"])


def past(n: int = 120, *, own: Any = None, against: Any = None, **columns: Any) -> PastCases:
    rng = np.random.default_rng(0)
    forecasts = rng.random(n)
    outcomes = (rng.random(n) < forecasts**2).astype(float)
    cases = Cases(forecasts, outcomes, **columns)
    return PastCases.read(PROBLEM, cases, cases.on(PROBLEM.space), own or {}, against)


def test_utilities_promises_and_stakes() -> None:
    weights = np.random.default_rng(1).random(120)
    found = past(weights=weights)
    shares = weights / weights.sum()
    v, y = found.rows.forecasts[:, 0], found.rows.outcomes[:, 0]
    for a, (reward, cost) in enumerate(zip(PROBLEM.rewards[:, 0], PROBLEM.costs, strict=True)):
        np.testing.assert_allclose(found.utilities[:, a], reward * y - cost)
        np.testing.assert_allclose(found.hoped[:, a], reward * v - cost)
    values = np.maximum(np.maximum(0.2 * v, 0.9 * v - 0.25), 1.4 * v - 0.55)
    assert found.promised == pytest.approx(shares @ values)
    assert found.stakes == pytest.approx(shares @ values - max(found.hoped.T @ shares))
    assert found.follows


def test_the_error_of_a_gain_is_that_of_rows_or_of_units() -> None:
    rng = np.random.default_rng(2)
    mixtures = np.eye(3)[rng.integers(0, 3, 120)]
    rows = past()
    gains = (rows.utilities * (mixtures - rows.in_use)).sum(axis=1)
    found = rows.gain(mixtures)
    assert found == pytest.approx((gains.mean(), gains.std(ddof=1) / np.sqrt(120)))
    units = np.arange(120) // 10  # twelve periods of ten rows
    grouped = past(periods=units).gain(mixtures)
    means = gains.reshape(12, 10).mean(axis=1)
    between = means.std(ddof=1) / np.sqrt(12)
    within = np.sqrt(((gains - means[units]) ** 2).sum() / (120 - 12) / 120)
    assert grouped == pytest.approx((gains.mean(), max(between, within)))


def test_the_error_of_units_is_not_below_that_of_rows() -> None:
    # Alternating gains cancel within every period, so that the means of periods do not differ at all.
    mixtures = np.tile(np.eye(3)[[0, 2]], (60, 1))
    outcomes = np.tile([0.0, 1.0], 60)
    cases = Cases(np.full(120, 0.5), outcomes, periods=np.arange(120) // 10)
    found = PastCases.read(PROBLEM, cases, cases.on(PROBLEM.space), {}, None)
    gains = (found.utilities * (mixtures - found.in_use)).sum(axis=1).reshape(12, 10)
    assert np.ptp(gains.mean(axis=1)) == pytest.approx(0, abs=1e-12)
    assert found.gain(mixtures)[1] == pytest.approx(np.sqrt(gains.var(axis=1).mean() * 10 / 9 / 120))


def test_what_rare_outcomes_could_hide_counts_actions_in_use_only() -> None:
    found = past()
    low, mid = (np.eye(3)[[a] * 120] for a in (0, 1))
    y = found.rows.outcomes[:, 0]
    apart = np.abs((0.2 * y) - (0.9 * y - 0.25)).max()
    assert found.hidden([low, mid]) == pytest.approx(3 * apart / 120)
    assert found.hidden([low]) == 0.0
    assert found.hidden([low, mid, found.in_use]) > found.hidden([low, mid])


@pytest.mark.parametrize("seed", range(5))
def test_ranges_are_those_of_the_vertices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = prudent.Box([-1, 0, 2], [1, 3, 2.5])
    problem = prudent.DecisionProblem(rng.normal(size=(4, 3)), rng.normal(size=4), space=space)
    vertices = np.array(list(product((-1, 1), (0, 3), (2, 2.5))), dtype=float)
    utilities = vertices @ problem.rewards.T - problem.costs
    cases = Cases(vertices, vertices)
    found = PastCases.read(problem, cases, cases.on(space), {}, None)
    assert found.ends(gains=False) == pytest.approx((utilities.min(), utilities.max()))
    widest = np.ptp(utilities, axis=1).max()
    assert found.ends(gains=True) == pytest.approx((-widest, widest))
    own = {"rewards": rng.normal(size=(8, 4, 3)), "costs": rng.normal(size=(8, 4))}
    of_rows = np.einsum("nmd,vd->nvm", own["rewards"], vertices) - own["costs"][:, None]
    found = PastCases.read(problem, cases, cases.on(space), own, None)
    assert found.ends(gains=False) == pytest.approx((of_rows.min(), of_rows.max()))
    assert found.ends(gains=True)[1] == pytest.approx(np.ptp(of_rows, axis=2).max())


def test_claims_are_bounds_of_means_over_units() -> None:
    units = np.arange(120) % 30
    found = past(periods=units)
    earned = (found.utilities * found.in_use).sum(axis=1)
    estimate, lower, upper = found.claim(found.in_use, 0.05)
    means = Means.of_rows(earned, np.full(120, 1 / 120), *found.ends(gains=False), units)
    assert estimate == pytest.approx(earned.mean())
    assert lower == pytest.approx(estimate - means.radii(0.05)[0])
    assert upper == pytest.approx(estimate + means.radii(0.05, below=False)[0])
    assert found.claim(found.in_use, 0.05, over_rule_in_use=True) == (0.0, 0.0, 0.0)


def test_ids_are_units_only_where_they_repeat() -> None:
    assert past(ids=np.arange(120)).units is None
    repeated = past(ids=np.arange(120) // 2)
    assert repeated.units is not None
    assert repeated.needed_units == (60, 4, "distinct ids")
    assert past().needed_units == (120, 10, "cases")
    assert past(periods=np.arange(120) % 7, ids=np.arange(120) // 2).needed_units == (7, 4, "periods")
    assert past(6, ids=[1, 1, 2, 3, 4, 5]).needed_units == (6, 10, "cases")


@pytest.mark.parametrize(
    "against",
    [
        ["low", "mid", "high"] * 40,
        prudent.FixedRule(PROBLEM, thresholds=[0.3, 0.6]),
        prudent.FixedRule(PROBLEM, function=lambda v: np.where(v[:, 0] < 0.5, "low", "high")),
        prudent.SafetyPolicy(PROBLEM),
    ],
)
def test_other_rules_in_use_play_what_they_say(against: Any) -> None:
    found = past(against=against)
    forecasts = found.rows.forecasts
    expected = {
        list: lambda: np.eye(3)[[0, 1, 2] * 40],
        prudent.FixedRule: lambda: against.predict_proba(forecasts),
        prudent.SafetyPolicy: lambda: against.predict_proba(forecasts),
    }[type(against)]()
    np.testing.assert_array_equal(found.in_use, expected)
    assert not found.follows


def test_rules_that_look_at_stakes_are_told_those_of_rows() -> None:
    own = {"costs": np.random.default_rng(4).random((120, 3))}
    found = past(own=own, against=prudent.PlugInPolicy(PROBLEM))
    hoped = found.rows.forecasts * PROBLEM.rewards[:, 0] - own["costs"]
    np.testing.assert_array_equal(found.in_use, np.eye(3)[hoped.argmax(axis=1)])
    safety = prudent.SafetyPolicy(PROBLEM)
    np.testing.assert_array_equal(play_rule(safety, found.rows, found.own), safety.predict_proba(found.rows.forecasts))
