"""The single action that was best in the past, for all rows."""

from __future__ import annotations

import numpy as np

import prudent
from benchmarks.field.decision import Decision
from benchmarks.field.forecaster import Rows

NAME, ORDER = "best single action", 4


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Ignore the forecast."""
    best = past.utilities(problem).mean(axis=0).argmax()
    return Decision(np.eye(problem.n_actions)[np.full(len(now.forecasts), best)])
