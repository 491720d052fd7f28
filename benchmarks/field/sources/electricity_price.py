"""Two models of day-ahead electricity prices in Germany and the Nordic countries, by months."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import prudent
from benchmarks.field.forecaster import Forecaster, Rows, Setting
from prudent.cases.cases import first_days

FILES = ("electricity_price_de", "electricity_price_np")
CITATION = "Lago, Marcjasz, De Schutter, Weron: epftoolbox, github.com/jeslago/epftoolbox"
LICENCE = "Apache-2.0"

_BOX = prudent.Box(-150.0, 250.0)  # EUR per MWh
_WORTHS = (25.0, 32.0, 40.0)  # of an hour of the load: around the quartiles of prices in both markets


def read(folder: Path) -> Iterator[Forecaster]:
    """Idle, run half of a flexible load, at which it is a little more efficient, or all of it."""
    settings = {}
    for worth in _WORTHS:
        paid = [0.0, -0.5 * worth - 1.0, -worth]
        problem = prudent.DecisionProblem([0.0, -0.5, -1.0], paid, actions=["idle", "half", "run"], space=_BOX)
        settings[f"worth {worth:g}"] = Setting(problem, worth)
    for name in FILES:
        prices = pd.read_csv(folder / f"{name}.csv.gz")
        price, hour = prices["price"].to_numpy(float), prices["hour"].to_numpy().astype(str)
        day = hour.astype("datetime64[D]")
        clock = {"hour": pd.Series(hour).str[11:13].to_numpy().astype(str)}
        for model in ("dnn", "lear"):
            rows = Rows(prices[model].to_numpy(float), price, first_days(day, "month"), clock, day, day)
            yield Forecaster(name, model, rows, settings)
