"""The monitor: evidence that may be looked at any time, outcomes in any order, a state that survives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.errors import FileFormatError, InputError
from prudent.monitoring import MonitorState

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
SELF = guarantees.SelfOrthogonal()


@pytest.fixture(scope="module")
def policy() -> prudent.RobustPolicy:
    return prudent.RobustPolicy(COIN, SELF).fit((np.arange(2_000) + 0.5) / 2_000)


def calibrated(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < forecasts).astype(float)


def test_holding_and_broken_are_told_apart(policy: prudent.RobustPolicy) -> None:
    monitor = prudent.PolicyMonitor(policy, tolerance=0.03)
    assert monitor.state is MonitorState.HOLDING
    monitor.update(*calibrated(4_000))
    assert monitor.state is MonitorState.HOLDING
    assert str(monitor).startswith("holding: 4,000 forecasts, 4,000 outcomes")
    forecasts, outcomes = calibrated(4_000, seed=2)
    monitor.update(forecasts, outcomes * (forecasts < 0.7), time="week 2")
    assert monitor.state is MonitorState.BROKEN
    first = monitor.alarms[0]
    assert first.stream == "calibration"
    assert 4_000 < first.row <= 6_000
    assert 3_500 < first.since < first.row
    assert first.size > 0.05
    assert first.time == "week 2"
    assert "week 2" in str(monitor)
    monitor.update(*calibrated(2_000, seed=3))
    assert monitor.state is MonitorState.BROKEN  # an alarm stays


def test_forecast_drift_needs_no_outcomes(policy: prudent.RobustPolicy) -> None:
    monitor = prudent.PolicyMonitor(policy, tolerance=0.03)
    monitor.update(0.45 + 0.1 * np.random.default_rng(4).random(3_000))  # where the decision is hard
    assert [alarm.stream for alarm in monitor.alarms] == ["forecast drift"]
    assert monitor.n_outcomes == 0


def test_warning_lies_between(policy: prudent.RobustPolicy) -> None:
    monitor = prudent.PolicyMonitor(policy, tolerance=0.03)
    states = []
    for value in 0.45 + 0.1 * np.random.default_rng(5).random(400):
        states.append(monitor.update([value]).state)
        if states[-1] is MonitorState.BROKEN:
            break
    order = [MonitorState.HOLDING, MonitorState.WARNING, MonitorState.BROKEN]
    assert [state for state in order if state in states] == order


def test_batches_do_not_matter(policy: prudent.RobustPolicy) -> None:
    forecasts, outcomes = calibrated(1_000)
    outcomes = outcomes * (forecasts < 0.7)
    whole = prudent.PolicyMonitor(policy).update(forecasts, outcomes)
    pieces = prudent.PolicyMonitor(policy)
    for part in np.array_split(np.arange(1_000), 37):
        pieces.update(forecasts[part], outcomes[part])
    for name, value in whole.evidence.items():
        assert pieces.evidence[name] == pytest.approx(value, abs=1e-9)
    assert [alarm.row for alarm in pieces.alarms] == [alarm.row for alarm in whole.alarms]


def test_late_and_repeated_outcomes(policy: prudent.RobustPolicy) -> None:
    forecasts, outcomes = calibrated(300)
    ids = [f"order {i}" for i in range(300)]
    monitor = prudent.PolicyMonitor(policy)
    partly = [None if i % 3 else outcomes[i] for i in range(300)]
    monitor.update(forecasts, partly, ids)
    assert monitor.n_forecasts == 300
    assert monitor.n_outcomes == 100
    assert monitor.n_pending == 200
    monitor.update(forecasts[:51], outcomes[:51], ids[:51])  # the same rows again, now all with outcomes
    assert monitor.n_forecasts == 300
    assert monitor.n_duplicates == 17
    assert monitor.n_outcomes == 134
    late = np.random.default_rng(6).permutation([i for i in range(300) if i % 3])
    monitor.add_outcomes([ids[i] for i in late], outcomes[late])
    monitor.add_outcomes([ids[i] for i in late[:5]], outcomes[late[:5]])
    assert monitor.n_outcomes == 300
    assert monitor.n_pending == 0
    assert monitor.n_duplicates == 17 + 34 + 5
    everything = prudent.PolicyMonitor(policy).update(forecasts, outcomes)
    np.testing.assert_allclose(monitor.moments()["estimate"], everything.moments()["estimate"], atol=1e-15)


def test_outcomes_before_their_forecast_wait(policy: prudent.RobustPolicy) -> None:
    monitor = prudent.PolicyMonitor(policy)
    monitor.add_outcomes([7, 8], [1.0, 0.0])
    assert monitor.n_outcomes == 0
    monitor.update([0.2, 0.9], ids=[7, 9])
    assert monitor.n_outcomes == 1
    monitor.add_outcomes([8], [1.0])
    assert monitor.n_duplicates == 1  # the first one counts


def test_moments_say_where(policy: prudent.RobustPolicy) -> None:
    binned = prudent.RobustPolicy(COIN, guarantees.Bins(4)).fit((np.arange(2_000) + 0.5) / 2_000)
    forecasts, outcomes = calibrated(4_000)
    monitor = prudent.PolicyMonitor(binned).update(forecasts, outcomes * (forecasts < 0.75))
    table = monitor.moments()
    off = [name for name, high in zip(table["moment"], table["upper"], strict=True) if high < 0]
    assert off == ["v in [0.75, 1]"]
    inside = forecasts >= 0.75
    assert table["estimate"][3] == pytest.approx((inside * (0 - forecasts)).mean())


def test_saved_monitors_go_on(policy: prudent.RobustPolicy, tmp_path: Path) -> None:
    forecasts, outcomes = calibrated(600)
    outcomes = outcomes * (forecasts < 0.6)
    ids = list(range(600))
    straight = prudent.PolicyMonitor(policy, tolerance=0.03)
    straight.update(forecasts[:300], outcomes[:300], ids[:300]).update(forecasts[300:], None, ids[300:])
    straight.add_outcomes([1_000], [1.0])
    path = tmp_path / "monitor.json"
    straight.save(path)
    resumed = prudent.PolicyMonitor.load(path)
    assert str(resumed) == str(straight)
    for monitor in (straight, resumed):
        monitor.add_outcomes(ids[300:], outcomes[300:]).update([0.5], None, [1_000])
    assert resumed.evidence == straight.evidence
    assert resumed.alarms == straight.alarms
    assert resumed.n_duplicates == straight.n_duplicates
    np.testing.assert_array_equal(resumed.moments()["estimate"], straight.moments()["estimate"])


def test_damaged_files_are_refused(policy: prudent.RobustPolicy, tmp_path: Path) -> None:
    path = tmp_path / "monitor.json"
    prudent.PolicyMonitor(policy).save(path)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(FileFormatError, match="not readable JSON"):
        prudent.PolicyMonitor.load(path)
    path.write_text(text.replace('"n_duplicates": 0', '"n_duplicates": 1'))
    with pytest.raises(FileFormatError, match="altered"):
        prudent.PolicyMonitor.load(path)
    policy.save(path)
    with pytest.raises(FileFormatError, match="not a prudent-monitor file"):
        prudent.PolicyMonitor.load(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 2.0],), "forecasts must lie in"),
        (([0.5], [0.5, 0.5]), "outcomes must have one row per forecast"),
        (([0.5, 0.5], [1.0, None]), "give ids"),
        (([0.5], None, ["a", "b"]), "ids must have one entry per forecast"),
        (([0.5], None, [0.5]), "ids must be strings or whole numbers"),
        (([0.5], [7.0]), "outcomes must lie in"),
    ],
)
def test_what_is_refused_leaves_no_trace(
    policy: prudent.RobustPolicy, arguments: tuple[object, ...], message: str, tmp_path: Path
) -> None:
    monitor = prudent.PolicyMonitor(policy).update([0.3, 0.6], [0.0, 1.0], ["x", "y"])
    monitor.save(tmp_path / "before.json")
    with pytest.raises(InputError, match=message):
        monitor.update(*arguments)
    monitor.save(tmp_path / "after.json")
    assert (tmp_path / "after.json").read_text() == (tmp_path / "before.json").read_text()


def test_bad_monitors_are_refused(policy: prudent.RobustPolicy) -> None:
    with pytest.raises(InputError, match="policy must be a RobustPolicy"):
        prudent.PolicyMonitor(prudent.PlugInPolicy(COIN))
    with pytest.raises(InputError, match="tolerance must be"):
        prudent.PolicyMonitor(policy, tolerance=-0.1)
    with pytest.raises(InputError, match="confidence must lie"):
        prudent.PolicyMonitor(policy, confidence=2)
    log_odds = prudent.RobustPolicy(COIN, guarantees.LogOdds()).fit([0.2, 0.4, 0.9])
    with pytest.raises(InputError, match="tests are bounded"):
        prudent.PolicyMonitor(log_odds)
    with pytest.raises(InputError, match="leave these ids out"):
        prudent.PolicyMonitor(policy).add_outcomes(["a"], [None])


def test_several_classes() -> None:
    rng = np.random.default_rng(7)
    problem = prudent.DecisionProblem.from_payoffs(rng.normal(size=(4, 3)), classes=["a", "b", "c"])
    forecasts = rng.dirichlet(np.ones(3), 2_000)
    policy = prudent.RobustPolicy(problem, SELF).fit(forecasts)
    labels = np.array(["a", "b", "c"])[(rng.random((2_000, 1)) > np.cumsum(forecasts, axis=1)).sum(axis=1)]
    monitor = prudent.PolicyMonitor(policy).update(forecasts, labels)
    assert monitor.state is MonitorState.HOLDING
    worst = np.array(["a", "b", "c"])[(policy._tilts(forecasts)).argmax(axis=1)]
    assert monitor.update(forecasts, worst).state is MonitorState.BROKEN


def test_slack_of_regions_that_nobody_uses_is_no_drift() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem([1.0, -1.0, 8.0], [0.0, -1.0, 7.4])  # the third action is never best
    policy = prudent.RobustPolicy(problem, guarantees.DecisionCalibrated(problem), slack=0.05).fit(rng.random(2_000))
    assert prudent.PolicyMonitor(policy, tolerance=0.05).update(rng.random(200)).alarms == ()


def test_a_monitor_keeps_the_policy_that_it_was_given() -> None:
    rng = np.random.default_rng(0)
    policy = prudent.RobustPolicy(COIN, SELF).fit(rng.random(2_000))
    monitor = prudent.PolicyMonitor(policy)
    policy.fit(0.3 * rng.random(500))
    x = 0.7 + 0.3 * rng.random(2_000)
    monitor.update(x, (rng.random(2_000) < x).astype(float), ids=range(2_000))
    assert monitor.n_outcomes == 2_000


def test_an_outcome_may_come_with_its_row_again() -> None:
    policy = prudent.RobustPolicy(COIN, SELF).fit(np.random.default_rng(0).random(500))
    monitor = prudent.PolicyMonitor(policy)
    monitor.update([0.3], ids=["a"]).update([0.3], [1.0], ids=["a"])
    assert (monitor.n_pending, monitor.n_outcomes, monitor.n_forecasts) == (0, 1, 1)
    monitor.update([0.4, 0.4], [np.nan, 1.0], ids=["b", "b"])
    assert (monitor.n_pending, monitor.n_outcomes, monitor.n_forecasts) == (0, 2, 2)


def test_without_rows_nothing_is_known_about_moments() -> None:
    policy = prudent.RobustPolicy(COIN, SELF).fit(np.random.default_rng(0).random(100))
    assert np.isnan(prudent.PolicyMonitor(policy).moments()["upper"]).all()


def test_the_first_outcome_of_an_id_counts_also_before_its_forecast(policy: prudent.RobustPolicy) -> None:
    monitor = prudent.PolicyMonitor(policy).add_outcomes(["a"], [1.0]).update([0.2], [0.0], ["a"])
    assert (monitor.n_outcomes, monitor.n_duplicates) == (1, 1)
    assert monitor.evidence == prudent.PolicyMonitor(policy).update([0.2], [1.0]).evidence
