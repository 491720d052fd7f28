"""Professional forecasters on a decline of US output, by horizon and five years of target quarters.

A row is one person's forecast for one quarter, so that many rows share an outcome. The first release of a quarter
comes a month after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.field.forecaster import Forecaster, Rows, protection

FILES = ("spf_recession",)
CITATION = (
    "Survey of Professional Forecasters, Federal Reserve Bank of Philadelphia; github.com/TimoDimi/replication_DGJ20"
)
LICENCE = "raw data CC0"


def read(folder: Path) -> Iterator[Forecaster]:
    """Hedge against a decline, half of it, or not at all; a quarter in seven sees one."""
    survey = pd.read_csv(folder / "spf_recession.csv.gz").dropna(subset=["probability", "decline_first_release"])
    settings = protection((0.1, 0.25, 0.5), half=True, actions=("nothing", "half", "hedge"))
    for horizon, part in survey.groupby("horizon_quarters"):
        target = part["target_quarter"].to_numpy().astype("datetime64[D]")
        after = (target.astype("datetime64[M]") + 4).astype("datetime64[D]")  # a month after the quarter
        rows = Rows(
            part["probability"].to_numpy(float),
            part["decline_first_release"].to_numpy(float),
            5 * ((target.astype("datetime64[Y]").astype(int) + 1970) // 5),
            {"forecaster": part["forecaster"].to_numpy().astype(str)},
            decided=part["issued"].to_numpy().astype("datetime64[D]") + 45,  # in the middle of the quarter
            known=after,
        )
        yield Forecaster("spf_recession", f"{horizon} quarters ahead", rows, settings)
