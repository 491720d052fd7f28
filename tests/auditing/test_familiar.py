"""Rows that remember give what rows that do not would."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent.auditing import FamiliarRows, climb, inspect, usual_guarantees
from prudent.auditing import familiar as module

N = 6_000


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
    familiar = FamiliarRows.read(forecasts, outcomes, problem(0.1), weights)
    for cost in (0.1, 0.11, 0.3, 0.1):
        decision = problem(cost)
        ladder = climb(familiar, decision, usual_guarantees(decision), 0.9, center="measured")
        fresh = prudent.guarantee_ladder(
            forecasts, outcomes, decision, confidence=0.9, center="measured", sample_weight=weights
        )
        assert ladder.columns == fresh.columns
        guarantee = prudent.guarantees.SelfOrthogonal(intercept=True)
        found = inspect(familiar, guarantee, decision, 0.9)
        expected = prudent.audit(
            forecasts, outcomes, guarantee, problem=decision, confidence=0.9, sample_weight=weights
        )
        assert str(found) == str(expected)


def test_little_is_kept(rows: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    forecasts, outcomes, _ = rows
    monkeypatch.setattr(module, "_MOST_BYTES", 5 * N * 8)
    familiar = FamiliarRows.read(forecasts, outcomes, problem(0.1))
    guarantees = [prudent.guarantees.Polynomial(degree) for degree in (1, 2, 6)]
    first, second, large = (familiar.evaluate(guarantee) for guarantee in guarantees)
    assert familiar.evaluate(guarantees[1]) is second
    assert familiar.evaluate(guarantees[0]) is not first
    assert familiar.evaluate(guarantees[2]) is not large


def test_few_are_kept_however_small(rows: tuple[np.ndarray, ...]) -> None:
    forecasts, outcomes, _ = (part[:10] for part in rows)
    familiar = FamiliarRows.read(forecasts, outcomes, problem(0.1))
    decisions = [problem(0.1 + 0.001 * k) for k in range(20)]
    first = [familiar.best_actions(decision) for decision in decisions]
    assert familiar.best_actions(decisions[-1]) is first[-1]
    assert familiar.best_actions(decisions[0]) is not first[0]
    np.testing.assert_array_equal(familiar.best_actions(decisions[0]), first[0])


def test_rows_with_equal_tests_are_played_as_every_row_would_be(rows: tuple[np.ndarray, ...]) -> None:
    forecasts, outcomes, _ = rows
    rng = np.random.default_rng(5)
    chances = rng.dirichlet([2, 3, 2], N)
    classes = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
    drawn = np.eye(3)[(rng.random(N)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)]
    line = problem(0.1)
    for decision, v, y in ((line, forecasts[:, None], outcomes[:, None]), (classes, chances, drawn)):
        familiar = FamiliarRows.read(v, y, decision)
        for guarantee in usual_guarantees(decision).values():
            for family in (prudent.RobustPolicy, prudent.PureRobustPolicy):
                policy = family(decision, guarantee, slack=0.01).fit(v)
                np.testing.assert_array_equal(familiar.play(policy), policy.predict_proba(v))


def test_ladder_and_audit_of_three_classes_are_those_of_fresh_rows() -> None:
    """Scalar tests beside the utility's vector test are measured part by part, as fresh rows are."""
    rng = np.random.default_rng(6)
    chances = rng.dirichlet([2, 3, 2], N)
    drawn = np.eye(3)[(rng.random(N)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)]
    payoffs = np.array([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
    familiar = FamiliarRows.read(chances, drawn, prudent.DecisionProblem.from_payoffs(payoffs))
    for edited in (-1.0, -0.9, -1.0):
        payoffs[0, 2] = edited
        decision = prudent.DecisionProblem.from_payoffs(payoffs.copy())
        ladder = climb(familiar, decision, usual_guarantees(decision), 0.9, center="measured")
        fresh = prudent.guarantee_ladder(chances, drawn, decision, confidence=0.9, center="measured")
        for name, column in fresh.columns.items():
            assert ladder.columns[name] == (column if isinstance(column[0], str) else pytest.approx(column, abs=1e-9))
        guarantee = prudent.guarantees.SelfOrthogonal(intercept=True)
        found = inspect(familiar, guarantee, decision, 0.9)
        expected = prudent.audit(chances, drawn, guarantee, problem=decision, confidence=0.9)
        assert str(found) == str(expected)
