"""Results on rows that were asked before equal those on fresh rows; predictions of groups those of every row."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import numpy as np
import pytest
import sklearn.base

import prudent

N = 6_000
UNIT = prudent.Box(0.0, 1.0)


def problem(cost: float) -> prudent.DecisionProblem:
    return prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, cost])


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    forecasts = rng.beta(2, 3, N)
    return forecasts, (rng.random(N) < forecasts**1.2).astype(float), rng.integers(0, 3, N).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_ladder_and_audit_are_those_of_fresh_rows(rows: tuple[np.ndarray, ...], weighted: bool) -> None:
    forecasts, outcomes, some = rows
    weights = some if weighted else None
    cases = prudent.Cases(forecasts, outcomes, weights=weights)
    sample = cases.on(UNIT)
    for cost in (0.1, 0.11, 0.3, 0.1):
        decision = problem(cost)
        ladder = prudent.guarantee_ladder(decision, cases, confidence=0.9)
        fresh = prudent.guarantee_ladder(decision, forecasts, outcomes, confidence=0.9, weights=weights)
        assert ladder.columns == fresh.columns
        guarantee = prudent.guarantees.SelfOrthogonal(intercept=True)
        found = sample.measure(guarantee, 0.9).estimates
        expected = prudent.audit(decision, forecasts, outcomes, guarantee=guarantee, confidence=0.9, weights=weights)
        assert str(found) == str(expected.measured)


def test_what_does_not_depend_on_the_decision_outlasts_it(rows: tuple[np.ndarray, ...]) -> None:
    forecasts, outcomes, _ = rows
    cases = prudent.Cases(forecasts, outcomes)
    sample = cases.on(UNIT)
    guarantee = prudent.guarantees.Unbiased()
    tests, moments = sample.evaluate(guarantee), sample.measure(guarantee, 0.9).estimates
    for k in range(3):
        decision = problem(0.1 + 0.01 * k)
        prudent.guarantee_ladder(decision, cases, confidence=0.9)
    assert sample.evaluate(guarantee) is tests
    for confidence in (0.8, 0.9):
        assert sample.measure(guarantee, confidence).estimates.means.means is moments.means.means


def test_the_cache_goes_with_its_rows(rows: tuple[np.ndarray, ...]) -> None:
    forecasts, outcomes, _ = rows
    sample = prudent.Cases(forecasts, outcomes).on(UNIT)
    kept = weakref.ref(sample.evaluate(prudent.guarantees.Unbiased()))
    assert kept() is not None
    del sample
    gc.collect()
    assert kept() is None


def test_rows_of_weight_zero_are_left_out_and_others_keep_their_weight() -> None:
    sample = prudent.Cases([0.1, 0.2, 0.3, 0.4], weights=[1.0, 0.0, 2.0, 1.0]).on(UNIT)
    np.testing.assert_array_equal(sample.forecasts[:, 0], [0.1, 0.3, 0.4])
    np.testing.assert_array_equal(sample.weights, [0.25, 0.5, 0.25])
    dropped = prudent.Cases([0.1, 0.2, 0.3], [1.0, np.nan, 0.0], missing="drop").on(UNIT)
    np.testing.assert_array_equal(dropped.weights, [0.5, 0.5])
    assert dropped.n_dropped == 1


def test_a_policy_fitted_to_a_sample_is_that_of_fit(rows: tuple[np.ndarray, ...]) -> None:
    forecasts, outcomes, some = rows
    sample = prudent.Cases(forecasts, outcomes, weights=some).on(UNIT)
    for slack in (0.05, "audit", prudent.Slack("audit")):
        for family in (prudent.RobustPolicy, partial(prudent.RobustPolicy, randomize=False)):
            policy = family(problem(0.1), prudent.guarantees.SelfOrthogonal(), slack=slack)
            found = sklearn.base.clone(policy).fit_rows(sample)
            expected = policy.fit(forecasts, outcomes, sample_weight=some)
            assert found.certificate_ == expected.certificate_
            np.testing.assert_array_equal(found.multipliers_, expected.multipliers_)


def test_ladder_and_audit_of_three_classes_are_those_of_fresh_rows() -> None:
    """Scalar tests beside the utility's vector test are measured part by part, as fresh rows are."""
    rng = np.random.default_rng(6)
    chances = rng.dirichlet([2, 3, 2], N)
    drawn = np.eye(3)[(rng.random(N)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)]
    payoffs = np.array([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
    cases = prudent.Cases(chances, drawn)
    sample = cases.on(prudent.Simplex(3))
    for edited in (-1.0, -0.9, -1.0):
        payoffs[0, 2] = edited
        decision = prudent.DecisionProblem.from_payoffs(payoffs.copy())
        ladder = prudent.guarantee_ladder(decision, cases, confidence=0.9)
        fresh = prudent.guarantee_ladder(decision, chances, drawn, confidence=0.9)
        for name, column in fresh.columns.items():
            assert ladder.columns[name] == (column if isinstance(column[0], str) else pytest.approx(column, abs=1e-9))
        guarantee = prudent.guarantees.SelfOrthogonal(intercept=True)
        found = sample.measure(guarantee, 0.9).estimates
        expected = prudent.audit(decision, chances, drawn, guarantee=guarantee, confidence=0.9)
        assert str(found) == str(expected.measured)


def test_segments_are_the_values_with_enough_rows_and_periods() -> None:
    kind = np.repeat(["a", "b", "c", "d"], [40, 30, 29, 60])
    periods = np.arange(159) % 5
    periods[kind == "d"] = np.arange(60) % 3  # in three periods only
    rows = prudent.Cases(np.full(159, 0.5), context={"kind": kind}).on(prudent.Box(0, 1))
    found = {name: len(own) for name, own in rows.segments(["kind"])}
    assert found == {"kind=a": 40, "kind=b": 30, "kind=d": 60, "kind=other": 29}
    timed = prudent.Cases(np.full(159, 0.5), periods=periods, context={"kind": kind}).on(prudent.Box(0, 1))
    parts = dict(timed.segments(["kind"]))
    assert {name: len(own) for name, own in parts.items()} == {"kind=a": 40, "kind=b": 30, "kind=other": 89}
    np.testing.assert_array_equal(parts["kind=other"], np.flatnonzero(np.isin(kind, ["c", "d"])))


def test_every_row_is_in_one_segment_of_each_column() -> None:
    rng = np.random.default_rng(0)
    context = {"a": rng.integers(0, 40, 1_000), "b": rng.choice(["x", "y"], 1_000)}
    rows = prudent.Cases(np.full(1_000, 0.5), context=context).on(prudent.Box(0, 1))
    for name in context:
        everything = np.concatenate([own for _, own in rows.segments([name])])
        np.testing.assert_array_equal(np.sort(everything), np.arange(1_000))
