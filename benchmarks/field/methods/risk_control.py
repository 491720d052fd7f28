"""MAPIE's risk control: act above a threshold at which acting pays, with 90% confidence in the past.

Acting pays where the loss that it prevents is more probable than its price over that loss, so the precision of acting
is controlled at this level; of all thresholds that keep it the one with the highest recall. None keeps it: never act.
MAPIE controls precision and recall of events, so only decisions of two actions on an event are within its reach.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import prudent
from benchmarks.field.decision import Decision
from benchmarks.field.forecaster import Array, Rows

NAME, ORDER, NEEDS = "MAPIE, controlled precision", 30, "mapie"


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision | None:
    """Choose the threshold on past rows."""
    slopes, costs = problem.rewards[:, 0], problem.costs
    if problem.n_actions != 2 or not past.two_valued or not now.two_valued:
        return None
    acts = int(slopes.argmax())
    level = (costs[acts] - costs[1 - acts]) / (slopes[acts] - slopes[1 - acts])
    from mapie.risk_control import BinaryClassificationController

    def chances(forecasts: Any) -> Array:
        return np.column_stack([1 - np.ravel(forecasts), np.ravel(forecasts)])

    controller = BinaryClassificationController(
        chances,
        "precision",
        target_level=float(level),
        confidence_level=0.9,
        best_predict_param_choice="recall",
        list_predict_params=np.unique(np.quantile(past.forecasts, np.linspace(0, 0.99, 50))),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where no threshold keeps the level
        controller.calibrate(past.forecasts.reshape(-1, 1), past.outcomes.astype(int))
    best = controller.best_predict_param
    acting = np.zeros(len(now.forecasts), dtype=bool) if best is None else now.forecasts >= np.ravel(best)[0]
    return Decision(np.eye(2)[np.where(acting, acts, 1 - acts)])
