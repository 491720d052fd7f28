"""The paper's robust policy: errors orthogonal to forecasts, up to what outcomes of past eras leave open."""

from __future__ import annotations

import prudent
from benchmarks.field.decision import CONFIDENCE, Decision
from benchmarks.field.forecaster import Rows
from prudent.cases.mean_bounds import FEWEST_PERIODS

NAME, ORDER = "robust policy, audited slack", 6


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision | None:
    """Fit on past rows with slack by eras; before there are four of them, by rows and without a promise."""
    timed = len(set(past.eras.tolist())) >= FEWEST_PERIODS
    policy = prudent.RobustPolicy(problem, "self-orthogonal", slack="audit", confidence=CONFIDENCE)
    policy.fit(past.by_eras if timed else past.by_rows)
    promise = policy.certify(now.forecasts, horizon="next period", realised=True).lower if timed else None
    return Decision(policy.predict_proba(now.forecasts), promise)
