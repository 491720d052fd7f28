"""What robust policies play on many rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import prudent
import reference
from prudent import guarantees
from prudent.errors import InputError
from prudent.evidence.audits import usual_guarantees
from prudent.guarantees.base import And

N = 6_000
RNG = np.random.default_rng(5)
LINE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
CLASSES = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
ROWS = {1: RNG.beta(2, 3, (N, 1)), 3: RNG.dirichlet([2, 3, 2], N)}


@pytest.mark.parametrize("family", [prudent.RobustPolicy, partial(prudent.RobustPolicy, randomize=False)])
@pytest.mark.parametrize("problem", [LINE, CLASSES])
def test_many_rows_with_equal_tests_are_played_as_few_rows_are(
    family: type[prudent.RobustPolicy], problem: prudent.DecisionProblem
) -> None:
    """Many rows are played once for each group of equal tests, few rows one by one."""
    forecasts = ROWS[problem.dimension]
    for guarantee in usual_guarantees(problem).values():
        policy = family(problem, guarantee, slack=0.01).fit(forecasts)
        few = [policy.predict_proba(part) for part in np.array_split(forecasts, 10)]
        np.testing.assert_array_equal(policy.predict_proba(forecasts), np.concatenate(few))


UP_OR_DOWN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
THREE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["a", "b", "c"])


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
    assert policy.certificate_.lower == pytest.approx(worst, abs=1e-9)


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
        lambda: prudent.DecisionProblem.from_utility(max, [2, 1], [0, 1], amounts=True),
        lambda: guarantees.FromFunctions(abs),
        lambda: guarantees.FromFunctions([abs], bounds=1.0),
        lambda: guarantees.FromFunctions([abs], names="a"),
        lambda: And(()),
        lambda: guarantees.Bins(10**12),
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
        lambda: prudent.SafetyPolicy(THREE, randomize="x").predict([0.1]),
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
    for use in (
        lambda: policy.certificate_.lower,
        lambda: policy.predict([0.1]),
        lambda: policy.worst_case_belief([0.1]),
    ):
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
    fresh = prudent.RobustPolicy(THREE, guarantees.LogOdds())
    with pytest.raises(InputError, match="takes logarithms"):
        fresh.fit([0.0, 0.5])
    with pytest.raises(NotFittedError):
        fresh.predict([0.5])
    policy = prudent.RobustPolicy(THREE, guarantees.LogOdds()).fit([0.3, 0.5])
    before = policy.predict_proba([0.4]), policy.certificate_
    with pytest.raises(InputError):
        policy.fit(pd.DataFrame({"f": [0.0, 0.5]}))
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


def test_an_error_in_many_rows_names_the_callers_row() -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    policy = prudent.RobustPolicy(problem, guarantees.LogOdds()).fit([0.1, 0.4])
    forecasts = np.full(40_000, 0.3)
    forecasts[35_000] = 1.0
    with pytest.raises(prudent.errors.InputError, match=r"row 35000\b"):
        policy.predict_proba(forecasts)


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize(("problem", "slack"), [(LINE, 0.0), (LINE, 0.02), (CLASSES, 0.02)])
def test_certificates_for_other_cases(problem: prudent.DecisionProblem, slack: float, randomize: bool) -> None:
    """At least what the reference finds for the policy there, and at most what the best policy can guarantee."""
    rows = ROWS[problem.dimension]
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    policy = prudent.RobustPolicy(problem, guarantee, slack=slack, randomize=randomize).fit(rows[:500])
    fitting, other = policy.certify(rows[:500]), policy.certify(rows[500:700])
    assert fitting.lower == pytest.approx(policy.certificate_.lower, abs=1e-6)
    worst = prudent.worst_case(policy, rows[500:700], guarantee=guarantee, slack=slack)
    best = prudent.RobustPolicy(problem, guarantee, slack=slack).fit(rows[500:700]).certificate_
    assert other.lower <= worst.certificate.upper + 1e-9
    assert other.upper >= best.lower - 1e-9
    columns = {f"v{j}": rows[500:700, j] for j in range(rows.shape[1])}
    table = policy.certify(prudent.scan(pl.LazyFrame(columns), list(columns)))
    assert table.lower == pytest.approx(other.lower, abs=1e-6)


def test_full_calibration_is_certified_as_it_is() -> None:
    policy = prudent.RobustPolicy(LINE, "fully-calibrated").fit(ROWS[1][:100])
    found = policy.certify(ROWS[1][100:200])
    assert found.lower == pytest.approx(LINE.value(ROWS[1][100:200]).mean(), abs=1e-12)
