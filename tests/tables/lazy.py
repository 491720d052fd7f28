"""Samples that tests of lazy tables share: the same rows in memory and in an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import prudent
from prudent import Box, DecisionProblem, Simplex, guarantees

FORECASTS = {1: ["v"], 3: ["b0", "b1", "b2"], "simplex": ["p0", "p1", "p2"]}
OUTCOMES: dict[Any, Any] = {1: "y", 3: ["z0", "z1", "z2"], "simplex": "label"}


@dataclass(frozen=True)
class Rows:
    """Rows as columns by name."""

    data: dict[str, np.ndarray]

    def forecasts(self, kind: Any) -> np.ndarray:
        return np.stack([self.data[name] for name in FORECASTS[kind]], axis=1)

    def outcomes(self, kind: Any) -> np.ndarray:
        if isinstance(OUTCOMES[kind], str):
            return self.data[OUTCOMES[kind]]
        return np.stack([self.data[name] for name in OUTCOMES[kind]], axis=1)

    def columns(self, table: Any, kind: Any, **options: Any) -> prudent.Columns:
        return prudent.columns(table, forecasts=FORECASTS[kind], outcomes=OUTCOMES[kind], **options)


def make_rows(n: int, seed: int = 0) -> Rows:
    """Forecasts that are about right, in one coordinate, in a box and on the simplex."""
    rng = np.random.default_rng(seed)
    v = rng.beta(2, 3, n)
    box = rng.random((n, 3))
    simplex = rng.dirichlet([1, 2, 3], n)
    label = (rng.random((n, 1)) > np.cumsum(simplex, axis=1)[:, :2]).sum(axis=1)
    data = {
        "v": v,
        "y": (rng.random(n) < v).astype(float),
        "w": rng.integers(0, 4, n).astype(float),
        "g": rng.integers(0, n // 20, n),
        "id": np.arange(n),
        "label": label,
    }
    data |= {f"b{j}": box[:, j] for j in range(3)}
    data |= {f"z{j}": np.clip(box[:, j] + rng.normal(0, 0.1, n), 0, 1) for j in range(3)}
    data |= {f"p{j}": simplex[:, j] for j in range(3)}
    return Rows(data)


def as_table(rows: Rows, engine: str) -> Any:
    """Put rows into an engine."""
    if engine == "polars":
        return pl.LazyFrame(rows.data)
    if engine == "duckdb":
        import duckdb

        frame = pl.DataFrame(rows.data)
        connection = duckdb.connect()
        connection.register("frame", frame.to_arrow())
        return connection.sql("SELECT * FROM frame")
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession().createDataFrame(pl.DataFrame(rows.data).to_pandas())


SCALAR = DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["low", "mid", "high"])
BOX = DecisionProblem(np.random.default_rng(1).normal(size=(3, 3)), space=Box([0, 0, 0], [1, 1, 1]))
CLASSES = DecisionProblem.from_payoffs(np.random.default_rng(2).normal(size=(4, 3)))

CASES: list[tuple[Any, DecisionProblem, guarantees.Guarantee]] = [
    (1, SCALAR, guarantees.Nothing()),
    (1, SCALAR, guarantees.Unbiased()),
    (1, SCALAR, guarantees.SelfOrthogonal()),
    (1, SCALAR, guarantees.SelfOrthogonal(intercept=True)),
    (1, SCALAR, guarantees.Polynomial(3)),
    (1, SCALAR, guarantees.LogOdds()),
    (1, SCALAR, guarantees.Temperature()),
    (1, SCALAR, guarantees.Binned([0, 0.3, 0.55, 1])),
    (1, SCALAR, guarantees.Binned.uniform(20)),
    (1, SCALAR, guarantees.Binned.quantiles(7)),
    (1, SCALAR, guarantees.Classwise(5)),
    (1, SCALAR, guarantees.DecisionCalibrated(SCALAR)),
    (1, SCALAR, guarantees.UtilityCalibrated(SCALAR)),
    (1, SCALAR, guarantees.SelfOrthogonal(intercept=True) & guarantees.Binned.uniform(6)),
    (1, SCALAR, guarantees.FullyCalibrated()),
    (3, BOX, guarantees.SelfOrthogonal(intercept=True)),
    (3, BOX, guarantees.DecisionCalibrated(BOX)),
    (3, BOX, guarantees.Classwise(2)),
    ("simplex", CLASSES, guarantees.SelfOrthogonal()),
    ("simplex", CLASSES, guarantees.Temperature()),
    ("simplex", CLASSES, guarantees.TopLabel(3)),
    ("simplex", CLASSES, guarantees.Confidence(4)),
]

assert isinstance(CLASSES.space, Simplex)
