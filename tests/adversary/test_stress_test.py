"""The stress test: what must always hold in its table."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.adversary.stress_test import StressTest
from prudent.errors import InputError

PROBLEM = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
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
        "plug-in": prudent.PlugInPolicy(PROBLEM),
        "robust": prudent.RobustPolicy(PROBLEM, GUARANTEE).fit(forecasts),
        "pure": prudent.RobustPolicy(PROBLEM, GUARANTEE, randomize=False).fit(forecasts),
        "safety": prudent.SafetyPolicy(PROBLEM),
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
    utilities = forecasts[:, None] * PROBLEM.rewards[:, 0] - PROBLEM.costs
    best = utilities.argmax(axis=1)
    assert table.nominal[0] == pytest.approx(utilities.max(axis=1).mean())
    earned = outcomes * PROBLEM.rewards[best, 0] - PROBLEM.costs[best]
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
    result = prudent.stress_test({"plug-in": prudent.PlugInPolicy(PROBLEM)}, sample[0], guarantee=GUARANTEE, slack=0.01)
    assert result.realised is None
    assert result.contradiction == ""
    assert "realised" not in str(result)


def test_outcomes_that_contradict_the_guarantee_are_named(sample: tuple[np.ndarray, np.ndarray]) -> None:
    """Who earned less than in the worst world that is allowed lives in a world that is not."""
    forecasts, outcomes = sample
    policies = {"plug-in": prudent.PlugInPolicy(PROBLEM), "low": np.tile([1.0, 0.0, 0.0], (400, 1))}
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
    plug_in = {"plug-in": prudent.PlugInPolicy(PROBLEM)}
    with pytest.raises(InputError, match="non-empty mapping"):
        prudent.stress_test({}, forecasts, guarantee=GUARANTEE)
    with pytest.raises(InputError, match="non-empty mapping"):
        prudent.stress_test([prudent.PlugInPolicy(PROBLEM)], forecasts, guarantee=GUARANTEE)
    with pytest.raises(InputError, match="outcomes must have one row per forecast, 400; got 2"):
        prudent.stress_test(plug_in, forecasts, outcomes[:2], guarantee=GUARANTEE)
    with pytest.raises(InputError, match="problem must be a DecisionProblem"):
        prudent.stress_test({"coin": np.full((400, 3), 1 / 3)}, forecasts, guarantee=GUARANTEE)
