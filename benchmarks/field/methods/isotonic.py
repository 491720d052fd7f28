"""Recalibrate by isotonic regression, then follow."""

from __future__ import annotations

import prudent
from benchmarks.field.decision import Decision, recalibrated
from benchmarks.field.forecaster import Rows

NAME, ORDER = "isotonic", 3


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Fit on all past rows."""
    return recalibrated(2, past, now, problem)
