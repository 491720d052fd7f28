"""MCGrad's multicalibration: gradient-boosted trees on the forecast and what else is known, then follow.

For probabilities of an event with columns beside them.
"""

from __future__ import annotations

import logging
import warnings

import pandas as pd

import prudent
from benchmarks.field.decision import Decision, follow
from benchmarks.field.forecaster import Rows

NAME, ORDER, NEEDS = "MCGrad with context", 31, "mcgrad"
_FEWEST = 100


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision | None:
    """Fit on all past rows; fewer than a hundred leave the forecast as it is."""
    if not past.two_valued or not past.context:
        return None
    if len(past.forecasts) < _FEWEST or len(set(past.outcomes.tolist())) < 2:
        return follow(problem, now.forecasts)

    def fitted() -> object:
        from mcgrad.methods import MCGrad

        logging.getLogger("mcgrad").setLevel(logging.ERROR)

        model = MCGrad(lightgbm_params={"num_threads": 1, "deterministic": True, "seed": 0}, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(_frame(past), "forecast", "outcome", categorical_feature_column_names=list(past.context))
        return model

    model = past.by_rows.on(problem.space).cache.get(("field", NAME), fitted)
    moved = model.predict(_frame(now), "forecast", categorical_feature_column_names=list(now.context))
    return follow(problem, moved)


def _frame(rows: Rows) -> pd.DataFrame:
    clipped = rows.forecasts.clip(1e-6, 1 - 1e-6)  # it takes log-odds
    return pd.DataFrame({"forecast": clipped, "outcome": rows.outcomes.astype(int), **rows.context})
