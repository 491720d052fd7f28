"""Eighteen centres that forecast solar flares of class M1 or more on the next day, by quarters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.field.forecaster import Forecaster, Rows, protection
from prudent.cases.cases import first_days

FILES = ("solar_flares_m1",)
CITATION = "Dimitriadis, Gneiting, Jordan: replication data, github.com/TimoDimi/replication_DGJ20"
LICENCE = "raw data CC0"


def read(folder: Path) -> Iterator[Forecaster]:
    """Protect satellites: flares are rare (3% of days), so protection has to be cheap to be of interest."""
    flares = pd.read_csv(folder / "solar_flares_m1.csv.gz")
    settings = protection((0.05, 0.1, 0.2), actions=("wait", "protect"))
    for centre in flares.columns[1:-1]:
        known = flares[flares[centre].between(0, 1)]  # empty, or -0.01: no forecast
        day = known["VALID_DATE"].to_numpy().astype("datetime64[D]")
        came = known["rlz.M1"].to_numpy(float)
        rows = Rows(known[centre].to_numpy(float), came, first_days(day, "quarter"), decided=day, known=day)
        yield Forecaster("solar_flares_m1", centre, rows, settings)
