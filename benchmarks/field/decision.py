"""What a method answers."""

from __future__ import annotations

from dataclasses import dataclass

import prudent
from benchmarks.field.forecaster import Array, Rows
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.recalibration.segmented import usual_recalibrators

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Decision:
    """What is played on every row, and perhaps what is promised.

    Attributes
    ----------
    mixtures : array of shape (n, m)
    promise : float or None
        The realised mean utility will be at least this, with ``CONFIDENCE``.
    verdict : str
    """

    mixtures: Array
    promise: float | None = None
    verdict: str = ""


def follow(problem: prudent.DecisionProblem, forecasts: Array) -> Decision:
    """Follow forecasts, whether they are recalibrated or not."""
    return Decision(prudent.PlugInPolicy(problem).predict_proba(forecasts))


def recalibrated(place: int, past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Follow forecasts recalibrated by one of the usual three; what is fitted is kept for the next decision."""
    placed = past.by_rows.on(problem.space)
    name, recalibrator = list(usual_recalibrators(placed).items())[place]
    fitted = placed.cache.get(("field", name), lambda: recalibrator.fit_map(placed))
    return follow(problem, fitted.transform(now.by_rows.on(problem.space).forecasts))


def advised(past: Rows, now: Rows, problem: prudent.DecisionProblem, *, periods: bool) -> Decision:
    """Take advice, with eras as periods or without, and promise something where that can be done."""
    advice = prudent.advise(problem, past.by_eras if periods else past.by_rows, confidence=CONFIDENCE)
    promise = None
    if not periods or len(set(past.eras.tolist())) >= FEWEST_PERIODS:
        horizon = "next period" if periods else "average"
        promise = advice.for_cases(now.forecasts, horizon=horizon, realised=True).lower
    return Decision(advice.policy.predict_proba(now.forecasts), promise, advice.verdict.kind.value)
