"""The online decision calibrator of this library, which learns within the era, too, as outcomes become known.

It predicts day by day; of the past it hears the latest 500 rows.
"""

from __future__ import annotations

import numpy as np

import prudent
from benchmarks.field.decision import Decision, follow
from benchmarks.field.forecaster import Rows

NAME, ORDER, WITHIN, SLOW = "online calibrator", 21, True, True
_ROWS = 500


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision | None:
    """Predict the rows of a day, then learn what becomes known before the next."""
    if past.decided is None or past.known is None or now.decided is None or now.known is None:
        return None
    latest = past.where(np.sort(np.argsort(past.decided, kind="stable")[-_ROWS:]))
    both = [rows.by_rows.on(problem.space) for rows in (latest, now)]
    forecasts, outcomes = (
        np.concatenate([getattr(rows, name) for rows in both]) for name in ("forecasts", "known_outcomes")
    )
    decided, known = (np.concatenate([getattr(rows, name) for rows in (latest, now)]) for name in ("decided", "known"))
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(problem, random_state=0)
    moved, waiting = np.empty_like(forecasts), np.ones(len(known), dtype=bool)
    predicted = np.zeros(len(known), dtype=bool)
    for day in np.unique(decided):
        heard = np.flatnonzero(predicted & waiting & (known < day))
        if heard.size:
            calibrator.update(heard.tolist(), outcomes[heard])
            waiting[heard] = False
        today = np.flatnonzero(decided == day)
        moved[today] = calibrator.predict(today.tolist(), forecasts[today])
        predicted[today] = True
    return follow(problem, moved[len(latest.forecasts) :])
