"""How sure two language models are of answers, and whether they are right; each of five tasks left out once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import prudent
from benchmarks.field.forecaster import Forecaster, Rows, Setting

FILES = ("llm_confidence",)
CITATION = "Plaut, Nguyen, Trinh: github.com/bplaut/llm-calibration-and-correctness-prediction"
LICENCE = "MIT"

_PRICES = (0.1, 0.25, 0.4)  # of asking, over what a wrong answer costs


def read(folder: Path) -> Iterator[Forecaster]:
    """Give the answer, or ask a person."""
    settings = {}
    for price in _PRICES:
        problem = prudent.DecisionProblem([0.0, 1.0], [price, 1.0], actions=["ask", "answer"])
        settings[f"price {price:g}"] = Setting(problem, price)
    for model, part in pd.read_csv(folder / "llm_confidence.csv.gz").groupby("model"):
        rows = Rows(
            part["confidence"].to_numpy(float), part["correct"].to_numpy(float), part["task"].to_numpy().astype(str)
        )
        yield Forecaster("llm_confidence", str(model), rows, settings, ordered=False)
