"""Four forecasts of rain in Niamey, one season: a single era, in which nothing can be decided by its past."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.field.forecaster import Forecaster, Rows, protection
from prudent.cases.cases import first_days

FILES = ("rain_niamey",)
CITATION = "ECMWF and others; github.com/TimoDimi/replication_DGJ20"
LICENCE = "CC BY 4.0"
LEFT_OUT = "rain_niamey: one season; there is no past to learn from."


def read(folder: Path) -> Iterator[Forecaster]:
    """Shelter or not: it rains on half of the days."""
    rain = pd.read_csv(folder / "rain_niamey.csv.gz")
    day = rain["date"].to_numpy().astype("datetime64[D]")
    for name in ("Logistic", "EMOS", "ENS", "EPC"):
        rows = Rows(rain[name].to_numpy(float), rain["obs"].to_numpy(float), first_days(day, "year"), {}, day, day)
        yield Forecaster("rain_niamey", name, rows, protection((0.3, 0.5, 0.7), actions=("wait", "shelter")))
