"""Basketball and baseball by FiveThirtyEight: the probability that the first team wins, by seasons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import prudent
from benchmarks.field.forecaster import Forecaster, Rows, Setting

FILES = ("nba_games", "mlb_games")
CITATION = "FiveThirtyEight, github.com/fivethirtyeight/checking-our-work-data"
LICENCE = "CC BY 4.0"
LEFT_OUT = "mlb_games: one game of 2016 that ended in a tie."

#: Of a ticket that pays 1 if the first team wins. Basketball games are uneven, baseball games nearly even.
_PRICES = {"nba_games": (0.3, 0.5, 0.7), "mlb_games": (0.45, 0.5, 0.55)}


def read(folder: Path) -> Iterator[Forecaster]:
    """Pass, buy half a ticket a little cheaper, or a whole one."""
    for name in FILES:
        games = pd.read_csv(folder / f"{name}.csv.gz").sort_values(["date", "team1", "team2", "prob1"])
        games = games[games["prob1_outcome"].isin((0, 1))]
        day = games["date"].to_numpy().astype("datetime64[D]")
        seasons, names = games["season"].to_numpy(), {"team1": games["team1"].to_numpy()}
        chances, won = games["prob1"].to_numpy(), games["prob1_outcome"].to_numpy(float)
        rows = Rows(chances, won, seasons, names, decided=day, known=day)
        settings = {}
        for price in _PRICES[name]:
            worth, paid = [0.0, 0.5, 1.0], [0.0, 0.475 * price, price]
            problem = prudent.DecisionProblem(worth, paid, actions=["pass", "half", "buy"])
            settings[f"price {price:g}"] = Setting(problem, price)
        yield Forecaster(name, "538", rows, settings)
