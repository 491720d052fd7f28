"""Walking forward: advice on the past, a promise for the next period, and what came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import prudent
from prudent.errors import InputError

PROBLEM = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"], unit="EUR")


def periods_of(seed: int, count: int = 10, size: int = 60, bend: float = 1.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    periods = np.repeat(np.arange(count), size)
    v = rng.random(periods.size)
    return v, (rng.random(v.size) < v**bend).astype(float), periods


def test_every_period_is_decided_by_the_ones_before_it() -> None:
    v, y, periods = periods_of(0, bend=2.0)
    found = prudent.backtest(PROBLEM, v, y, periods=periods)
    assert found.periods == [str(t) for t in range(4, 10)]
    for place, now in enumerate(range(4, 10)):
        before, inside = periods < now, periods == now
        advice = prudent.advise(PROBLEM, v[before], y[before], periods=periods[before])
        promise = advice.for_cases(v[inside], horizon="next period", realised=True)
        utilities = np.stack([np.zeros(60), y[inside] - 0.4], axis=1)
        assert found.columns["verdict"][place] == advice.verdict.kind.value
        assert found.columns["promised"][place] == pytest.approx(promise.lower, rel=1e-12)
        played = advice.policy.predict_proba(v[inside])
        assert found.columns["realised"][place] == pytest.approx((played * utilities).sum(axis=1).mean())
        assert found.columns["rule_in_use"][place] == pytest.approx(((v[inside] > 0.4) * utilities[:, 1]).mean())
        recalibrated = advice.best_recalibrator()[1].transform(v[inside])[:, 0]
        assert found.columns["best_recalibration"][place] == pytest.approx(
            ((recalibrated > 0.4) * utilities[:, 1]).mean()
        )
    frame = found.to_frame()
    wanted = ["period", "cases", "verdict", "promised", "realised", "kept", "rule_in_use", "best_recalibration"]
    assert list(frame.columns) == wanted
    assert frame["kept"].tolist() == (found.columns["realised"] >= found.columns["promised"]).tolist()


def test_rows_in_any_order_and_dates() -> None:
    v, y, periods = periods_of(1)
    first = prudent.backtest(PROBLEM, v, y, periods=periods)
    order = np.random.default_rng(0).permutation(len(v))
    days = np.datetime64("2011-01-15") + periods.astype("timedelta64[D]") * 31
    other = prudent.backtest(PROBLEM, prudent.Cases(v[order], y[order], periods=days[order], every="month"))
    assert other.periods[0] == "2011-05-01"
    np.testing.assert_allclose(other.columns["promised"], first.columns["promised"], rtol=1e-9)
    np.testing.assert_allclose(other.columns["realised"], first.columns["realised"], rtol=1e-9)


def test_kept_has_the_interval_of_clopper_and_pearson() -> None:
    v, y, periods = periods_of(2, count=14, size=20)
    found = prudent.backtest(PROBLEM, v, y, periods=periods)
    broken = replace(found, by_period=found.columns | {"kept": found.columns["kept"] & (np.arange(10) >= 3)})
    k = round(broken.kept * 10)
    assert k <= 7
    low, high = stats.beta(k, 11 - k).ppf(0.025), stats.beta(k + 1, 10 - k).ppf(0.975)  # Clopper and Pearson
    assert broken.kept_interval == pytest.approx((low, high))
    assert prudent.backtest(PROBLEM, v, np.ones(len(v)), periods=periods).kept_interval[1] == 1.0


def test_windows_forget() -> None:
    v, y, periods = periods_of(3, count=12)
    late = np.where(periods >= 6, v < 0.5, y).astype(float)  # the forecaster turns around
    whole = prudent.backtest(PROBLEM, v, late, periods=periods)
    recent = prudent.backtest(PROBLEM, v, late, periods=periods, window=4)
    assert recent.columns["realised"][-1] > whole.columns["realised"][-1]


@pytest.mark.parametrize("kind", ["labels", "thresholds"])
def test_another_rule_in_use(kind: str) -> None:
    v, y, periods = periods_of(4, count=12, size=200)
    labels = np.where(v > 0.1, "act", "wait")
    rule: Any = labels if kind == "labels" else prudent.FixedRule(PROBLEM, thresholds=[0.1])
    found = prudent.backtest(PROBLEM, v, y, periods=periods, against=rule)
    used = (labels == "act") * (y - 0.4)
    np.testing.assert_allclose(found.columns["rule_in_use"], [used[periods == t].mean() for t in range(4, 12)])
    good = np.where(v > 0.4, "act", "wait") if kind == "labels" else prudent.FixedRule(PROBLEM, thresholds=[0.4])
    kept = prudent.backtest(PROBLEM, v, y, periods=periods, against=good)
    assert set(kept.columns["verdict"]) <= {"keep", "not_enough_data"}
    np.testing.assert_allclose(kept.columns["realised"], kept.columns["rule_in_use"])


def test_own_rewards_and_weights() -> None:
    v, y, periods = periods_of(5, size=40)
    rng = np.random.default_rng(5)
    worth, w = rng.uniform(1, 3, v.size), rng.uniform(0.5, 2, v.size)
    rewards = np.stack([np.zeros(v.size), worth], axis=1)
    found = prudent.backtest(PROBLEM, v, y, periods=periods, rewards=rewards, weights=w)
    used = (worth * v > 0.4) * (worth * y - 0.4)
    for place, now in enumerate(range(4, 10)):
        assert found.columns["rule_in_use"][place] == pytest.approx(
            np.average(used[periods == now], weights=w[periods == now])
        )


def test_tables_and_progress() -> None:
    v, y, periods = periods_of(6, count=6, size=30)
    table = duckdb.from_df(pd.DataFrame({"v": v, "y": y, "t": periods}))
    seen: list[str] = []
    found = prudent.backtest(PROBLEM, prudent.scan(table, "v", "y", periods="t"), progress=seen.append)
    assert seen == ["1 of 2", "2 of 2"]
    same = prudent.backtest(PROBLEM, v, y, periods=periods)
    np.testing.assert_allclose(found.columns["promised"], same.columns["promised"], rtol=1e-9)
    assert "Promises with 95% confidence were kept in" in str(found)
    assert "EUR a case" in found.sentence


def test_what_cannot_be_walked_is_refused() -> None:
    v, y, periods = periods_of(7, count=4, size=10)
    with pytest.raises(InputError, match="at least 5 periods with outcomes; there are 4"):
        prudent.backtest(PROBLEM, v, y, periods=periods)
    with pytest.raises(InputError, match="needs outcomes and periods"):
        prudent.backtest(PROBLEM, v, y)
    with pytest.raises(InputError, match="needs outcomes and periods"):
        prudent.backtest(PROBLEM, v, periods=periods)
    v, y, periods = periods_of(7, count=6, size=10)
    with pytest.raises(InputError, match="window must be a whole number of periods, at least 4"):
        prudent.backtest(PROBLEM, v, y, periods=periods, window=2)
    some = periods.astype(object)
    some[3] = None
    with pytest.raises(InputError, match="row 3"):
        prudent.backtest(PROBLEM, v, y, periods=some)
    mixed: list[Any] = ["a", *periods[1:].tolist()]
    with pytest.raises(InputError, match="must have an order"):
        prudent.backtest(PROBLEM, v, y, periods=mixed)


def test_a_period_of_one_row() -> None:
    v, y, periods = periods_of(8, count=7, size=20)
    periods[-1] = 99
    found = prudent.backtest(PROBLEM, v, y, periods=periods)
    assert found.columns["cases"].tolist() == [20, 20, 19, 1]
    assert found.columns["promised"][-1] < found.columns["promised"][-2]


def test_labels_of_all_rows_may_come_as_a_rule() -> None:
    v, y, periods = periods_of(4, count=6, size=50)
    labels = np.where(v > 0.1, "act", "wait")
    found, same = (
        prudent.backtest(PROBLEM, v, y, periods=periods, against=rule)
        for rule in (prudent.FixedRule(PROBLEM, labels=labels), labels)
    )
    assert found.to_dict() == same.to_dict()
