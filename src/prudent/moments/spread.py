"""How far weighted means of independent units may be from what they estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray, IntArray

__all__ = ["Spread", "per_unit", "spread_of_means"]


@dataclass(frozen=True, eq=False)
class Spread:
    """Weighted means of ``K`` quantities over independent units (rows, or clusters of rows).

    Attributes
    ----------
    means : array of shape (K,)
    variances : array of shape (K,)
        Of the means, estimated: ``n / (n - 1) sum_g (U_g - W_g mean)^2`` for unit totals ``U`` and weights ``W``.
    effective : array of shape (K,)
        Units that the mean rests on; an average over few, or over rare large values, counts few.
    widths : array of shape (K,)
        Largest minus smallest value that a row can have, known beforehand; infinite where nobody knows.
    n_units : int
    largest_unit : float
        The largest unit's share of the total weight.
    squared_weights : float
        ``sum_g W_g^2``: one over the effective number of units.
    """

    means: FloatArray
    variances: FloatArray
    effective: FloatArray
    widths: FloatArray
    n_units: int
    largest_unit: float
    squared_weights: float


def spread_of_means(values: FloatArray, weights: FloatArray, width: float, clusters: IntArray | None = None) -> Spread:
    """Describe the mean of one quantity ``(n,)`` whose values have a known width."""
    totals, shares = weights * values, weights
    if clusters is not None:
        totals, shares = (np.bincount(clusters, weights=column).astype(np.float64) for column in (totals, shares))
    mean = float(totals.sum())
    deviations = totals - shares * mean
    dust = 1e-12 * np.abs(values).max() * shares  # equal values differ from their mean by rounding
    deviations = np.where(np.abs(deviations) <= dust, 0.0, deviations)
    second, fourth = float((deviations**2).sum()), float((deviations**4).sum())
    n = totals.size
    effective = second**2 / fourth if fourth > 0 else 0.0
    return Spread(
        np.array([mean]),
        np.array([second * n / max(n - 1, 1)]),
        np.array([effective]),
        np.array([width]),
        n,
        float(shares.max()),
        float((shares**2).sum()),
    )


def per_unit(rows: FloatArray, starts: IntArray | None) -> FloatArray:
    """Add up rows that belong to one unit; ``starts`` are their first rows, None if every row is a unit."""
    if starts is None:
        return rows
    totals: FloatArray = np.add.reduceat(rows, starts, axis=0)
    return totals
