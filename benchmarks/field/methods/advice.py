"""Advice of this library, with eras as periods."""

from __future__ import annotations

import prudent
from benchmarks.field.decision import Decision, advised
from benchmarks.field.forecaster import Rows

NAME, ORDER = "advice, by eras", 7


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Eras are the units of all bounds; the promise is for the one that comes."""
    return advised(past, now, problem, periods=True)
