"""Recalibrate by one number, then follow: bias in log-odds, temperature of classes, shift of numbers."""

from __future__ import annotations

import prudent
from benchmarks.field.decision import Decision, recalibrated
from benchmarks.field.forecaster import Rows

NAME, ORDER = "bias, temperature or shift", 1


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Fit on all past rows."""
    return recalibrated(0, past, now, problem)
