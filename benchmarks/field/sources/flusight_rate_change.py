"""Eight models on the change of flu admissions in US states, five classes, by months."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.field.forecaster import Forecaster, Rows
from benchmarks.field.levels import level_settings
from prudent.cases.cases import first_days

FILES = ("flusight_rate_change",)
CITATION = "US CDC, FluSight forecast hub, github.com/cdcepi/FluSight-forecast-hub"
LICENCE = "MIT"

_CLASSES = ["large_decrease", "decrease", "stable", "increase", "large_increase"]
_ACTIONS = ["release", "hold", "add", "surge"]
_NEEDED = [0, 1, 1, 2, 3]
_DAYS = np.timedelta64(14, "D")  # until the outcome is known


def read(folder: Path) -> Iterator[Forecaster]:
    """Surge, add, hold or release staff; probabilities are off the sum 1 by rounding."""
    table = pd.read_csv(folder / "flusight_rate_change.csv.gz")
    for model, part in table.groupby("model"):
        chances, day = part[_CLASSES].to_numpy(float), part["reference_date"].to_numpy().astype("datetime64[D]")
        rows = Rows(
            chances / chances.sum(axis=1, keepdims=True),
            part["outcome"].to_numpy().astype(str),
            first_days(day, "month"),
            {"location": part["location"].to_numpy().astype(str)},
            decided=day,
            known=day + _DAYS,
        )
        yield Forecaster("flusight_rate_change", str(model), rows, level_settings(_NEEDED, _ACTIONS, _CLASSES))
