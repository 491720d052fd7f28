"""The audit of the best rung allows for the choice of the rung."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent.auditing import audit_best_rung

PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


@pytest.mark.parametrize("wrong", [False, True])
def test_is_the_audit_of_the_best_rung_at_the_confidence_of_each(wrong: bool) -> None:
    rng = np.random.default_rng(3)
    forecasts = rng.random(2_000)
    outcomes = (rng.random(2_000) < (1 - forecasts if wrong else forecasts)).astype(float)
    walked = audit_best_rung(forecasts, outcomes, PROBLEM, confidence=0.9, tolerance=0.02)
    ladder = prudent.guarantee_ladder(forecasts, outcomes, PROBLEM, confidence=0.9)
    assert walked.ladder.best.name == ladder.best.name
    expected = prudent.audit(
        forecasts, outcomes, ladder.best.guarantee, problem=PROBLEM, confidence=0.98, tolerance=0.02
    )
    assert walked.audit.confidence == pytest.approx(1 - 0.1 / 5)
    assert walked.audit.verdict.kind is expected.verdict.kind
    assert str(walked).startswith(str(ladder))
    assert str(walked).endswith(str(walked.audit))


def test_a_few_rows_stand_on_nothing() -> None:
    """Where nothing can be measured, the rung without a promise is the best, and it can be audited, too."""
    walked = audit_best_rung([0.5, 0.6, 0.4], [1.0, 0.0, 1.0], PROBLEM)
    assert walked.ladder.best.name == "nothing"
    assert walked.audit.verdict.kind is prudent.VerdictKind.NOT_ENOUGH_DATA
