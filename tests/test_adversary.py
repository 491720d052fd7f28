"""Worst cases of any policy or probability matrix against the reference."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
import reference
from instances import random_instance
from prudent import guarantees
from prudent.adversary import StressTest
from prudent.errors import InputError

PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
FORECASTS = (np.arange(100) + 0.5) / 100


@pytest.mark.parametrize(
    ("block", "alike"),
    [(0, False), (5, True), *(pytest.param(block, False, marks=pytest.mark.slow) for block in range(1, 5))],
)
def test_random_mixtures_agree_with_the_reference(block: int, alike: bool) -> None:
    """One for every row, or the same everywhere."""
    unproven: list[str] = []
    for seed in range(10_000 + 25 * block, 10_000 + 25 * (block + 1)):
        instance = random_instance(seed)
        world, unit = instance.world, instance.range
        rng = np.random.default_rng(seed)
        n = len(world.weights)
        mixtures = rng.dirichlet(np.full(len(instance.costs), 0.5), size=1 if alike else n).repeat(n if alike else 1, 0)
        result = prudent.worst_case(
            mixtures,
            world.forecasts,
            problem=instance.problem,
            guarantee=instance.guarantee,
            slack=instance.slack,
            outcomes=instance.outcomes,
            weights=world.weights,
        )
        exact = reference.worst_case(instance.rewards, instance.costs, mixtures, world)
        accuracy = 1e-6 if world.allowed.kind == "ball" else 1e-7
        assert result.value == pytest.approx(exact, abs=max(accuracy, 1e-6) * unit), instance.label
        if result.certificate.status == "not proven":
            # Forecasts in thirds: tests are combinations of each other only up to rounding on the rows that may move.
            unproven.append(instance.label)
            continue
        assert result.certificate.gap <= 1e-6 * unit, instance.label
        attained = float(
            world.weights @ (mixtures * (result.beliefs @ instance.rewards.T - instance.costs)).sum(axis=1)
        )
        assert attained == pytest.approx(result.certificate.upper, abs=1e-9 * unit), instance.label
    assert len(unproven) <= 1, unproven


def test_one_multiplier_is_a_fractional_knapsack() -> None:
    """Exact to rounding: sort rows by value per unit of moment, move the best until the budget is spent."""
    result = prudent.worst_case(prudent.PlugInPolicy(PROBLEM), FORECASTS, guarantee=guarantees.SelfOrthogonal())
    assert result.certificate.gap <= 1e-12
    assert "worst case" in str(result)


def test_the_policys_own_problem_is_the_default() -> None:
    with pytest.raises(InputError, match="policies bring their own, probabilities do not"):
        prudent.worst_case(np.full((100, 2), 0.5), FORECASTS, guarantee=guarantees.Unbiased())
    other = prudent.DecisionProblem([1.0, 2.0])
    with pytest.raises(InputError, match="another problem"):
        prudent.worst_case(prudent.PlugInPolicy(PROBLEM), FORECASTS, problem=other, guarantee=guarantees.Unbiased())


@pytest.mark.parametrize(
    ("mixtures", "message"),
    [
        (np.full((99, 2), 0.5), "one row per forecast, 100; got 99"),
        (np.full((100, 3), 1 / 3), r"probabilities must have 2 column\(s\)"),
        (np.full((100, 2), 0.6), r"sum 1 in every row; row 0 is \[0.6, 0.6\]"),
        (np.tile([1.5, -0.5], (100, 1)), "non-negative"),
        (np.full((100, 2), np.nan), "probabilities must be finite"),
        ("robust", "probabilities must be"),
    ],
)
def test_bad_probabilities_are_refused(mixtures: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.worst_case(mixtures, FORECASTS, problem=PROBLEM, guarantee=guarantees.Unbiased())


def test_other_bad_arguments_are_refused() -> None:
    plug_in = prudent.PlugInPolicy(PROBLEM)
    with pytest.raises(InputError, match="guarantee"):
        prudent.worst_case(plug_in, FORECASTS, guarantee="nonsense")
    slack = prudent.Slack(0.1, center="measured")
    with pytest.raises(InputError, match="needs outcomes"):
        prudent.worst_case(plug_in, FORECASTS, guarantee=guarantees.Unbiased(), slack=slack)


def test_rows_of_weight_zero_keep_their_forecast() -> None:
    weights = np.ones(100)
    weights[:10] = 0
    result = prudent.worst_case(
        prudent.PlugInPolicy(PROBLEM), FORECASTS, guarantee=guarantees.Unbiased(), weights=weights
    )
    np.testing.assert_array_equal(result.beliefs[:10, 0], FORECASTS[:10])


def test_anything_with_predict_proba_can_be_tested() -> None:
    class Coin:
        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return np.full((len(X), 2), 0.5)

    result = prudent.worst_case(Coin(), FORECASTS, problem=PROBLEM, guarantee=guarantees.Nothing())
    assert result.value == pytest.approx(0.5, abs=1e-12)


def test_exact_regions_say_nothing_about_a_policy_that_does_not_best_respond() -> None:
    worst = prudent.worst_case(
        np.tile([1.0, 0.0], (100, 1)), FORECASTS, problem=PROBLEM, guarantee=guarantees.DecisionCalibrated(PROBLEM)
    )
    assert worst.certificate.gap <= 1e-9
    assert worst.value == pytest.approx(FORECASTS.mean())  # means of both regions are right, so the mean is


UP_OR_DOWN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


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


STAFFING = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
GUARANTEE = guarantees.SelfOrthogonal()


@pytest.fixture(scope="module")
def sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    forecasts = rng.beta(2, 3, size=400)
    return forecasts, np.clip(forecasts + 0.2 * rng.normal(size=400), 0, 1)


@pytest.fixture(scope="module")
def table(sample: tuple[np.ndarray, np.ndarray]) -> StressTest:
    forecasts, outcomes = sample
    policies = {
        "plug-in": prudent.PlugInPolicy(STAFFING),
        "robust": prudent.RobustPolicy(STAFFING, GUARANTEE).fit(forecasts),
        "pure": prudent.RobustPolicy(STAFFING, GUARANTEE, randomize=False).fit(forecasts),
        "safety": prudent.SafetyPolicy(STAFFING),
        "coin": np.full((400, 3), 1 / 3),
    }
    return prudent.stress_test(policies, forecasts, outcomes, guarantee=GUARANTEE)


def test_no_world_is_worse_than_a_policys_own_worst(table: StressTest) -> None:
    assert (table.under >= table.worst[:, None] - 1e-9).all()
    assert (table.saddle >= table.worst - 1e-9).all()
    assert (table.nominal >= table.worst - 1e-9).all()
    np.testing.assert_allclose(np.diag(table.under), table.worst, atol=1e-9)


def test_no_policy_beats_the_optimum(table: StressTest) -> None:
    assert (table.worst <= table.optimum.upper + 1e-12).all()
    worst = dict(zip(table.names, table.worst, strict=True))
    assert worst["robust"] == pytest.approx(table.optimum.lower, abs=1e-9)
    assert worst["robust"] >= worst["pure"] >= worst["plug-in"]
    saddle = dict(zip(table.names, table.saddle, strict=True))
    assert saddle["robust"] >= saddle["plug-in"] - 1e-9


def test_the_worst_world_of_an_optimal_policy_is_that_of_the_best(table: StressTest) -> None:
    np.testing.assert_array_equal(table.under[:, table.names.index("robust")], table.saddle)


def test_nominal_and_realised_by_hand(table: StressTest, sample: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = sample
    utilities = forecasts[:, None] * STAFFING.rewards[:, 0] - STAFFING.costs
    best = utilities.argmax(axis=1)
    assert table.nominal[0] == pytest.approx(utilities.max(axis=1).mean())
    earned = outcomes * STAFFING.rewards[best, 0] - STAFFING.costs[best]
    assert table.realised[0] == pytest.approx(earned.mean())


def test_the_table_can_be_read_and_taken_away(table: StressTest) -> None:
    text = str(table)
    assert text.splitlines()[0].split()[:3] == ["policy", "nominal", "realised"]
    assert "The best possible policy guarantees" in text
    for backend, kind in (("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "pyarrow")):
        frame = table.to_frame(backend)
        assert type(frame).__module__.startswith(kind)
    frame = table.to_frame()
    assert frame.columns.tolist() == list(table.columns)
    assert frame["own worst case"].tolist() == table.worst.tolist()


def test_without_outcomes_there_is_no_realised_column(sample: tuple[np.ndarray, np.ndarray]) -> None:
    result = prudent.stress_test(
        {"plug-in": prudent.PlugInPolicy(STAFFING)}, sample[0], guarantee=GUARANTEE, slack=0.01
    )
    assert result.realised is None
    assert result.contradiction == ""
    assert "realised" not in str(result)


def test_outcomes_that_contradict_the_guarantee_are_named(sample: tuple[np.ndarray, np.ndarray]) -> None:
    """Who earned less than in the worst world that is allowed lives in a world that is not."""
    forecasts, outcomes = sample
    policies = {"plug-in": prudent.PlugInPolicy(STAFFING), "low": np.tile([1.0, 0.0, 0.0], (400, 1))}
    for slack, happened in ((0.0, outcomes * 0.3), ("audit", outcomes * 0.3), (0.0, forecasts)):
        result = prudent.stress_test(policies, forecasts, happened, guarantee=guarantees.Unbiased(), slack=slack)
        found = zip(result.names, result.realised, result.worst, strict=True)
        below = [name for name, got, least in found if got < least - 1e-9]
        if below:
            assert f"({', '.join(below)})" in result.contradiction
            assert "contradict the guarantee" in result.contradiction
        else:
            assert result.contradiction == ""
        assert str(result).endswith(result.contradiction)
        assert bool(below) == (slack == 0.0 and happened is not forecasts)


def test_class_labels_are_outcomes() -> None:
    problem = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1]], classes=["no", "yes"])
    forecasts = [[0.7, 0.3], [0.2, 0.8]]
    result = prudent.stress_test(
        {"plug-in": prudent.PlugInPolicy(problem)}, forecasts, ["no", "no"], guarantee=guarantees.Unbiased()
    )
    assert result.realised.tolist() == [0.5]


def test_bad_arguments_are_refused(sample: tuple[np.ndarray, np.ndarray]) -> None:
    forecasts, outcomes = sample
    plug_in = {"plug-in": prudent.PlugInPolicy(STAFFING)}
    with pytest.raises(InputError, match="non-empty mapping"):
        prudent.stress_test({}, forecasts, guarantee=GUARANTEE)
    with pytest.raises(InputError, match="non-empty mapping"):
        prudent.stress_test([prudent.PlugInPolicy(STAFFING)], forecasts, guarantee=GUARANTEE)
    with pytest.raises(InputError, match="outcomes must have one row per forecast, 400; got 2"):
        prudent.stress_test(plug_in, forecasts, outcomes[:2], guarantee=GUARANTEE)
    with pytest.raises(InputError, match="problem must be a DecisionProblem"):
        prudent.stress_test({"coin": np.full((400, 3), 1 / 3)}, forecasts, guarantee=GUARANTEE)
