"""Hypothesis hunts for problems on which a certificate does not prove what it says.

Bounds are checked by plain arithmetic alone: weak duality for the mixtures
that are played, and feasibility of the world with its value.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import prudent
from prudent import guarantees
from solutions import solution_of

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
QUARTERS = st.integers(-8, 8).map(lambda i: i / 4)


@st.composite
def situations(draw: st.DrawFn):
    d = draw(st.integers(1, 4))
    simplex = d > 1 and draw(st.booleans())
    m, n = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    numbers = draw(st.sampled_from([QUARTERS, st.floats(-3, 3, width=32)]))
    rewards = np.array(draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=m, max_size=m)))
    costs = np.array(draw(st.lists(numbers, min_size=m, max_size=m)))
    shares = st.integers(0, 4).map(lambda i: i / 4) if draw(st.booleans()) else st.floats(0, 1, width=32)
    raw = np.array(draw(st.lists(st.lists(shares, min_size=d, max_size=d), min_size=n, max_size=n)))
    low, high = np.zeros(d), np.ones(d)
    if simplex:
        raw = np.where(raw.sum(axis=1, keepdims=True) > 1e-3, raw, 1.0)
        forecasts = raw / raw.sum(axis=1, keepdims=True)
    else:
        low = np.array(draw(st.lists(st.sampled_from([0.0, -2.0, 30.0]), min_size=d, max_size=d)))
        high = low + np.array(draw(st.lists(st.sampled_from([1.0, 0.25, 8.0]), min_size=d, max_size=d)))
        forecasts = low + (high - low) * raw
    weights = np.array(draw(st.lists(st.sampled_from([1.0, 3.0, 0.0, 1e-3]), min_size=n, max_size=n)))
    if not weights.any():
        weights[0] = 1.0
    space = prudent.Simplex(d) if simplex else prudent.Box(low.tolist(), high.tolist())
    problem = prudent.DecisionProblem(rewards, costs, space=space)
    other = prudent.DecisionProblem(rewards[::-1] * 2 - 0.5, space=space)
    guarantee = draw(
        st.sampled_from(
            [
                guarantees.Nothing(),
                guarantees.Unbiased(),
                guarantees.SelfOrthogonal(),
                guarantees.SelfOrthogonal(intercept=True),
                guarantees.Polynomial(2),
                guarantees.DecisionCalibrated([problem, other]),
                guarantees.UtilityCalibrated(other),
                guarantees.Classwise(2),
                guarantees.Unbiased() & guarantees.SelfOrthogonal(intercept=True) & guarantees.UtilityCalibrated(other),
            ]
        )
    )
    slack = draw(st.sampled_from([0.0, 0.0, 0.01, 0.2, prudent.Slack(0.05, "linf"), prudent.Slack(2.0)]))
    return problem, guarantee, slack, forecasts, weights


@settings(SETTINGS, max_examples=300)
@given(situations())
def test_certificates_prove_what_they_say(situation) -> None:
    problem, guarantee, slack, forecasts, weights = situation
    policy = prudent.RobustPolicy(problem, guarantee, slack=slack).fit(forecasts, sample_weight=weights)
    certificate = policy.certificate_
    note(str(certificate))
    unit = problem.utility_range or max(1.0, float(np.abs(problem.costs).max()))
    shares = weights / weights.sum()
    used = shares > 0
    tests = guarantee.evaluate(forecasts, problem.space).as_vector()
    radius, norm = (slack.radius, slack.norm) if isinstance(slack, prudent.Slack) else (slack, "l2")

    assert certificate.lower <= certificate.upper
    assert certificate.gap <= max(1e-6 * unit, 4e-15 * abs(certificate.upper))  # utilities may differ by rounding only
    assert certificate.status == prudent.solvers.Status.OPTIMAL

    # Weak duality for what is played.
    mixtures = policy.predict_proba(forecasts)
    # Tests that are zero on the sample carry what is played in regions never seen; the proof does not need them.
    multipliers = np.where(np.abs(tests.values[used]).max(axis=(0, 2)) > 0, policy.multipliers_.reshape(-1), 0.0)
    tilts = np.einsum("nkd,k->nd", tests.values, multipliers)
    low, high = problem.space.bounds
    direction = mixtures @ problem.rewards + tilts
    if isinstance(problem.space, prudent.Simplex):
        least = direction.min(axis=1)
    else:
        least = np.minimum(direction * low, direction * high).sum(axis=1)
    sizes = np.abs(multipliers * tests.scales)
    if norm == "l2":
        sizes = np.sqrt(np.bincount(tests.groups, weights=sizes**2, minlength=1))
    proven = shares @ (least - mixtures @ problem.costs - (tilts * forecasts).sum(axis=1)) - radius * sizes.sum()
    assert proven >= certificate.lower - 1e-9 * unit

    # The world is allowed, and nobody gets more than the upper bound in it.
    beliefs = forecasts.copy()
    beliefs[used] = solution_of(policy, forecasts, weights=weights).beliefs
    width = high - low
    assert (beliefs[used] >= low - 1e-12 * width).all()
    assert (beliefs[used] <= high + 1e-12 * width).all()
    moments = np.einsum("nkd,nd,n->k", tests.values, beliefs - forecasts, shares) / np.where(
        tests.scales, tests.scales, 1
    )
    if norm == "l2":
        moments = np.sqrt(np.bincount(tests.groups, weights=moments**2, minlength=1))
    assert np.abs(moments).max(initial=0.0) <= radius + 1e-10 * width.max()
    attained = shares @ (beliefs @ problem.rewards.T - problem.costs).max(axis=1)
    assert attained <= certificate.upper + 1e-9 * unit


@pytest.mark.parametrize("examples", [5, pytest.param(150, marks=pytest.mark.slow)])
def test_pure_rules_secure_their_certificate_and_never_beat_mixing(examples: int) -> None:
    limits = settings(SETTINGS, max_examples=examples)
    limits(given(situations())(pure_rule_secures_its_certificate_and_does_not_beat_mixing))()


def pure_rule_secures_its_certificate_and_does_not_beat_mixing(situation) -> None:
    problem, guarantee, slack, forecasts, weights = situation
    rule = prudent.RobustPolicy(problem, guarantee, slack=slack, randomize=False).fit(forecasts, sample_weight=weights)
    mixed = prudent.RobustPolicy(problem, guarantee, slack=slack).fit(forecasts, sample_weight=weights)
    unit = problem.utility_range or 1.0
    assert rule.certificate_.lower <= mixed.certificate_.upper + 1e-9 * unit
    worst = prudent.worst_case(rule, forecasts, guarantee=guarantee, slack=slack, weights=weights)
    assert abs(worst.value - rule.certificate_.lower) <= 1e-6 * unit
