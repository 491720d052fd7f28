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
