"""What results come to: sources count alike, within one its eras, and within an era all forecasters and settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from benchmarks.field.decision import CONFIDENCE

HARM = 0.02  # of the cost
_Z = 1.645  # one-sided 95%


@dataclass(frozen=True)
class Mean:
    """A mean over units, its standard error, and the degrees of freedom behind it."""

    mean: float
    error: float
    freedom: int

    @property
    def radius(self) -> float:
        """Half of the two-sided 95% interval."""
        return -float(stdtrit(max(self.freedom, 1), 0.025)) * self.error


def era_means(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """Average one number over the forecasters and settings of an era; of every source's eras the weight."""
    means = results.groupby(["source", "era"])[column].mean().reset_index()
    count = means.groupby("source")[column].transform("size")
    return means.assign(weight=1 / (count * means["source"].nunique()))


def weighted(means: pd.DataFrame, column: str) -> Mean:
    """Average over sources. Eras vary around the mean of their source; that of a single era around the mean of all."""
    total = float(means["weight"] @ means[column])
    variance, freedom = 0.0, 0
    for _, part in means.groupby("source"):
        weights, values = part["weight"].to_numpy(), part[column].to_numpy()
        alone = len(part) == 1
        center, scale = (total, 1.0) if alone else (values.mean(), len(part) / (len(part) - 1))
        variance += float(weights**2 @ (values - center) ** 2) * scale
        freedom += len(part) - 1
    return Mean(total, float(np.sqrt(variance)), freedom)


def by_source(results: pd.DataFrame, column: pd.Series) -> float:
    """Average a column over sources that count alike."""
    return float(column.groupby(results["source"]).mean().mean())


def kept(results: pd.DataFrame) -> pd.Series:
    """Whether promises were kept, up to rounding."""
    return (results["utility"] >= results["promise"] - 1e-12 * (1 + results["promise"].abs())).astype(float)


def least_kept(promised: pd.DataFrame) -> float:
    """Nominal less sampling error: eras are the units, since forecasters and settings of one share its outcomes."""
    weights = era_means(promised, "utility")["weight"].to_numpy()
    return CONFIDENCE - _Z * float(np.sqrt(CONFIDENCE * (1 - CONFIDENCE) * (weights @ weights)))


def weighted_median(results: pd.DataFrame, column: pd.Series) -> float:
    """Median of a column where sources count alike."""
    values, weights = column.to_numpy(), 1 / results.groupby("source")["source"].transform("size").to_numpy()
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def summarise(results: pd.DataFrame) -> dict[str, object]:
    """Numbers of one method; of one source or of all."""
    gain = weighted(era_means(results, "gain"), "gain")
    promised = results[results["promise"].notna()]
    numbers: dict[str, object] = {
        "sources": results["source"].nunique(),
        "eras": len(results.groupby(["source", "era"])),
        "decided": len(results),
        "gain": gain,
        "harmed": by_source(results, (results["gain"] < -HARM).astype(float)),
        "worst": float(results["gain"].min()),
        "seconds": float(results["seconds"].mean()),
        "promised": len(promised),
    }
    if len(promised):
        numbers["kept"] = by_source(promised, kept(promised))
        numbers["least"] = least_kept(promised)
        numbers["distance"] = weighted_median(promised, (promised["utility"] - promised["promise"]).abs())
    return numbers


def difference(results: pd.DataFrame, one: str, other: str) -> Mean:
    """Gain of one method over another, in the same eras."""
    keys = ["source", "forecaster", "setting", "era"]
    pair = [results[results["method"] == name].set_index(keys)["gain"] for name in (one, other)]
    both = (pair[0] - pair[1]).dropna().rename("gain").reset_index()
    return weighted(era_means(both, "gain"), "gain")
