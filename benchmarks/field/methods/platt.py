"""Recalibrate by Platt, vector or affine scaling, then follow."""

from __future__ import annotations

import prudent
from benchmarks.field.decision import Decision, recalibrated
from benchmarks.field.forecaster import Rows

NAME, ORDER = "Platt, vector or affine", 2


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Fit on all past rows."""
    return recalibrated(1, past, now, problem)
