"""Real forecasters with outcomes and periods: what ``--data-dir`` holds in ``field/``, as cells of one table.

Every cell is one forecaster (or one of its horizons) with one decision. Sources and licences: benchmarks/README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import prudent
from prudent.cases.periods import first_days

_PRICES = (0.1, 0.3, 0.5, 0.7)  # of acting, over the loss that it prevents


@dataclass(frozen=True)
class Cell:
    """One forecaster and one decision."""

    source: str
    name: str
    problem: prudent.DecisionProblem
    forecasts: Any
    outcomes: Any
    periods: Any


def field_cells(folder: Path) -> Iterator[Cell]:
    """Read all sources."""
    import pandas as pd

    def read(name: str) -> Any:
        return pd.read_csv(folder / f"{name}.csv.gz")

    for name in ("nba_games", "mlb_games"):
        games = read(name)
        yield from _binary(name, "", games["prob1"], games["prob1_outcome"], games["season"])
    flares = read("solar_flares_m1")
    for centre in flares.columns[1:-1]:
        known = flares[flares[centre].between(0, 1)]  # empty, or -0.01: no forecast
        quarters = first_days(known["VALID_DATE"].tolist(), "quarter")
        yield from _binary("solar_flares_m1", centre, known[centre], known["rlz.M1"], quarters)
    survey = read("spf_recession").dropna(subset=["probability", "decline_first_release"])
    for horizon, part in survey.groupby("horizon_quarters"):
        eras = [5 * (int(quarter[:4]) // 5) for quarter in part["target_quarter"]]
        yield from _binary("spf_recession", str(horizon), part["probability"], part["decline_first_release"], eras)
    crowd = read("crowd_markets")
    crowd = crowd[crowd["resolved_to"].isin((0.0, 1.0))]
    quarters = first_days(crowd["forecast_due_date"].tolist(), "quarter")
    yield from _binary("crowd_markets", "", crowd["crowd_probability"], crowd["resolved_to"], quarters)
    for model, part in read("llm_confidence").groupby("model"):
        yield from _binary("llm_confidence", str(model), part["confidence"], part["correct"], part["task"])
    flu, classes = read("flusight_rate_change"), ["large_decrease", "decrease", "stable", "increase", "large_increase"]
    # Surge, add, hold or release staff: too few cost more than too many.
    payoffs = [[-3, -2, -1, 0, 2], [-2, -1, 0, 1.5, 0], [-1, 0, 1, -1, -3], [1, 1.5, 0, -3, -6]]
    staffing = prudent.DecisionProblem.from_payoffs(payoffs, classes=classes)
    for model, part in flu.groupby("model"):
        chances = part[classes].to_numpy()
        chances = chances / chances.sum(axis=1, keepdims=True)
        months = first_days(part["reference_date"].tolist(), "month")
        yield Cell("flusight_rate_change", str(model), staffing, chances, part["outcome"].to_numpy(), months)
    for name in ("electricity_price_de", "electricity_price_np"):
        prices = read(name)
        months = first_days([hour[:10] for hour in prices["hour"]], "month")
        lowest, highest = (float(end(prices[["price", "dnn", "lear"]].to_numpy())) for end in (np.min, np.max))
        for model in ("dnn", "lear"):
            for worth in prices["price"].quantile([0.2, 0.5]):
                # A load that is worth so much: idle, half, all of it.
                rewards, costs = [0.0, -0.5, -1.0], [0.0, -0.5 * worth + 1.0, -worth]
                box = prudent.Box(lowest, highest)
                problem = prudent.DecisionProblem(rewards, costs, actions=["idle", "half", "run"], space=box)
                given = prices[model].to_numpy(), prices["price"].to_numpy(), months
                yield Cell(name, f"{model} {worth:.0f}", problem, *given)


def _binary(source: str, name: str, forecasts: Any, outcomes: Any, periods: Any) -> Iterator[Cell]:
    for price in _PRICES:
        problem = prudent.DecisionProblem([-1.0, 0.0], [0.0, price], actions=["wait", "act"])
        given = np.asarray(forecasts, dtype=float), np.asarray(outcomes, dtype=float), np.asarray(periods)
        yield Cell(source, f"{name} {price:g}".strip(), problem, *given)
