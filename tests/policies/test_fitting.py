"""The highest certain gain over the rule in use, against a linear program that shares no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import linprog
from sklearn.base import clone

import prudent
from prudent import guarantees
from prudent.errors import InputError

MEASURED = prudent.Slack(0.01, "linf", center="measured")
STAFFING = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["low", "usual", "high"])


def least_gain(problem: prudent.DecisionProblem, v: Any, played: Any, tests: Any, center: Any, radius: Any) -> float:
    """Compute ``min over q of E[max_a u(a, q) - u(pi0, q)]`` with moments within a box, in natural units."""
    n, d = v.shape
    weights, rewards, offsets = np.full(n, 1 / n), problem.rewards, -problem.costs
    cost = np.concatenate([-(weights[:, None] * (played @ rewards)).ravel(), weights])
    rows, limits = [], []
    for i in range(n):
        for reward, offset in zip(rewards, offsets, strict=True):
            row = np.zeros(n * d + n)
            row[i * d : (i + 1) * d], row[n * d + i] = reward, -1.0
            rows.append(row)
            limits.append(-offset)
    for k in range(tests.shape[1]):
        for j in range(d):
            row = np.zeros(n * d + n)
            row[j : n * d : d] = weights * tests[:, k]
            start = (weights * tests[:, k]) @ v[:, j] + center[k, j]
            rows += [row, -row]
            limits += [start + radius, radius - start]
    low, high = problem.space.bounds
    ends = [pair for _ in range(n) for pair in zip(low, high, strict=True)] + [(None, None)] * n
    equal: dict[str, Any] = {}
    if isinstance(problem.space, prudent.Simplex):
        sums = np.zeros((n, n * d + n))
        for i in range(n):
            sums[i, i * d : (i + 1) * d] = 1.0
        equal = {"A_eq": sums, "b_eq": np.ones(n)}
    found = linprog(cost, A_ub=np.array(rows), b_ub=np.array(limits), bounds=ends, method="highs", **equal)
    return float(found.fun - weights @ (played @ offsets))


@pytest.mark.parametrize("seed", range(48))
def test_certificates_bracket_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, m, n = (1, 2, 3)[seed % 3], int(rng.integers(2, 5)), int(rng.integers(8, 40))
    rewards, costs = rng.normal(size=(m, d)), 0.3 * rng.normal(size=m)
    if d == 3:
        problem = prudent.DecisionProblem(rewards, costs, space=prudent.Simplex(3))
        v = rng.dirichlet(np.ones(3), n)
        y = np.eye(3)[rng.integers(0, 3, n)]
    else:
        problem = prudent.DecisionProblem(rewards, costs)
        v = rng.random((n, d))
        y = (rng.random((n, d)) < v**2).astype(float)
    rule = [None, prudent.SafetyPolicy(problem), prudent.FixedRule(problem, function=lambda v: [0] * len(v))][
        seed // 3 % 3
    ]
    radius = (0.03, 0.1)[seed % 2]
    slack = prudent.Slack(radius, "linf", center="measured")
    policy = prudent.RobustPolicy(problem, guarantees.Unbiased(), criterion="improvement", against=rule, slack=slack)
    policy.fit(v, y)
    played = (rule or prudent.PlugInPolicy(problem)).predict_proba(v)
    expected = least_gain(problem, v, played, np.ones((n, 1)), (y - v).mean(axis=0)[None], radius)
    certificate, span = policy.certificate_, problem.utility_range
    assert certificate.lower - 1e-8 * span <= expected <= certificate.upper + 1e-8 * span
    assert certificate.upper - certificate.lower <= 1e-6 * span
    # The outcomes are one of the worlds, since the slack is centred at their moments.
    gain = float((problem.utility(y) * (policy.predict_proba(v) - played)).sum(axis=1).mean())
    assert gain >= certificate.lower - 1e-6 * span


def test_without_a_certain_gain_the_rule_in_use_is_played_exactly() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(400)
    policy = prudent.RobustPolicy(STAFFING, "decision-calibrated", criterion="improvement").fit(v)
    assert policy.certificate_.lower == 0.0
    assert policy.certificate_.upper <= 1e-9 * STAFFING.utility_range
    fresh = rng.random(1_000)
    np.testing.assert_array_equal(policy.predict_proba(fresh), prudent.PlugInPolicy(STAFFING).predict_proba(fresh))
    rule = prudent.FixedRule(STAFFING, [0.1, 0.2])
    nothing = prudent.RobustPolicy(STAFFING, "nothing", criterion="improvement", against=rule).fit(v)
    np.testing.assert_array_equal(nothing.predict_proba(fresh), rule.predict_proba(fresh))
    assert nothing.deterministic


def test_full_calibration_improves_on_a_rule_by_best_responding() -> None:
    v = np.linspace(0, 1, 101)
    always = prudent.FixedRule(STAFFING, function=lambda forecasts: ["low"] * len(forecasts))
    policy = prudent.RobustPolicy(STAFFING, guarantees.FullyCalibrated(), criterion="improvement", against=always).fit(
        v
    )
    best = prudent.PlugInPolicy(STAFFING)
    np.testing.assert_array_equal(policy.predict_proba(v), best.predict_proba(v))
    gain = (STAFFING.utility(v) * (best.predict_proba(v) - always.predict_proba(v))).sum(axis=1).mean()
    assert policy.certificate_.lower == pytest.approx(gain)


def biased(n: int = 3_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    v = rng.random(n)
    return v, (rng.random(n) < 0.2 * v).astype(float)


@pytest.mark.parametrize("randomize", [True, False])
def test_a_measured_gain_is_certain_and_survives_files_sql_and_explanations(tmp_path: Path, randomize: bool) -> None:
    v, y = biased()
    options: dict[str, Any] = {"criterion": "improvement", "slack": "audit", "randomize": randomize}
    policy = prudent.RobustPolicy(STAFFING, "bins:5", **options).fit(v, y)
    assert policy.certificate_.lower > 0.001
    played, used = policy.predict_proba(v), prudent.PlugInPolicy(STAFFING).predict_proba(v)
    realised = (STAFFING.utility(y) * (played - used)).sum(axis=1).mean()
    assert realised >= policy.certificate_.lower
    assert policy.certify(v).lower == pytest.approx(policy.certificate_.lower, abs=1e-6)
    policy.save(tmp_path / "policy.json")
    again = prudent.load(tmp_path / "policy.json")
    np.testing.assert_array_equal(again.predict_proba(v), played)
    cases = pd.DataFrame({"f": v, "id": range(len(v))})  # noqa: F841  # DuckDB finds it by name
    text = policy.to_sql("duckdb", "f", key="id")
    actions = [action for (action,) in duckdb.sql(f"SELECT {text} FROM cases ORDER BY id").fetchall()]
    assert actions == policy.predict(v, keys=range(len(v))).tolist()
    bands = policy.bands()
    for point, mixture in zip(v[:50], played[:50], strict=True):
        band = next(band for band in bands if band.first <= point <= band.last)
        assert {STAFFING.actions[a] for a in np.flatnonzero(mixture > 1e-9)} <= set(band.actions)
    assert "forecast" in str(policy.explain(v[0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "regret"}, "criterion must be"),
        ({"against": prudent.PlugInPolicy(STAFFING)}, "with criterion='improvement'"),
        ({"criterion": "improvement", "against": ["low"]}, "FixedRule"),
    ],
)
def test_misuse_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.RobustPolicy(STAFFING, "unbiased", **options).fit([0.1, 0.2])


def test_what_speaks_of_utility_refuses_gains() -> None:
    v, y = biased()
    policy = prudent.RobustPolicy(STAFFING, "bins:5", criterion="improvement", slack="audit").fit(v, y)
    with pytest.raises(InputError, match="criterion='utility'"):
        prudent.confidence_certificate(policy, np.random.default_rng(5).random(100))
    with pytest.raises(InputError, match="criterion='utility'"):
        prudent.PolicyMonitor(policy)


def test_outcomes_that_contradict_a_guarantee_are_said() -> None:
    v, y = biased()
    with pytest.warns(UserWarning, match="the outcomes given contradict the guarantee: the moment '1'"):
        prudent.RobustPolicy(STAFFING, "unbiased").fit(v, y)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize("rule", [None, "safety", "thresholds"])
@pytest.mark.parametrize("guarantee", ["unbiased", "self-orthogonal", "bins:5"])
def test_tables_have_the_gains_of_memory(engine: str, randomize: bool, rule: str | None, guarantee: str) -> None:
    rng = np.random.default_rng(4)
    v = rng.random(5_000)
    frame = pd.DataFrame({"v": v, "y": np.clip(v**2 + 0.1 * rng.normal(size=v.size), 0, 1)})
    table = duckdb.from_df(frame) if engine == "duckdb" else pl.from_pandas(frame).lazy()
    against = {
        None: None,
        "safety": prudent.SafetyPolicy(STAFFING),
        "thresholds": prudent.FixedRule(STAFFING, thresholds=[0.3, 0.9]),
    }[rule]
    options: dict[str, Any] = {"criterion": "improvement", "against": against, "randomize": randomize}
    policy = prudent.RobustPolicy(STAFFING, guarantee, slack=MEASURED, **options)
    memory, other = clone(policy).fit(frame["v"], frame["y"]), clone(policy).fit(prudent.scan(table, "v", "y"))
    # Deterministic rules of slightly different multipliers may differ by more than the mixtures that they are made of.
    close = {"rel": 0, "abs": 2e-6 if randomize else 1e-4}
    assert other.certificate_.lower == pytest.approx(memory.certificate_.lower, **close)
    assert other.certificate_.upper == pytest.approx(memory.certificate_.upper, rel=0, abs=2e-6)
    assert (other.multipliers_ is None) == (memory.multipliers_ is None)
    on_table, in_memory = other.certify(prudent.scan(table, "v")), other.certify(frame["v"])
    assert on_table.lower == pytest.approx(in_memory.lower, abs=1e-9)
    assert on_table.lower <= other.certificate_.lower + 1e-9


def test_tables_of_three_classes_have_the_gains_of_memory() -> None:
    rng = np.random.default_rng(5)
    v = rng.dirichlet(np.ones(3), 4_000)
    y = rng.multinomial(1, v[:, [1, 2, 0]]).argmax(axis=1)
    problem = prudent.DecisionProblem.from_payoffs([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0]])
    frame = pd.DataFrame({"a": v[:, 0], "b": v[:, 1], "c": v[:, 2], "y": y})
    policy = prudent.RobustPolicy(problem, "decision-calibrated", criterion="improvement", slack=MEASURED)
    memory = clone(policy).fit(v, y)
    other = clone(policy).fit(prudent.scan(duckdb.from_df(frame), ["a", "b", "c"], "y"))
    assert memory.certificate_.lower > 0
    assert other.certificate_.lower == pytest.approx(memory.certificate_.lower, rel=0, abs=3e-6)
    assert other.certificate_.upper == pytest.approx(memory.certificate_.upper, rel=0, abs=3e-6)


def test_tables_that_are_trusted_have_the_gains_of_memory() -> None:
    table = duckdb.sql("SELECT 0.3 AS v UNION ALL SELECT 0.9")
    policy = prudent.RobustPolicy(
        STAFFING, guarantees.FullyCalibrated(), criterion="improvement", against=prudent.SafetyPolicy(STAFFING)
    )
    found = clone(policy).fit(prudent.scan(table, "v")).certificate_.lower
    assert found == clone(policy).fit([0.3, 0.9]).certificate_.lower > 0


def test_gains_give_away_what_a_grid_hides_unless_the_rule_in_use_is_played() -> None:
    rng = np.random.default_rng(0)
    points = np.linspace(0, 20, 6)
    problem = prudent.DecisionProblem.from_utility(lambda a, y: 5 * min(a, y) - 3 * a, [2.5, 9, 15], points)
    error = problem.discretization.error
    assert error > 1
    demand = rng.uniform(0, 8, 300)
    wrong = prudent.forecasts_from(problem, samples=np.clip(demand[:, None] + rng.normal(8, 1, (300, 20)), 0, 20))
    right = prudent.forecasts_from(problem, samples=np.clip(demand[:, None] + rng.normal(0, 1, (300, 20)), 0, 20))
    better = prudent.RobustPolicy(problem, "unbiased", criterion="improvement", slack="audit")
    better.fit(wrong.probabilities, demand)
    mixtures, followed = (rule.predict_proba(wrong.probabilities) for rule in (better, prudent.PlugInPolicy(problem)))
    exact = np.array([[5 * min(a, y) - 3 * a for a in problem.actions] for y in demand])
    gain = ((mixtures - followed) * exact).sum(axis=1).mean()
    for found in (better.certificate_, better.certify(wrong.probabilities)):
        assert found.lower <= gain
        assert found.upper - found.lower >= 2 * error
    same = prudent.RobustPolicy(problem, "fully-calibrated", criterion="improvement").fit(right.probabilities)
    for found in (same.certificate_, same.certify(right.probabilities)):
        assert found.lower == pytest.approx(0.0, abs=1e-9)
