"""The audit's surface: what it says, what it feeds into policies, and what it refuses."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from prudent import guarantees
from prudent.errors import InputError
from solutions import solution_of

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
SELF = guarantees.SelfOrthogonal()


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    forecasts = rng.random(2_000)
    return forecasts, (rng.random(2_000) < forecasts).astype(float)


def test_table(rows: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = rows
    result = prudent.audit(None, forecasts, outcomes, guarantee=guarantees.Bins(5))
    frame = result.to_frame()
    assert list(frame["moment"]) == list(result.moment_names)
    inside = (forecasts >= 0.2) & (forecasts < 0.4)
    assert frame["estimate"][1] == pytest.approx((inside * (outcomes - forecasts)).mean())
    assert (frame["lower"] <= frame["estimate"]).all()
    assert isinstance(result.to_frame("polars"), pl.DataFrame)
    assert str(result).startswith(result.sentence)
    assert all(name in str(result) for name in result.moment_names)


def test_rejected_moments_are_named(rows: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = rows
    wrong = np.where(forecasts > 0.8, 0.0, outcomes)
    result = prudent.audit(None, forecasts, wrong, guarantee=guarantees.Bins(5))
    assert result.rejected == ("v in [0.8, 1]",)
    assert result.p_value < 1e-6
    lower, upper = result.intervals[4]
    assert result.sentence.startswith("The guarantee is violated: the moment 'v in [0.8, 1]' is -")
    assert f"between {lower:.3g} and {upper:.3g}" in result.sentence
    assert result.sentence.endswith("outcomes lie below forecasts.")
    held = prudent.audit(None, forecasts, outcomes, guarantee=guarantees.Bins(5))
    assert held.rejected == ()
    assert held.sentence == "No violation of the guarantee is found."


def test_by_default_the_mean_and_the_utility_promised(rows: tuple[np.ndarray, np.ndarray]) -> None:
    assert prudent.audit(None, *rows).guarantee == guarantees.Unbiased()
    found = prudent.audit(COIN, *rows)
    assert found.guarantee == guarantees.Unbiased() & guarantees.UtilityCalibrated((COIN,))
    forecasts, outcomes = rows
    owed = COIN.rewards[COIN.best_response(forecasts[:, None]), 0] * (outcomes - forecasts)
    np.testing.assert_allclose(found.estimates, [(outcomes - forecasts).mean(), owed.mean()], atol=1e-15)


def test_the_order_of_a_conjunction_does_not_matter(rows: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = rows[0], rows[1]
    parts = guarantees.UtilityCalibrated(COIN), guarantees.Bins(30)  # of which few rows carry some
    one, other = (
        prudent.audit(COIN, forecasts, outcomes, guarantee=first & second) for first, second in (parts, parts[::-1])
    )
    assert {"t", "betting"} == set(one.measured.methods)
    assert sorted(zip(*one.columns.values(), strict=True)) == sorted(zip(*other.columns.values(), strict=True))
    policies = [
        prudent.RobustPolicy(COIN, found.guarantee, slack="audit").fit(forecasts, outcomes) for found in (one, other)
    ]
    assert policies[0].certificate_.lower == pytest.approx(policies[1].certificate_.lower, abs=2e-6)


def test_the_trials_interval_is_short() -> None:
    """398 patients, a missed cancer ten times as bad: half as long as the stakes, where it was four times as long."""
    data, target = load_breast_cancer(return_X_y=True)
    sick = 1 - target
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    chosen = train_test_split(np.arange(569), train_size=398, random_state=0, stratify=target)[0]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    forecasts = cross_val_predict(model, data[chosen], sick[chosen], cv=folds, method="predict_proba")
    problem = prudent.DecisionProblem.from_payoffs([[0.0, -10.0], [-1.0, 0.0]])
    found = prudent.audit(problem, forecasts, sick[chosen], guarantee=guarantees.UtilityCalibrated(problem))
    assert found.n_rows == 398
    assert found.rejected == ()
    assert 0.05 < found.measured.radii[0] < 0.25
    lower, upper = found.intervals[0]
    assert upper - lower < 0.35


@pytest.mark.parametrize("guarantee", [SELF, guarantees.Polynomial(3), guarantees.UtilityCalibrated(COIN)])
def test_slack_goes_into_a_policy(rows: tuple[np.ndarray, np.ndarray], guarantee: guarantees.Guarantee) -> None:
    forecasts, outcomes = rows
    result = prudent.audit(None, forecasts, outcomes, guarantee=guarantee)
    around_zero = prudent.RobustPolicy(COIN, guarantee, slack=result.slack).fit(forecasts)
    audited = prudent.RobustPolicy(COIN, guarantee, slack="audit").fit(forecasts, outcomes)
    again = prudent.RobustPolicy(COIN, guarantee, slack=prudent.Slack("audit")).fit(forecasts, outcomes)
    assert audited.certificate_ == again.certificate_
    measured = prudent.RobustPolicy(COIN, guarantee, slack=result.centered_slack).fit(forecasts)
    assert audited.certificate_.lower == pytest.approx(measured.certificate_.lower, abs=1e-6)
    assert audited.certificate_.lower >= around_zero.certificate_.lower - 1e-9  # the smaller set
    assert "confidence 95%" in audited.certificate_.message
    assert audited.slack_.confidence == 0.95


def test_slack_is_in_units_of_outcomes() -> None:
    rng = np.random.default_rng(1)
    space = prudent.Box(0.0, 100.0)
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -100.0], space=space)
    forecasts = 100 * rng.random(2_000)
    outcomes = np.clip(forecasts + rng.normal(size=2_000), 0, 100)
    result = prudent.audit(space, forecasts, outcomes, guarantee=SELF)
    assert result.estimates[0] == pytest.approx((forecasts * (outcomes - forecasts)).mean() / 100)
    assert result.slack[0, 0] == pytest.approx(abs(result.estimates[0]) + result.measured.radii[0] / 100)
    policy = prudent.RobustPolicy(problem, SELF, slack=result.slack).fit(forecasts)
    moments = SELF.evaluate(forecasts[:, None], space).moments(
        solution_of(policy, forecasts).beliefs - forecasts[:, None], np.full(2_000, 1 / 2_000)
    )
    assert abs(moments[0]) <= 100 * abs(result.estimates[0]) + result.measured.radii[0] + 1e-6


def test_audited_policies_save_and_load(rows: tuple[np.ndarray, np.ndarray], tmp_path: object) -> None:
    forecasts, outcomes = rows
    path = f"{tmp_path}/policy.json"
    policy = prudent.RobustPolicy(COIN, SELF, slack=prudent.Slack("audit")).fit(forecasts, outcomes)
    policy.save(path)
    loaded = prudent.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(forecasts), policy.predict_proba(forecasts))
    assert loaded.slack_.confidence == 0.95
    assert loaded.slack_ == policy.slack_
    fresh = np.random.default_rng(2).random(500)
    assert prudent.confidence_certificate(loaded, fresh).lower == prudent.confidence_certificate(policy, fresh).lower


def test_class_labels_are_outcomes() -> None:
    rng = np.random.default_rng(3)
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3), classes=["cold", "mild", "hot"])
    forecasts = rng.dirichlet(np.ones(3), 500)
    index = rng.integers(0, 3, 500)
    names = np.array(["cold", "mild", "hot"])[index]
    by_name = prudent.audit(problem, forecasts, names, guarantee=guarantees.Unbiased())
    by_row = prudent.audit(problem, forecasts, np.eye(3)[index], guarantee=guarantees.Unbiased())
    np.testing.assert_array_equal(by_name.estimates, by_row.estimates)
    np.testing.assert_allclose(by_name.estimates, (np.eye(3)[index] - forecasts).mean(axis=0), atol=1e-15)
    with pytest.raises(InputError, match="must be among the classes"):
        prudent.audit(problem, forecasts, np.array(["warm"] * 500), guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("container", ["array", "list", "pandas", "polars"])
def test_missing_outcomes_are_counted_and_refused_unless_dropped(
    rows: tuple[np.ndarray, np.ndarray], container: str
) -> None:
    forecasts, outcomes = rows
    holes = outcomes.copy()
    holes[[3, 10, 500]] = np.nan
    held: object = {
        "array": holes,
        "list": [None if np.isnan(y) else y for y in holes],
        "pandas": pd.Series(holes),
        "polars": pl.Series([None if np.isnan(y) else y for y in holes]),
    }[container]
    with pytest.raises(InputError, match="outcomes are missing in rows 3, 10, 500"):
        prudent.audit(None, forecasts, held, guarantee=SELF)
    weights, groups = np.arange(1.0, 2_001.0), np.arange(2_000) // 4
    result = prudent.audit(None, forecasts, held, guarantee=SELF, missing="drop", weights=weights, periods=groups)
    kept = ~np.isnan(holes)
    expected = prudent.audit(
        None, forecasts[kept], outcomes[kept], guarantee=SELF, weights=weights[kept], periods=groups[kept]
    )
    np.testing.assert_allclose(result.estimates, expected.estimates, rtol=1e-12)
    np.testing.assert_allclose(result.measured.radii, expected.measured.radii, rtol=1e-9)
    assert result.n_dropped == 3
    assert "3 without outcome left out" in str(result)


def test_missing_labels() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.eye(2), classes=["no", "yes"])
    forecasts = np.full((4, 2), 0.5)
    with pytest.raises(InputError, match="missing in row 1"):
        prudent.audit(problem, forecasts, ["yes", None, "no", "no"], guarantee=guarantees.Unbiased())
    result = prudent.audit(
        problem, forecasts, ["yes", None, "no", "no"], guarantee=guarantees.Unbiased(), missing="drop"
    )
    assert result.n_rows == 3


def test_rows_of_weight_zero_take_no_part(rows: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = rows
    weights = (np.arange(2_000) % 2).astype(float)
    result = prudent.audit(None, forecasts, outcomes, guarantee=SELF, weights=weights)
    np.testing.assert_allclose(
        result.estimates, prudent.audit(None, forecasts[1::2], outcomes[1::2], guarantee=SELF).estimates
    )
    assert result.n_rows == 1_000


def test_constant_forecasts_are_judged_like_others() -> None:
    outcomes = np.tile([0.0, 1.0], 500)
    result = prudent.audit(COIN, np.full(1_000, 0.5), outcomes, guarantee=SELF & guarantees.Bins(10, "quantile"))
    assert result.rejected == ()
    assert prudent.audit(COIN, np.full(1_000, 0.9), outcomes, guarantee=SELF).rejected == ("v",)


def test_weights_and_groups_may_be_series(rows: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = rows
    names = [f"store {i % 50}" for i in range(2_000)]
    one = prudent.audit(None, pd.Series(forecasts), pd.Series(outcomes), guarantee=SELF, periods=pd.Series(names))
    other = prudent.audit(None, forecasts, outcomes, guarantee=SELF, periods=np.arange(2_000) % 50)
    np.testing.assert_allclose(one.measured.radii, other.measured.radii)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcomes": np.ones(3)}, "outcomes must have one row per forecast, 2000; got 3"),
        ({"outcomes": None}, "outcomes must be given"),
        ({"outcomes": np.full(2_000, 1.5)}, "outcomes must lie in Box"),
        ({"outcomes": np.full(2_000, np.nan), "missing": "drop"}, "missing in every row"),
        ({"forecasts": np.full(2_000, np.nan)}, "forecasts must be finite"),
        ({"forecasts": np.full(2_000, 7.0)}, "forecasts must lie in"),
        ({"guarantee": "nonsense"}, "guarantee"),
        ({"guarantee": guarantees.FullyCalibrated()}, "cannot be audited"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": True}, "confidence must lie strictly between 0 and 1"),
        ({"weights": -np.ones(2_000)}, "weights must not be negative"),
        ({"weights": np.zeros(2_000)}, "must not be zero for all rows"),
        ({"periods": np.zeros(2_000)}, "at least two independent periods"),
        ({"periods": ["a"] * 3}, "periods must have one row per forecast"),
        ({"periods": [None] * 2_000}, "periods must name a period for every row"),
        ({"missing": "ignore"}, "missing must be 'refuse' or 'drop'"),
        ({"problem_or_space": "box"}, "must be a DecisionProblem, a Box or a Simplex"),
    ],
)
def test_bad_input_is_refused(rows: tuple[np.ndarray, np.ndarray], change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"problem_or_space": None, "forecasts": rows[0], "outcomes": rows[1]}
    arguments |= {"guarantee": SELF} | change
    with pytest.raises(InputError, match=message):
        prudent.audit(**arguments)


def test_one_row_is_no_sample() -> None:
    with pytest.raises(InputError, match="at least two independent rows"):
        prudent.audit(None, [0.5], [1.0], guarantee=SELF)


def test_slack_audit_needs_outcomes() -> None:
    with pytest.raises(InputError, match="needs outcomes"):
        prudent.RobustPolicy(COIN, SELF, slack="audit").fit([0.2, 0.8])
    with pytest.raises(InputError, match="needs outcomes"):
        prudent.worst_case(prudent.PlugInPolicy(COIN), [0.2, 0.8], guarantee=SELF, slack="audit")
    for center in ("zero", [[0.1]]):
        with pytest.raises(InputError, match="centred at their moments"):
            prudent.Slack("audit", center=center)
    with pytest.raises(InputError, match="no meaning for FullyCalibrated"):
        prudent.RobustPolicy(COIN, guarantees.FullyCalibrated(), slack="audit").fit([0.2, 0.8], [0, 1])


def test_worst_case_and_stress_test_take_audited_slack(rows: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = rows
    policy = prudent.RobustPolicy(COIN, SELF, slack="audit").fit(forecasts, outcomes)
    worst = prudent.worst_case(policy, forecasts, guarantee=SELF, slack="audit", outcomes=outcomes)
    assert worst.value == pytest.approx(policy.certificate_.lower, abs=1e-9)
    table = prudent.stress_test({"robust": policy}, forecasts, outcomes, guarantee=SELF, slack="audit")
    assert table.worst[0] == pytest.approx(policy.certificate_.lower, abs=1e-9)


@pytest.mark.parametrize("constant", [0.0, 30.0, 100.0])
def test_a_constant_in_all_payoffs_changes_no_statistics(constant: float) -> None:
    payoffs = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, -60.0]])
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rare = 0.015 * rng.random(100)
        v = np.column_stack([0.6 - rare / 2, 0.4 - rare / 2, rare])
        y = (rng.random((100, 1)) > np.cumsum(v, axis=1)).sum(axis=1).clip(0, 2)
        problem = prudent.DecisionProblem.from_payoffs(payoffs + constant)
        rejected += bool(prudent.audit(problem.space, v, y, guarantee=guarantees.UtilityCalibrated(problem)).rejected)
    assert rejected <= 4


@pytest.mark.parametrize("grouped", [False, True])
def test_rare_outcomes_are_expected_per_coordinate_and_per_unit(grouped: bool) -> None:
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        v = np.column_stack([0.03 * rng.random(100), rng.random(100)])
        y = np.column_stack([rng.random(100) < v[:, 0], np.clip(v[:, 1] + 0.1 * rng.normal(size=100), 0, 1)])
        groups = np.arange(100)
        if grouped:
            v, y, groups = (np.repeat(values, 10, axis=0) for values in (v, y, groups))
        space = prudent.Box([0, 0], [1, 1])
        result = prudent.audit(space, v, y.astype(float), guarantee=guarantees.Unbiased(), periods=groups)
        rejected += "1 x y[0]" in result.rejected
    assert rejected <= 4


def test_audited_slack_of_mixed_tests_is_accepted() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0]])
    v = rng.random((300, 2))
    y = (rng.random((300, 2)) < v).astype(float)
    guarantee = guarantees.Unbiased() & guarantees.UtilityCalibrated(problem)
    result = prudent.audit(None, v, y, guarantee=guarantee)
    policy = prudent.RobustPolicy(problem, guarantee, slack=result.slack).fit(v)
    assert policy.certificate_.gap < 1e-6


def test_an_audit_needs_outcomes_and_counts_groups_of_any_type() -> None:
    v = np.random.default_rng(0).random(100)
    with pytest.raises(InputError, match="at least one row"):
        prudent.audit(None, v, [], guarantee=SELF)
    with pytest.raises(InputError, match="outcomes must be given"):
        prudent.audit(None, v, guarantee=SELF)
    by_pair = prudent.audit(None, v, v, guarantee=SELF, periods=[(i // 10, "x") for i in range(100)])
    assert by_pair.measured.means.n_units == 10
    assert prudent.audit(None, v, v, guarantee=SELF, periods=[1, "1"] * 50).measured.means.n_units == 2


def test_moments_have_the_units_of_outcomes() -> None:
    """The same audit in thousandths has the same table in thousandths."""
    rng = np.random.default_rng(0)
    forecasts = rng.random(500)
    outcomes = (rng.random(500) < forecasts**2).astype(float)
    small = prudent.audit(prudent.Box(0, 1), forecasts, outcomes, guarantee="self-orthogonal")
    large = prudent.audit(prudent.Box(0, 1000), 1000 * forecasts, 1000 * outcomes, guarantee="self-orthogonal")
    np.testing.assert_allclose(large.estimates, 1000 * small.estimates, rtol=1e-9)
    np.testing.assert_allclose(large.intervals, 1000 * small.intervals, rtol=1e-6)
    assert np.abs(large.estimates).max() <= large.slack.max() <= 1000


def test_audits_speak_of_the_next_period() -> None:
    rng = np.random.default_rng(0)
    periods = np.repeat(np.arange(12), 40)
    v = rng.random(480)
    y = np.clip(v + 0.1 * rng.normal(size=12)[periods] + 0.1 * rng.normal(size=480), 0, 1)
    found = prudent.audit(None, v, y, guarantee="unbiased", periods=periods)
    means = (y - v).reshape(12, 40).mean(axis=1)
    wanted = np.sqrt(found.measured.radii[0] ** 2 + stats.t(11).ppf(0.975) ** 2 * means.var(ddof=1))
    assert found.columns["next period +-"][0] == pytest.approx(wanted)
    assert "12 periods are the independent units; the last column" in str(found)
    assert "too few to say anything about the next one" in str(
        prudent.audit(None, v[:120], y[:120], guarantee="unbiased", periods=periods[:120])
    )
    assert "next period +-" not in prudent.audit(None, v, y, guarantee="unbiased").columns


def ladder_rows(n: int, seed: int = 0, skew: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < forecasts * skew).astype(float)


def test_every_rung_is_certified() -> None:
    forecasts, outcomes = ladder_rows(2_000, skew=0.8)
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
    forecasts, outcomes = ladder_rows(2_000)
    ladder = prudent.guarantee_ladder(COIN, forecasts, outcomes)
    alone = prudent.audit(None, forecasts, outcomes, guarantee=guarantees.Unbiased(), confidence=1 - 0.05 / 5)
    assert ladder.rungs[1].slack == pytest.approx(float(alone.measured.radii[0]))


def test_small_samples_are_not_rewarded() -> None:
    """Nothing is rejected on thirty rows; yet the strong guarantees are worth little there."""
    few = prudent.guarantee_ladder(COIN, *ladder_rows(30))
    many = prudent.guarantee_ladder(COIN, *ladder_rows(20_000))
    assert all(rung.holds for rung in few.rungs)
    assert few.best.guaranteed < many.best.guaranteed - 0.05


def test_own_guarantees_and_frames() -> None:
    forecasts, outcomes = ladder_rows(500)
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
        prudent.guarantee_ladder(COIN, *ladder_rows(50), guarantees=given)
    with pytest.raises(InputError, match="problem must be"):
        prudent.guarantee_ladder(None, *ladder_rows(50))


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
