"""Follow the forecast: what all others are compared with."""

from __future__ import annotations

import prudent
from benchmarks.field.decision import Decision
from benchmarks.field.decision import follow as followed
from benchmarks.field.forecaster import Rows

NAME, ORDER = "follow the forecast", 0


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:  # noqa: ARG001  # all methods are called so
    """Take the action that is best if the forecast is right."""
    return followed(problem, now.forecasts)
