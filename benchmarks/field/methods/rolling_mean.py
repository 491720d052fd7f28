"""Forecasts corrected by the mean error of the last 28 days, within the era, too, as outcomes become known."""

from __future__ import annotations

import numpy as np

import prudent
from benchmarks.field.decision import Decision, follow
from benchmarks.field.forecaster import Rows

NAME, ORDER, WITHIN = "28-day mean error", 20, True
_DAYS = np.timedelta64(28, "D")


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision | None:
    """Correct every day by the outcomes that became known in the 28 days before it."""
    if past.decided is None or past.known is None or now.decided is None or now.known is None:
        return None
    both = [rows.by_rows.on(problem.space) for rows in (past, now)]
    known = np.concatenate([past.known, now.known])
    errors = np.concatenate([rows.known_outcomes - rows.forecasts for rows in both])
    order = np.argsort(known, kind="stable")
    known, sums = known[order], np.vstack([np.zeros(errors.shape[1]), np.cumsum(errors[order], axis=0)])
    # Outcomes known on the very day may come after the decision.
    last, first = (np.searchsorted(known, day, side="left") for day in (now.decided, now.decided - _DAYS))
    count = np.maximum(last - first, 1)[:, None]
    return follow(problem, problem.space.project(both[1].forecasts + (sums[last] - sums[first]) / count))
