"""Six models on flu admissions in US states, five quantiles, by months of three seasons.

Admissions become one of six levels of the rate per 100,000 people. The distribution function goes through the
quantiles in straight lines; half of the tail beyond the outer ones lies below any edge there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.field.forecaster import Forecaster, Rows
from benchmarks.field.levels import level_settings
from prudent.cases.cases import first_days

FILES = ("flusight_admissions",)
CITATION = "US CDC, FluSight forecast hub, github.com/cdcepi/FluSight-forecast-hub"
LICENCE = "MIT"

_LEVELS = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
_EDGES = np.array([0.5, 1.0, 2.0, 4.0, 8.0])  # per 100,000 people and week
_CLASSES = ["below 0.5", "0.5 to 1", "1 to 2", "2 to 4", "4 to 8", "above 8"]
_DAYS = np.timedelta64(14, "D")  # until the outcome is known


def read(folder: Path) -> Iterator[Forecaster]:
    """Keep beds for one of the levels."""
    table = pd.read_csv(folder / "flusight_admissions.csv.gz")
    seen = table[table["observed"] > 0]
    people = (seen["observed"] / seen["rate_per_100k"]).groupby(seen["location"]).median()
    settings = level_settings(list(range(6)), [f"beds {level}" for level in range(6)], _CLASSES)
    for model, part in table.groupby("model"):
        rates = part[[f"q{level:g}" for level in _LEVELS]].to_numpy() / people[part["location"]].to_numpy()[:, None]
        below = np.array([np.interp(_EDGES, row, _LEVELS, left=0.0125, right=0.9875) for row in rates])
        chances = np.diff(below, axis=1, prepend=0.0, append=1.0)
        day = part["reference_date"].to_numpy().astype("datetime64[D]")
        observed = (part["observed"] / people[part["location"]].to_numpy()).to_numpy()
        rows = Rows(
            chances,
            np.array(_CLASSES)[np.searchsorted(_EDGES, observed, side="right")],
            first_days(day, "month"),
            {"location": part["location"].to_numpy().astype(str)},
            decided=day,
            known=day + _DAYS,
        )
        yield Forecaster("flusight_admissions", str(model), rows, settings)
