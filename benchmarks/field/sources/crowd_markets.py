"""Prediction markets and crowds on questions of the world, by the quarter in which the forecast was due.

A question was kept in these data if it was resolved by the day they were collected. Questions that close later were
kept only where something happened early: of those due from April 2026 on all were a yes. A participant knows when a
question closes and not when it is resolved, so those that close after the data end are left out, and a question counts
as known once it is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.field.forecaster import Forecaster, Rows, protection
from prudent.cases.cases import first_days

FILES = ("crowd_markets",)
CITATION = "ForecastBench, Forecasting Research Institute, github.com/forecastingresearch/forecastbench-datasets"
LICENCE = "CC BY-SA 4.0"

LEFT_OUT = (
    "crowd_markets: questions that close after the last day of the data. They were kept only where they were resolved "
    "early: of those due in the second and third quarter of 2026 all 44 were resolved to yes."
)
_END = "2026-08-20"  # the last resolution in the data, but for one of a question that is dated at its close


def read(folder: Path) -> Iterator[Forecaster]:
    """Act now, or wait."""
    questions = pd.read_csv(folder / "crowd_markets.csv.gz")
    questions = questions[questions["resolved_to"].isin((0.0, 1.0)) & (questions["close_date"] <= _END)]
    due = questions["forecast_due_date"].to_numpy().astype("datetime64[D]")
    rows = Rows(
        questions["crowd_probability"].to_numpy(float),
        questions["resolved_to"].to_numpy(float),
        first_days(due, "quarter"),
        {"source": questions["source"].to_numpy().astype(str)},
        decided=due,
        known=questions["close_date"].to_numpy().astype("datetime64[D]") + 10,
    )
    yield Forecaster("crowd_markets", "crowd", rows, protection((0.1, 0.3, 0.5), actions=("wait", "act")))
