"""The monitor: evidence that may be looked at any time, outcomes in any order, a state that survives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
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
    assert {alarm.stream for alarm in monitor.alarms} == {"calibration", "utility", "moments"}
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
    assert monitor.n_repeated == 17
    assert monitor.n_outcomes == 134
    late = np.random.default_rng(6).permutation([i for i in range(300) if i % 3])
    monitor.add_outcomes([ids[i] for i in late], outcomes[late])
    monitor.add_outcomes([ids[i] for i in late[:5]], outcomes[late[:5]])
    assert monitor.n_outcomes == 300
    assert monitor.n_pending == 0
    assert monitor.n_repeated == 17 + 34 + 5
    everything = prudent.PolicyMonitor(policy).update(forecasts, outcomes)
    assert monitor.n_forecasts == everything.n_forecasts


def test_outcomes_before_their_forecast_wait(policy: prudent.RobustPolicy) -> None:
    monitor = prudent.PolicyMonitor(policy)
    monitor.add_outcomes([7, 8], [1.0, 0.0])
    assert monitor.n_outcomes == 0
    monitor.update([0.2, 0.9], ids=[7, 9])
    assert monitor.n_outcomes == 1
    assert (monitor.n_pending, monitor.n_early) == (1, 1)
    assert "1 outcomes without a forecast so far" in str(monitor)
    monitor.add_outcomes([8], [0.0])
    with pytest.warns(UserWarning, match="1 ids came with a second, different outcome; the first one counts: 8"):
        monitor.add_outcomes([8], [1.0])
    assert (monitor.n_repeated, monitor.n_conflicting) == (1, 1)
    assert "1 second outcomes that differ" in str(monitor)


def test_alarms_say_where() -> None:
    binned = prudent.RobustPolicy(COIN, guarantees.Bins(4)).fit((np.arange(2_000) + 0.5) / 2_000)
    forecasts, outcomes = calibrated(4_000)
    monitor = prudent.PolicyMonitor(binned).update(forecasts, outcomes * (forecasts < 0.75))
    alarm = next(alarm for alarm in monitor.alarms if alarm.stream == "moments")
    assert (alarm.moment, alarm.side) == ("v in [0.75, 1]", "lower")
    assert alarm.size == pytest.approx((forecasts >= 0.75) @ forecasts / 4_000, abs=0.02)


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
    assert resumed.n_repeated == straight.n_repeated


def test_damaged_files_are_refused(policy: prudent.RobustPolicy, tmp_path: Path) -> None:
    path = tmp_path / "monitor.json"
    prudent.PolicyMonitor(policy).save(path)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(FileFormatError, match="not readable JSON"):
        prudent.PolicyMonitor.load(path)
    path.write_text(text.replace('"n_repeated": 0', '"n_repeated": 1'))
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
    with pytest.raises(InputError, match="policy must be a Policy"):
        prudent.PolicyMonitor(COIN)
    with pytest.raises(InputError, match="a FixedRule of labels"):
        prudent.PolicyMonitor(prudent.FixedRule(COIN, labels=[0, 1]))
    own = prudent.RobustPolicy(COIN, SELF).fit([0.2, 0.4], costs=[[0.0, 0.1], [0.2, 0.0]])
    with pytest.raises(InputError, match="without rewards or costs per row"):
        prudent.PolicyMonitor(own)
    for guarantee, message in (("quantile-bins:3", "depend on a sample"), ("fully-calibrated", "must be finite")):
        with pytest.raises(InputError, match=message):
            prudent.PolicyMonitor(policy, guarantee=guarantee)
    with pytest.raises(InputError, match="tests that are bounded"):
        prudent.PolicyMonitor(prudent.PlugInPolicy(COIN), guarantee=guarantees.LogOdds())
    for wrong in ("text", [3], 5):
        with pytest.raises(InputError, match="hand_on must be"):
            prudent.PolicyMonitor(policy, hand_on=wrong)
    with pytest.raises(InputError, match="tolerance must be"):
        prudent.PolicyMonitor(policy, tolerance=-0.1)
    with pytest.raises(InputError, match="confidence must lie"):
        prudent.PolicyMonitor(policy, confidence=2)
    log_odds = prudent.RobustPolicy(COIN, guarantees.LogOdds()).fit([0.2, 0.4, 0.9])
    with pytest.raises(InputError, match="tests that are bounded"):
        prudent.PolicyMonitor(log_odds)
    with pytest.raises(InputError, match="leave these ids out"):
        prudent.PolicyMonitor(policy).add_outcomes(["a"], [None])
    with pytest.raises(InputError, match="outcomes must be one per id, 1; got None"):
        prudent.PolicyMonitor(policy).add_outcomes(["a"], None)


def test_several_classes() -> None:
    rng = np.random.default_rng(7)
    problem = prudent.DecisionProblem.from_payoffs(rng.normal(size=(4, 3)), classes=["a", "b", "c"])
    forecasts = rng.dirichlet(np.ones(3), 2_000)
    policy = prudent.RobustPolicy(problem, SELF).fit(forecasts)
    labels = np.array(["a", "b", "c"])[(rng.random((2_000, 1)) > np.cumsum(forecasts, axis=1)).sum(axis=1)]
    monitor = prudent.PolicyMonitor(policy).update(forecasts, labels)
    assert monitor.state is MonitorState.HOLDING
    worst = np.array(["a", "b", "c"])[(policy.fitted_.tilts(forecasts)).argmax(axis=1)]
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


def test_the_first_outcome_of_an_id_counts_also_before_its_forecast(policy: prudent.RobustPolicy) -> None:
    monitor = prudent.PolicyMonitor(policy).add_outcomes(["a"], [1.0])
    with pytest.warns(UserWarning, match="second, different outcome"):
        monitor.update([0.2], [0.0], ["a"])
    assert (monitor.n_outcomes, monitor.n_conflicting) == (1, 1)
    assert monitor.evidence == prudent.PolicyMonitor(policy).update([0.2], [1.0]).evidence


def shifted(n: int, shift: float, seed: int = 0, level: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts on [0, 1] of which half the space is not used, and outcomes with little spread around them."""
    rng = np.random.default_rng(seed)
    forecasts = level * rng.random(n)
    return forecasts, (forecasts + shift + rng.normal(0, 0.05, n)).clip(0, 1)


LEVELS = prudent.DecisionProblem([0.5, 1.0, 1.5, 2.0], [0.0, 0.1, 0.25, 0.5], actions=["a", "b", "c", "d"])
LESS = prudent.DecisionProblem([-1.0, -2.0], [0.3, 0.1])  # outcomes hurt
RULES = {
    "plug-in": prudent.PlugInPolicy,
    "safety": prudent.SafetyPolicy,
    "thresholds": lambda problem: prudent.FixedRule(problem, np.linspace(0, 1, problem.n_actions + 1)[1:-1]),
    "function": lambda problem: prudent.FixedRule(problem, function=lambda v: [problem.actions[0]] * len(v)),
    "recalibrated": lambda problem: prudent.RecalibratedPolicy(
        prudent.recalibration.ScalingCalibrator("affine").fit([0.0, 0.5, 1.0], [0.0, 0.5, 1.0]),
        prudent.PlugInPolicy(problem),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_shift_that_helps_and_one_that_hurts_are_seen_for_any_rule(rule: str) -> None:
    for problem, helps in ((LEVELS, True), (LESS, False)):
        monitor = prudent.PolicyMonitor(RULES[rule](problem), tolerance=0.02).update(*shifted(200, 0.0))
        assert monitor.state is MonitorState.HOLDING
        monitor.update(*shifted(60, 0.12, seed=1), time="week 9")
        off = {alarm.stream: alarm for alarm in monitor.alarms}
        assert ("utility" in off) == (not helps)
        alarm = off["moments"]
        assert (alarm.moment, alarm.side, alarm.time) == ("1", "higher", "week 9")
        assert 200 < alarm.row <= 230
        assert abs(alarm.since - 200) <= 3
        assert alarm.size == pytest.approx(0.12, abs=0.03)
        assert "outcomes are higher than forecast by about 0.1" in str(monitor)
        assert "Ask prudent.advise on recent cases" in str(monitor)
    monitor = prudent.PolicyMonitor(RULES[rule](LEVELS), tolerance=0.02).update(*shifted(60, -0.12, level=1.0))
    assert {(alarm.stream, alarm.side) for alarm in monitor.alarms} == {("utility", None), ("moments", "lower")}


def test_a_recalibrated_robust_policy_is_watched_where_it_decides() -> None:
    forecasts, outcomes = calibrated(3_000)
    recalibrator = prudent.recalibration.ScalingCalibrator("affine").fit([0.0, 0.5, 1.0], [0.2, 0.5, 0.8])
    own = recalibrator.transform(forecasts)
    robust = prudent.RobustPolicy(COIN, SELF).fit(own)
    behind = prudent.PolicyMonitor(prudent.RecalibratedPolicy(recalibrator, robust)).update(forecasts, outcomes)
    assert behind.evidence == prudent.PolicyMonitor(robust).update(own, outcomes).evidence
    assert set(behind.evidence) == {"forecast drift", "calibration", "utility", "moments"}


def test_moments_that_are_watched_may_be_given() -> None:
    rule = prudent.PlugInPolicy(COIN)
    forecasts = np.tile([0.3, 0.7], 400)
    outcomes = np.tile([0.1, 0.9], 400)  # right on average, and too timid
    monitor = prudent.PolicyMonitor(rule, tolerance=0.1, guarantee="bins:2").update(forecasts, outcomes)
    assert [(alarm.stream, alarm.side) for alarm in monitor.alarms] == [("moments", "higher")] or [
        alarm.moment for alarm in monitor.alarms
    ] == ["v in [0, 0.5)"]
    assert "weighted by v in [" in str(monitor)


def test_a_moment_within_slack_and_tolerance_is_not_off() -> None:
    forecasts, outcomes = shifted(4_000, 0.05)
    for problem in (LEVELS, LESS):
        rule = prudent.PlugInPolicy(problem)
        spread = float(np.ptp(problem.rewards))
        for share, off in ((0.06, False), (0.03, True)):
            monitor = prudent.PolicyMonitor(rule, tolerance=share * spread).update(forecasts, outcomes)
            assert ("moments" in {alarm.stream for alarm in monitor.alarms}) == off
    fitted = prudent.RobustPolicy(LEVELS, "unbiased", slack=0.06).fit(forecasts)
    loose = prudent.PolicyMonitor(fitted, tolerance=0.001).update(forecasts, outcomes)
    assert "moments" not in {alarm.stream for alarm in loose.alarms}
    exact = prudent.RobustPolicy(LEVELS, "unbiased", slack=0.01).fit(forecasts)
    strict = prudent.PolicyMonitor(exact, tolerance=0.001).update(forecasts, outcomes)
    assert "moments" in {alarm.stream for alarm in strict.alarms}


def test_what_is_only_right_on_average_keeps_the_guarantee_of_a_robust_policy() -> None:
    """Stakes that grow where the forecast is low would find these forecasts too low."""
    rng = np.random.default_rng(8)
    fitted = prudent.RobustPolicy(COIN, "unbiased").fit(rng.random(500))
    low = rng.random(4_000) < 0.5
    forecasts = np.where(low, 0.02, 0.98)
    outcomes = np.where(low, 0.22, 0.78)
    assert "moments" not in {a.stream for a in prudent.PolicyMonitor(fitted).update(forecasts, outcomes).alarms}
    believed = prudent.PolicyMonitor(prudent.PlugInPolicy(COIN)).update(forecasts, outcomes)
    assert "moments" in {alarm.stream for alarm in believed.alarms}


def false_alarms(monitors: list[prudent.PolicyMonitor], looks: int) -> int:
    """How many of the monitors raise an alarm on calibrated forecasts of a yes or no."""
    rng = np.random.default_rng(0)
    for monitor in monitors:
        forecasts = rng.beta(1, 4, looks)
        monitor.update(forecasts, (rng.random(looks) < forecasts).astype(float))
    return sum(bool(monitor.alarms) for monitor in monitors)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["plug-in", "robust"])
def test_false_alarms_are_rare_over_ten_thousand_looks(rule: str) -> None:
    """At most 20% are allowed; tests that do not allow for looking raise them nearly always."""
    policy = prudent.PlugInPolicy(COIN)
    if rule == "robust":
        policy = prudent.RobustPolicy(COIN, "unbiased").fit(np.random.default_rng(1).beta(1, 4, 20_000))
    monitors = [prudent.PolicyMonitor(policy, tolerance=0.0, confidence=0.8) for _ in range(200)]
    assert false_alarms(monitors, 10_000) <= 40


def test_false_alarms_are_rare() -> None:
    monitors = [prudent.PolicyMonitor(prudent.PlugInPolicy(COIN), tolerance=0.0, confidence=0.7) for _ in range(200)]
    assert false_alarms(monitors, 400) <= 60


def test_outcomes_are_handed_on_once() -> None:
    rule = prudent.PlugInPolicy(COIN)
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    monitor = prudent.PolicyMonitor(rule, hand_on=[calibrator])
    forecasts, outcomes = calibrated(40)
    calibrator.predict(range(20), forecasts[:20])
    monitor.update(forecasts[:20], ids=range(20))
    monitor.add_outcomes(range(30), outcomes[:30])  # ten of them early: they wait, and the calibrator is not asked yet
    assert (calibrator.n_steps_, calibrator.n_unknown_) == (20, 0)
    with pytest.warns(UserWarning, match="second, different outcome"):
        monitor.add_outcomes([3, 4], [outcomes[3], 1 - outcomes[4]])
    with pytest.raises(InputError, match="outcomes must lie in"):
        monitor.add_outcomes([35, 36], [1.0, 7.0])
    with pytest.raises(InputError, match="ids must be given where outcomes are handed on"):
        monitor.update([0.5], [1.0])
    assert (calibrator.n_steps_, calibrator.n_repeated_, calibrator.n_conflicting_) == (20, 0, 0)
    calibrator.predict(range(20, 40), forecasts[20:])
    monitor.update(forecasts[20:], outcomes[20:], range(20, 40))
    assert (calibrator.n_steps_, calibrator.n_repeated_, monitor.n_repeated) == (40, 0, 11)
    alone = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    for part in (range(20), range(20, 40)):
        alone.predict(part, forecasts[part])
        alone.update(part, outcomes[part])
    np.testing.assert_array_equal(alone.errors_[0], calibrator.errors_[0])


class Refusing:
    def update(self, ids: list[object], outcomes: list[object]) -> None:
        raise InputError("not today")


def test_where_handing_on_or_a_rule_fails_nothing_changes() -> None:
    rule = prudent.FixedRule(COIN, function=lambda v: [0] * len(v) if v.max() < 0.9 else ["wrong"])
    monitor = prudent.PolicyMonitor(rule).update([0.2], ids=["a"])
    before = repr(monitor), dict(monitor._ledger.rows)
    with pytest.raises(InputError, match="labels must be"):
        monitor.update([0.2, 0.95], [0.0, 1.0], ids=["b", "c"])
    monitor.hand_on = [Refusing()]
    with pytest.raises(InputError, match="not today"):
        monitor.add_outcomes(["a"], [1.0])
    assert (repr(monitor), dict(monitor._ledger.rows)) == before


@pytest.mark.parametrize("rule", ["plug-in", "thresholds", "recalibrated"])
def test_monitors_of_any_rule_are_saved(rule: str, tmp_path: Path) -> None:
    monitor = prudent.PolicyMonitor(RULES[rule](LESS), tolerance=0.02, guarantee="unbiased+bins:3")
    monitor.update(*shifted(50, 0.12), ids=range(50)).update([0.2], ids=["waits"]).add_outcomes(["early"], [0.4])
    monitor.save(tmp_path / "monitor.json")
    resumed = prudent.PolicyMonitor.load(tmp_path / "monitor.json")
    assert str(resumed) == str(monitor)
    for each in (monitor, resumed):
        each.add_outcomes(["waits"], [0.9]).update(*shifted(50, 0.12, seed=1), ids=range(100, 150))
    assert resumed.to_dict() == monitor.to_dict()
    with pytest.raises(InputError, match="cannot be saved"):
        prudent.PolicyMonitor(RULES["function"](LESS)).save(tmp_path / "function.json")


def test_tables_are_refused() -> None:
    table = pl.LazyFrame({"f": [0.5], "y": [1.0]})
    with pytest.raises(InputError, match="in the order of time; read a table a part at a time"):
        prudent.PolicyMonitor(prudent.PlugInPolicy(COIN)).update(prudent.scan(table, "f", "y"))
