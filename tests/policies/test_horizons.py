"""What rules earn on other cases, without their outcomes: on average, in the next period, realised."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import prudent
from prudent.errors import InputError

PROBLEM = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"])


def periods_of(rng: np.random.Generator, count: int, size: int, effect: float) -> tuple[Any, Any, Any]:
    """Draw periods whose outcomes are off by an effect of their own."""
    periods = np.repeat(np.arange(count), size)
    v = rng.random(periods.size)
    off = effect * rng.normal(size=count)
    return v, np.clip(v + off[periods] + 0.1 * rng.normal(size=v.size), 0, 1), periods


def test_bounds_are_those_of_plain_arithmetic() -> None:
    rng = np.random.default_rng(0)
    v, y, periods = periods_of(rng, 12, 40, 0.1)
    advice = prudent.advise(PROBLEM, v, y, periods=periods, menu=(), usual=False)
    batch = rng.random(25)
    played = (v > 0.4).astype(float)  # following the forecast acts above 0.4
    errors = played * (y - v)
    means = np.array([errors[periods == t].mean() for t in range(12)])
    mean, between = errors.mean(), means.var(ddof=1)
    within = sum(((errors - means[periods]) ** 2)[periods == t].sum() for t in range(12)) / (480 - 12)
    t = stats.t(11).ppf(0.95)
    error = max(np.sqrt(between / 12), np.sqrt(within / 480))
    unseen = 2.0 / 480 * (within + between) / within * np.log(20)  # the range of an error is two
    radius = t * error + unseen
    promised = np.mean((batch > 0.4) * (batch - 0.4))
    more = {
        ("average", False): 0.0,
        ("average", True): within / 25,
        ("next period", False): between,
        ("next period", True): max(between + max(within * (1 / 25 - 1 / 40), 0), within / 25),
    }
    for (horizon, realised), chance in more.items():
        bound = advice.for_cases(batch, horizon=horizon, realised=realised)
        assert bound.lower == pytest.approx(promised + mean - np.sqrt(radius**2 + t**2 * chance), rel=1e-9)
        assert bound.confidence == 0.95
        same = advice.policy.certify(batch, horizon=horizon, realised=realised)
        assert same.to_dict() == bound.to_dict()


@pytest.mark.parametrize("recalibrated", [False, True])
def test_rules_keep_what_they_know_in_files(recalibrated: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    v, y, periods = periods_of(rng, 30, 60, 0.02)
    advice = prudent.advise(PROBLEM, v, y**3 if recalibrated else y, periods=periods)
    assert isinstance(advice.policy, prudent.RecalibratedPolicy) == recalibrated
    advice.policy.save(tmp_path / "rule.json")
    loaded = prudent.load(tmp_path / "rule.json")
    batch = rng.random(50)
    for horizon in ("average", "next period"):
        assert loaded.certify(batch, horizon=horizon).lower == advice.for_cases(batch, horizon=horizon).lower


def test_a_robust_policy_allows_for_more_in_the_next_period(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    v, y, periods = periods_of(rng, 10, 50, 0.05)
    policy = prudent.RobustPolicy(PROBLEM, "unbiased", slack="audit").fit(v, y, periods=periods)
    batch = rng.random(30)
    average, soon, chance = (
        policy.certify(batch, **given).lower
        for given in ({}, {"horizon": "next period"}, {"horizon": "next period", "realised": True})
    )
    assert average > soon > chance
    # The slack of the next period by plain arithmetic: one moment, the mean error.
    errors = y - v
    means = errors.reshape(10, 50).mean(axis=1)
    t = stats.t(9).ppf(0.975)
    past = policy.past_
    assert past is not None
    wider = np.sqrt(past.radii[0] ** 2 + t**2 * means.var(ddof=1))
    by_hand = copy(policy)
    by_hand.fitted_ = replace(policy.fitted_, slack=prudent.Slack([[wider]], "linf", [[errors.mean()]]))
    assert by_hand.certify(batch).lower == pytest.approx(soon, abs=1e-9)
    policy.save(tmp_path / "policy.json")
    assert prudent.load(tmp_path / "policy.json").certify(batch, horizon="next period").lower == soon
    table = duckdb.from_df(pd.DataFrame({"v": batch}))
    on_table = policy.certify(prudent.scan(table, "v"), horizon="next period", realised=True)
    assert on_table.lower == pytest.approx(chance, abs=1e-9)


def test_robust_policies_fitted_on_tables_know_periods() -> None:
    rng = np.random.default_rng(3)
    v, y, periods = periods_of(rng, 10, 50, 0.05)
    table = duckdb.from_df(pd.DataFrame({"v": v, "y": y, "t": periods}))
    fitted = prudent.RobustPolicy(PROBLEM, "unbiased", slack="audit")
    memory = prudent.RobustPolicy(PROBLEM, "unbiased", slack="audit").fit(v, y, periods=periods)
    found = fitted.fit(prudent.scan(table, "v", "y", periods="t"))
    batch = rng.random(30)
    assert found.certify(batch, horizon="next period").lower == pytest.approx(
        memory.certify(batch, horizon="next period").lower, abs=1e-6
    )


def test_nothing_is_below_the_worst_outcomes() -> None:
    rng = np.random.default_rng(4)
    v, y, periods = periods_of(rng, 4, 3, 0.5)
    advice = prudent.advise(PROBLEM, v, y, periods=periods)
    assert advice.for_cases([0.1, 0.2], horizon="next period", realised=True).lower == 0.0  # it waits
    assert advice.for_cases([0.9, 0.8], horizon="next period", realised=True).lower >= -0.4


def test_rewards_of_rows_count() -> None:
    rng = np.random.default_rng(5)
    v, y, periods = periods_of(rng, 10, 40, 0.02)
    worth = rng.uniform(1, 3, v.size)
    rewards = np.stack([np.zeros(v.size), worth], axis=1)
    advice = prudent.advise(PROBLEM, v, y, periods=periods, rewards=rewards, usual=False)
    batch, values = np.array([0.5, 0.9]), np.array([[0.0, 2.0], [0.0, 1.0]])
    bound = advice.for_cases(batch, rewards=values)
    assert advice.past is not None
    expected = np.mean([2 * 0.5 - 0.4, 0.9 - 0.4]) + advice.past.estimates[0] - advice.past.radii[0]
    assert bound.lower == pytest.approx(expected)
    with pytest.raises(InputError):
        advice.for_cases(batch, rewards=values[:1])


def test_what_is_not_known_is_not_said() -> None:
    rng = np.random.default_rng(6)
    v, y, periods = periods_of(rng, 3, 30, 0.02)
    with pytest.raises(InputError, match="does not know past outcomes"):
        prudent.PlugInPolicy(PROBLEM).certify(v)
    with pytest.raises(InputError, match="needs outcomes with periods"):
        prudent.advise(PROBLEM, v, y).for_cases(v, horizon="next period")
    few = prudent.advise(PROBLEM, v, y, periods=periods)
    assert few.next_period is None
    with pytest.raises(InputError, match="at least 4 periods; there are 3"):
        few.for_cases(v, horizon="next period")
    with pytest.raises(InputError, match="horizon must be one of 'average', 'next period'"):
        few.for_cases(v, horizon="next year")
    promised = prudent.RobustPolicy(PROBLEM, "unbiased", slack=0.1).fit(v)
    with pytest.raises(InputError, match="slack was promised"):
        promised.certify(v, realised=True)
    hedge = prudent.advise(PROBLEM, v, guarantee="unbiased", slack=0.3)
    assert hedge.for_cases(v).lower == pytest.approx(hedge.certificate.lower, abs=1e-6)


def test_ids_are_no_periods() -> None:
    rng = np.random.default_rng(7)
    v, y, people = periods_of(rng, 30, 8, 0.1)
    advice = prudent.advise(PROBLEM, prudent.Cases(v, y, ids=people))
    with pytest.raises(InputError, match="needs outcomes with periods"):
        advice.for_cases(v, horizon="next period")
    assert advice.for_cases(v, realised=True).lower < advice.for_cases(v).lower


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 8, 20])
@pytest.mark.parametrize("effect", [0.0, 0.03, 0.1])
def test_promises_are_kept(count: int, effect: float) -> None:
    kept = {"average": 0, "next period": 0}
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4])
    for seed in range(300):
        rng = np.random.default_rng([count, seed])
        v, y, periods = periods_of(rng, count, 30, effect)
        advice = prudent.advise(problem, v, y, periods=periods, usual=False)
        batch = rng.random(30)
        off = effect * rng.normal()
        came = np.clip(batch + off + 0.1 * rng.normal(size=30), 0, 1)
        promise = advice.for_cases(batch, horizon="next period", realised=True).lower
        kept["next period"] += np.mean((batch > 0.4) * (came - 0.4)) >= promise
        # In the long run effects and noise average out, but for what is cut off at the ends.
        many = np.random.default_rng(0)
        drawn = np.clip(batch + effect * many.normal(size=(2000, 1)) + 0.1 * many.normal(size=(2000, 30)), 0, 1)
        kept["average"] += np.mean((batch > 0.4) * (drawn - 0.4)) >= advice.for_cases(batch).lower
    # At 95% fewer than 276 of 300 have a probability of about one percent.
    assert min(kept.values()) >= 276, kept
