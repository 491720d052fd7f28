"""Football by FiveThirtyEight: first team, tie or second team, by world cups; few rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import prudent
from benchmarks.field.forecaster import Forecaster, Rows, Setting

FILES = ("world_cup_men",)
CITATION = "FiveThirtyEight, github.com/fivethirtyeight/checking-our-work-data"
LICENCE = "CC BY 4.0"

_CLASSES = ["first", "tie", "second"]
_PRICES = (0.25, 0.35, 0.45)  # of any ticket that pays 1: below and above one in three


def read(folder: Path) -> Iterator[Forecaster]:
    """Bet on one of three, or pass."""
    games = pd.read_csv(folder / "world_cup_men.csv.gz").sort_values(["date", "team1"])
    columns = ["prob1", "probtie", "prob2"]
    chances = games[columns].to_numpy()
    came = games[[f"{name}_outcome" for name in columns]].to_numpy()
    day = games["date"].to_numpy().astype("datetime64[D]")
    settings = {}
    for price in _PRICES:
        payoffs = np.vstack([np.zeros(3), np.eye(3) - price])
        problem = prudent.DecisionProblem.from_payoffs(payoffs, actions=["pass", *_CLASSES], classes=_CLASSES)
        settings[f"price {price:g}"] = Setting(problem, price)
    outcomes = np.array(_CLASSES)[came.argmax(axis=1)]
    chances = chances / chances.sum(axis=1, keepdims=True)
    yield Forecaster(
        "world_cup_men",
        "538",
        Rows(chances, outcomes, games["season"].to_numpy(), decided=day, known=day),
        settings,
    )
