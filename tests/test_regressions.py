"""Things that once went wrong, or nearly did, each with the smallest case that shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import prudent
import reference
from prudent import InputError, guarantees

UP_OR_DOWN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
THREE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["a", "b", "c"])


def test_a_constant_policy_in_one_region_is_not_taken_for_the_problem() -> None:
    """All rows merge to one; the multipliers of the problem's own regions do not belong to that game."""
    forecasts = np.array([0.6, 0.7, 0.8, 0.9])
    safety = prudent.SafetyPolicy(UP_OR_DOWN)
    for guarantee in (guarantees.DecisionCalibrated(UP_OR_DOWN), guarantees.UtilityCalibrated(UP_OR_DOWN)):
        assert prudent.worst_case(safety, forecasts, guarantee=guarantee).value == pytest.approx(0.5, abs=1e-9)
        leaning = np.tile([0.2, 0.8], (4, 1))
        result = prudent.worst_case(leaning, forecasts, problem=UP_OR_DOWN, guarantee=guarantee)
        assert result.value == pytest.approx(0.35, abs=1e-9)
        single = prudent.worst_case(leaning[:1], forecasts[:1], problem=UP_OR_DOWN, guarantee=guarantee)
        assert single.value == pytest.approx(0.2 * 0.6 + 0.8 * 0.4, abs=1e-9)


@pytest.mark.parametrize("radius", [1e-12, 1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("simplex", [True, False])
def test_tiny_slack_converges(radius: float, norm: str, simplex: bool) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 6))
        space = prudent.Simplex(d) if simplex else None
        problem = prudent.DecisionProblem(rng.normal(size=(5, d)), 0.3 * rng.normal(size=5), space=space)
        forecasts = rng.dirichlet(np.ones(d), size=20) if simplex else rng.random((20, d))
        policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack=prudent.Slack(radius, norm))
        certificate = policy.fit(forecasts).certificate_
        assert certificate.gap <= 1e-6 * problem.utility_range
        exact = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(forecasts).certificate_
        assert certificate.lower <= exact.upper


def test_many_rows_in_several_dimensions_converge() -> None:
    rng = np.random.default_rng(4)
    problem = prudent.DecisionProblem(rng.normal(size=(5, 5)), 0.2 * rng.normal(size=5))
    for slack in (0.0, 0.01):
        policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True), slack=slack)
        assert policy.fit(rng.random((2000, 5))).certificate_.gap <= 1e-6 * problem.utility_range


def test_weights_may_differ_by_ten_orders() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        problem = prudent.DecisionProblem(rng.normal(size=(4, 3)), 0.3 * rng.normal(size=4))
        weights = 10.0 ** rng.uniform(-10, 0, size=20)
        policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True))
        certificate = policy.fit(rng.random((20, 3)), sample_weight=weights).certificate_
        assert certificate.gap <= 1e-6 * problem.utility_range


def test_a_large_common_cost_changes_nothing_but_the_level() -> None:
    forecasts = np.linspace(0.1, 0.9, 9)
    plain = prudent.RobustPolicy(UP_OR_DOWN, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts)
    dear = prudent.DecisionProblem([1.0, -1.0], [1e8, 1e8 - 1])
    policy = prudent.RobustPolicy(dear, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts)
    assert policy.certificate_.status == prudent.Status.OPTIMAL
    assert policy.value_ + 1e8 == pytest.approx(plain.value_, abs=1e-6)


def test_bounds_allow_for_tilts_that_cancel() -> None:
    """Nearly equal tests have huge multipliers of opposite sign; checked in exact rational arithmetic."""
    from fractions import Fraction

    forecasts = np.linspace(0.05, 0.95, 19)
    for size in (1e-8, 1e-10):
        tests = [lambda v: v[:, 0], lambda v, s=size: v[:, 0] + s * np.sin(9 * v[:, 0]), lambda v: np.ones(len(v))]
        policy = prudent.RobustPolicy(UP_OR_DOWN, guarantees.FromFunctions(tests)).fit(forecasts)
        values = np.stack([test(forecasts[:, None]) for test in tests], axis=1)
        mixtures = policy.predict_proba(forecasts)
        total = Fraction(0)
        for row in range(19):
            tilt = sum(
                Fraction(float(h)) * Fraction(float(m))
                for h, m in zip(values[row], policy.multipliers_[:, 0], strict=True)
            )
            share = [Fraction(float(p)) for p in mixtures[row]]
            slope = share[0] - share[1] + tilt
            total += share[1] + min(slope, Fraction(0)) - tilt * Fraction(float(forecasts[row]))
        assert Fraction(policy.certificate_.lower) <= total / 19


@pytest.mark.parametrize("size", [1e-170, 1e160])
def test_tests_of_absurd_size_are_refused(size: float) -> None:
    guarantee = guarantees.FromFunctions([lambda v: size * v[:, 0], lambda v: np.ones(len(v))])
    with pytest.raises(InputError, match="sizes between 1e-100 and 1e100"):
        prudent.RobustPolicy(UP_OR_DOWN, guarantee).fit(np.linspace(0.1, 0.9, 9))


def test_safety_ignores_the_forecast_even_in_ties() -> None:
    problem = prudent.DecisionProblem([[1, -1], [-1, -1], [0, 1], [0, -1]])
    mixtures = prudent.SafetyPolicy(problem).predict_proba(np.random.default_rng(0).random((50, 2)))
    assert (mixtures == mixtures[0]).all()


def test_unseen_regions_best_respond_also_with_slack() -> None:
    policy = prudent.RobustPolicy(THREE, guarantees.DecisionCalibrated(THREE), slack=0.01).fit([0.2, 0.27])
    np.testing.assert_array_equal(policy.predict_proba([0.9]), [[0, 0, 1]])
    tests = np.stack([np.zeros(2), np.ones(2), np.zeros(2)], axis=1)
    world = reference.World(
        np.zeros(1),
        np.ones(1),
        False,
        np.array([[0.2], [0.27]]),
        np.full(2, 0.5),
        tests[:, :, None],
        reference.Allowed("box", np.zeros(3), np.full(3, 0.01), np.arange(3)),
    )
    mixtures = policy.predict_proba([0.2, 0.27])
    worst = reference.worst_case(THREE.rewards, THREE.costs, mixtures, world)
    assert policy.value_ == pytest.approx(worst, abs=1e-9)


def test_parameters_changed_after_fit_wait_for_the_next_fit(tmp_path: Path) -> None:
    policy = prudent.RobustPolicy(THREE, guarantees.SelfOrthogonal()).fit([0.1, 0.5, 0.9])
    before = policy.predict_proba([0.3])
    policy.set_params(problem=UP_OR_DOWN, guarantee=guarantees.Nothing(), slack=0.5)
    np.testing.assert_array_equal(policy.predict_proba([0.3]), before)
    assert policy.predict([0.3])[0] in ("a", "b", "c")
    policy.save(tmp_path / "p.json")
    again = prudent.load(tmp_path / "p.json")
    assert again.problem == THREE
    assert again.guarantee == guarantees.SelfOrthogonal()
    assert again.slack == prudent.Slack(0.0)


def test_policies_fitted_on_frames_save_without_a_warning(tmp_path: Path) -> None:
    policy = prudent.RobustPolicy(THREE, guarantees.SelfOrthogonal()).fit(pd.DataFrame({"f": [0.1, 0.5, 0.9]}))
    policy.save(tmp_path / "p.json")
    assert prudent.load(tmp_path / "p.json").feature_names_in_.tolist() == ["f"]


def test_results_never_alias_the_callers_array() -> None:
    forecasts = np.array([[0.2], [0.9]])
    full = prudent.RobustPolicy(THREE, guarantees.FullyCalibrated()).fit(forecasts)
    for policy in (prudent.PlugInPolicy(THREE), full):
        belief = policy.worst_case_belief(forecasts)
        belief[:] = 0
        assert forecasts[1, 0] == 0.9
    assert not np.shares_memory(full.solution_.beliefs, forecasts)


def test_partitions_cannot_change_the_forecasts() -> None:
    def vandal(v: np.ndarray) -> np.ndarray:
        v[:] = 0.0
        return np.zeros(len(v))

    forecasts = np.array([[0.2], [0.9]])
    prudent.RobustPolicy(THREE, guarantees.Partition(vandal)).fit(forecasts)
    assert forecasts[1, 0] == 0.9


def test_beliefs_are_not_class_labels() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3))
    for method in (problem.best_response, problem.value):
        with pytest.raises(InputError, match="beliefs must have shape"):
            method([0, 0, 1])
    np.testing.assert_array_equal(problem.utility([2]), [[0, 0, 1]])


def test_class_indices_are_accepted_beside_names() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.eye(2), classes=["x", "y"])
    np.testing.assert_array_equal(problem.utility([1, 0]), problem.utility(["y", "x"]))
    np.testing.assert_array_equal(problem.utility(pa.array(["y", "x"])), problem.utility(["y", "x"]))
    numbered = prudent.DecisionProblem.from_payoffs(np.eye(2), classes=[10, 20])
    with pytest.raises(InputError, match=r"among the classes \[10, 20\]"):
        numbered.utility([0, 1])


def test_payoffs_may_come_as_an_arrow_table() -> None:
    table = pa.table({"healthy": [0.0, -1.0], "ill": [-10.0, -1.0]})
    problem = prudent.DecisionProblem.from_payoffs(table, actions=["wait", "treat"])
    assert problem.space == prudent.Simplex(2, classes=["healthy", "ill"])


def test_numpy_scalars_are_labels() -> None:
    assert prudent.DecisionProblem([1, 2], actions=[np.int64(1), np.float32(2.5)]).actions == (1, 2.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: prudent.PlugInPolicy(THREE).predict(["0.1", "0.2"]),
        lambda: prudent.PlugInPolicy(THREE).predict(np.array(["0.1"], dtype=object)),
        lambda: prudent.PlugInPolicy(THREE).predict(np.array([1, 2], dtype="timedelta64[s]")),
        lambda: prudent.PlugInPolicy(THREE).predict([10**400]),
        lambda: prudent.PlugInPolicy(THREE).predict([None]),
        lambda: prudent.PlugInPolicy(THREE).predict(pd.Series([0.1, None], dtype="Float64")),
        lambda: prudent.PlugInPolicy(None).predict([0.1]),
        lambda: prudent.SafetyPolicy(None).certificate_,
        lambda: prudent.DecisionProblem([1, 2], actions="ab"),
        lambda: prudent.DecisionProblem([1, 2], actions={"a", "b"}),
        lambda: prudent.DecisionProblem([1, 2], actions=5),
        lambda: prudent.Simplex(2, classes="ab"),
        lambda: prudent.Box(None, 1),
        lambda: prudent.DecisionProblem.from_utility(3, [1], [0, 1]),
        lambda: prudent.DecisionProblem.from_utility(max, [], [0, 1]),
        lambda: prudent.DecisionProblem.from_utility(max, [1], 5),
        lambda: prudent.DecisionProblem.from_utility(max, [1], [0, 1], lipschitz=[1, 2]),
        lambda: prudent.DecisionProblem.from_basis([[1]], abs, [0, 1]),
        lambda: guarantees.FromFunctions(abs),
        lambda: guarantees.FromFunctions([abs], bounds=1.0),
        lambda: guarantees.FromFunctions([abs], names="a"),
        lambda: guarantees.And(()),
        lambda: guarantees.Binned.uniform(10**12),
        lambda: prudent.RobustPolicy(THREE, guarantees.Unbiased(), slack=True).fit([0.1]),
        lambda: prudent.RobustPolicy(THREE, guarantees.Unbiased(), confidence=1.5).fit([0.1]),
        lambda: prudent.RobustPolicy(THREE, guarantees.Unbiased(), salt=3).fit([0.1]),
        lambda: prudent.RobustPolicy(THREE, guarantees.Partition(lambda v: [None, 1])).fit([0.1, 0.2]),
        lambda: prudent.SafetyPolicy(THREE).predict([0.1, 0.2], keys="ab"),
        lambda: prudent.SafetyPolicy(THREE).predict([0.1, 0.2], keys={"a", "b"}),
        lambda: prudent.SafetyPolicy(THREE).predict([0.1, 0.2], keys=np.zeros((2, 2))),
        lambda: prudent.SafetyPolicy(THREE).predict([0.1, 0.2], keys=pd.array([1, None])),
        lambda: prudent.SafetyPolicy(THREE).predict([0.1, 0.2], keys=pa.chunked_array([[1], [None]])),
        lambda: prudent.SafetyPolicy(THREE).predict([0.1], keys=["\ud800"]),
        lambda: prudent.SafetyPolicy(THREE).predict([0.1], keys=5),
        lambda: prudent.SafetyPolicy(THREE, salt=3).predict([0.1], keys=[5]),
        lambda: prudent.SafetyPolicy(THREE, random_state=-1).predict([0.1]),
        lambda: prudent.SafetyPolicy(THREE, random_state="x").predict([0.1]),
        lambda: prudent.SafetyPolicy(THREE, pure="x").predict([0.1]),
        lambda: prudent.Simplex(2).place_outcomes([[0.5, 0.5], [1.0]]),
        lambda: prudent.Simplex(2).place_outcomes([{}, {}]),
        lambda: prudent.Simplex(2).place_outcomes([]),
        lambda: prudent.stress_test(
            {1: prudent.PlugInPolicy(THREE), "1": prudent.SafetyPolicy(THREE)}, [0.1], guarantee=guarantees.Unbiased()
        ),
        lambda: prudent.PlugInPolicy(THREE).save(None),
        lambda: prudent.PlugInPolicy(THREE).save("/"),
        lambda: prudent.load(""),
        lambda: prudent.load("/"),
    ],
)
def test_misuse_is_an_input_error(call: object) -> None:
    with pytest.raises(InputError):
        call()


def test_unfitted_values_say_so() -> None:
    policy = prudent.RobustPolicy(THREE, guarantees.Unbiased())
    for use in (lambda: policy.value_, lambda: policy.predict([0.1]), lambda: policy.worst_case_belief([0.1])):
        with pytest.raises(NotFittedError):
            use()


def test_columns_in_another_order_are_refused() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.eye(2), classes=["no", "yes"])
    frame = pd.DataFrame({"yes": [0.3], "no": [0.7]})
    with pytest.raises(InputError, match=r"order of the classes \['no', 'yes'\]; got \['yes', 'no'\]"):
        prudent.PlugInPolicy(problem).predict(frame)
    assert prudent.PlugInPolicy(problem).predict(frame[["no", "yes"]]).tolist() == [0]
    assert prudent.PlugInPolicy(problem).predict(frame.rename(columns={"yes": "a", "no": "b"})).tolist() == [1]


def test_a_failed_fit_leaves_the_policy_as_it_was() -> None:
    fresh = prudent.RobustPolicy(THREE, guarantees.Binned([0.2, 0.8]))
    with pytest.raises(InputError, match="within the bins"):
        fresh.fit([0.1, 0.5])
    with pytest.raises(NotFittedError):
        fresh.predict([0.5])
    policy = prudent.RobustPolicy(THREE, guarantees.Binned([0.2, 0.8])).fit([0.3, 0.5])
    before = policy.predict_proba([0.4]), policy.certificate_
    with pytest.raises(InputError):
        policy.fit(pd.DataFrame({"f": [0.1, 0.5]}))
    np.testing.assert_array_equal(policy.predict_proba([0.4]), before[0])
    assert policy.certificate_ == before[1]
    assert not hasattr(policy, "feature_names_in_")


def test_frames_without_text_names_are_accepted() -> None:
    policy = prudent.RobustPolicy(THREE, guarantees.Unbiased()).fit(pd.DataFrame([[0.1], [0.4]]))
    assert not hasattr(policy, "feature_names_in_")


def test_the_worst_world_never_aliases_the_callers_array() -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    forecasts = np.array([0.2, 0.8])
    for guarantee in (guarantees.FullyCalibrated(), guarantees.DecisionCalibrated(problem), guarantees.Nothing()):
        result = prudent.worst_case(prudent.PlugInPolicy(problem), forecasts, guarantee=guarantee)
        assert not np.shares_memory(result.beliefs, forecasts)


def test_two_actions_that_differ_in_the_last_digits_cost_no_guarantee() -> None:
    """The chord between two lines of nearly one slope must not be extrapolated from rounded offsets."""
    problem = prudent.DecisionProblem([0.25, 0.25 + 2.0**-53, 4.25], [-0.5, -(0.5 - 2.0**-54), 2.5 + 2.0**-50])
    without = prudent.DecisionProblem([0.25, 4.25], [-0.5, 2.5])
    forecasts = (np.arange(1000) + 0.5) / 1000
    value, plain = (
        prudent.RobustPolicy(item, guarantees.SelfOrthogonal()).fit(forecasts).value_ for item in (problem, without)
    )
    assert value == pytest.approx(plain, abs=1e-9)


def test_tests_that_mean_nothing_on_the_simplex_are_no_tests_for_many_rows_either() -> None:
    problem = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, 0.2], [0.1, 0.9, 0.3]])
    forecasts = np.random.default_rng(0).dirichlet(np.ones(3), size=4_500)
    equal = guarantees.FromFunctions([lambda v: v[:, [0, 0, 0]]])
    policy = prudent.RobustPolicy(problem, equal).fit(forecasts)
    safe = prudent.RobustPolicy(problem, guarantees.Nothing()).fit(forecasts)
    assert policy.value_ == pytest.approx(safe.value_, abs=1e-6)


def test_a_single_action_with_many_rows_goes_through_cells() -> None:
    problem = prudent.DecisionProblem([[1.0, -0.5]], [0.2])
    forecasts = np.random.default_rng(0).random((5_000, 2))
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(forecasts)
    assert policy.solution_.method == "refined cells"
    exact = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts)
    nominal = float((forecasts @ [1.0, -0.5]).mean() - 0.2)
    assert exact.value_ == pytest.approx(nominal, abs=1e-6)
    assert policy.value_ <= nominal


def test_a_deterministic_rule_for_a_nearly_flat_action_has_an_allowed_world() -> None:
    problem = prudent.DecisionProblem([0.1 + 0.2 - 0.3, 1.0], [0.0, 0.6])
    forecasts = np.random.default_rng(0).random(20_000)
    rule = prudent.PureRobustPolicy(problem, guarantees.SelfOrthogonal()).fit(forecasts)
    moment = float((forecasts * (rule.solution_.beliefs[:, 0] - forecasts)).mean())
    assert abs(moment) <= 1e-11


def test_an_error_in_many_rows_names_the_callers_row() -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    policy = prudent.RobustPolicy(problem, guarantees.Binned([0, 0.5])).fit([0.1, 0.4])
    forecasts = np.full(40_000, 0.3)
    forecasts[35_000] = 0.7
    with pytest.raises(prudent.InputError, match=r"row 35000\b"):
        policy.predict_proba(forecasts)


def test_a_batch_and_its_rows_play_the_same_deterministic_rule() -> None:
    """Long and short batches sum in one order, so that ties fall the same way."""
    rng = np.random.default_rng(1)
    problem = prudent.DecisionProblem(rng.normal(size=(6, 4)), 0.3 * rng.normal(size=6))
    forecasts = rng.random((400, 4))
    rule = prudent.PureRobustPolicy(problem, guarantees.Unbiased(), slack=0.01).fit(forecasts)
    together = rule.predict_proba(forecasts)
    alone = np.vstack([rule.predict_proba(forecasts[i : i + 1]) for i in range(400)])
    np.testing.assert_array_equal(together, alone)
