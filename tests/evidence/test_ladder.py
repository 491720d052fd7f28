"""The ladder: every rung is worth what its policy can guarantee."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import guarantees
from prudent.errors import InputError

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


def rows(n: int, seed: int = 0, skew: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < forecasts * skew).astype(float)


def test_every_rung_is_certified() -> None:
    forecasts, outcomes = rows(2_000, skew=0.8)
    ladder = prudent.guarantee_ladder(COIN, forecasts, outcomes)
    assert [rung.name for rung in ladder.rungs] == [
        "nothing",
        "unbiased",
        "self-orthogonal",
        "bins",
        "utility-calibrated",
        "decision-calibrated",
    ]
    for rung in ladder.rungs:
        worst = prudent.worst_case(rung.policy, forecasts, guarantee=rung.guarantee, slack=rung.policy.slack_)
        assert rung.guaranteed == pytest.approx(worst.value, abs=2e-6)
        assert rung.nominal + rung.given_up == pytest.approx(COIN.value(forecasts).mean())
        played = rung.policy.predict_proba(forecasts)
        assert rung.realised == pytest.approx((played * COIN.utility(outcomes)).sum(axis=1).mean())
    assert ladder.best.guaranteed == max(rung.guaranteed for rung in ladder.rungs)
    assert not ladder.rungs[1].holds
    assert ladder.rungs[0].holds


def test_slacks_hold_over_all_rungs_at_once() -> None:
    forecasts, outcomes = rows(2_000)
    ladder = prudent.guarantee_ladder(COIN, forecasts, outcomes)
    alone = prudent.audit(None, forecasts, outcomes, guarantee=guarantees.Unbiased(), confidence=1 - 0.05 / 5)
    assert ladder.rungs[1].slack == pytest.approx(float(alone.measured.radii[0]))


def test_small_samples_are_not_rewarded() -> None:
    """Nothing is rejected on thirty rows; yet the strong guarantees are worth little there."""
    few = prudent.guarantee_ladder(COIN, *rows(30))
    many = prudent.guarantee_ladder(COIN, *rows(20_000))
    assert all(rung.holds for rung in few.rungs)
    assert few.best.guaranteed < many.best.guaranteed - 0.05


def test_own_guarantees_and_frames() -> None:
    forecasts, outcomes = rows(500)
    seen: list[str] = []
    ladder = prudent.guarantee_ladder(
        COIN,
        forecasts,
        outcomes,
        guarantees={"mean": guarantees.Unbiased(), "slope": guarantees.SelfOrthogonal()},
        progress=seen.append,
    )
    assert seen == ["mean", "slope"]
    assert list(ladder.to_frame()["guarantee"]) == ["mean", "slope"]
    assert f"Best choice: {ladder.best.name!r}" in str(ladder)
    listed = prudent.guarantee_ladder(COIN, forecasts, outcomes, guarantees=[guarantees.Unbiased()])
    assert listed.rungs[0].name == "Unbiased()"


def test_several_classes() -> None:
    rng = np.random.default_rng(4)
    problem = prudent.DecisionProblem.from_payoffs(rng.normal(size=(4, 3)))
    forecasts = rng.dirichlet(np.ones(3), 600)
    labels = (rng.random((600, 1)) > np.cumsum(forecasts, axis=1)).sum(axis=1)
    ladder = prudent.guarantee_ladder(problem, forecasts, labels)
    assert all(rung.policy.certificate_.status is prudent.solvers.Status.OPTIMAL for rung in ladder.rungs)


@pytest.mark.parametrize("given", [[], [guarantees.FullyCalibrated()], [guarantees.Unbiased()] * 2])
def test_bad_ladders_are_refused(given: list[object]) -> None:
    with pytest.raises(InputError, match=r"guarantees? must"):
        prudent.guarantee_ladder(COIN, *rows(50), guarantees=given)
    with pytest.raises(InputError, match="problem must be"):
        prudent.guarantee_ladder(None, *rows(50))


def test_measured_slack_keeps_its_confidence() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(2_000)
    y = (rng.random(2_000) < 0.8 * v).astype(float)
    ladder = prudent.guarantee_ladder(COIN, v, y, confidence=0.9)
    assert ladder.best.policy.slack_.confidence == 0.9
    assert prudent.confidence_certificate(ladder.best.policy, rng.random(500)).confidence == pytest.approx(0.85)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_audit_of_the_best_has_the_slack_of_the_ladder(wrong: bool) -> None:
    rng = np.random.default_rng(3)
    forecasts = rng.random(2_000)
    outcomes = (rng.random(2_000) < (1 - forecasts if wrong else forecasts)).astype(float)
    ladder = prudent.guarantee_ladder(COIN, forecasts, outcomes, confidence=0.9)
    assert ladder.rung_confidence == pytest.approx(1 - 0.1 / 5)
    audit = prudent.audit(COIN, forecasts, outcomes, guarantee=ladder.best.guarantee, confidence=ladder.rung_confidence)
    slack = np.max(audit.centered_slack.radius, initial=0.0)
    assert slack == pytest.approx(ladder.best.slack)


def test_a_few_rows_stand_on_nothing() -> None:
    """Where nothing can be measured, the rung without a promise is the best, and it can be audited, too."""
    rows = [0.5, 0.6, 0.4], [1.0, 0.0, 1.0]
    ladder = prudent.guarantee_ladder(COIN, *rows)
    assert ladder.best.name == "nothing"
    audit = prudent.audit(COIN, *rows, guarantee=ladder.best.guarantee, confidence=ladder.rung_confidence)
    assert audit.moment_names == audit.rejected == ()
    assert audit.p_value == 1.0
    assert "no moments" in str(audit.measured)


def test_periods_are_the_units_of_every_rung() -> None:
    """No guarantee at all included: it has no moments to add up."""
    rng = np.random.default_rng(0)
    v, periods = rng.random(400), np.repeat(np.arange(10), 40)
    frame = pd.DataFrame({"v": v, "y": (rng.random(400) < v).astype(float), "t": periods})
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4])
    found = prudent.guarantee_ladder(problem, v, frame["y"], periods=periods)
    table = prudent.scan(duckdb.from_df(frame), "v", "y", periods="t")
    assert found.rungs[0].name == "nothing"
    for here, there in zip(found.rungs, prudent.guarantee_ladder(problem, table).rungs, strict=True):
        assert there.slack == pytest.approx(here.slack, rel=1e-9)
        assert there.guaranteed == pytest.approx(here.guaranteed, abs=1e-6)
