"""Advice of this library without periods: as if rows were independent, which they are not."""

from __future__ import annotations

import prudent
from benchmarks.field.decision import Decision, advised
from benchmarks.field.forecaster import Rows

NAME, ORDER = "advice, by rows", 8


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Rows are the units of all bounds."""
    return advised(past, now, problem, periods=False)
