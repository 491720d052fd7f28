"""Sums of moments as loops to be compiled: one pass over rows that are all units of their own.

:mod:`prudent.moments.sums` says what is added up, and does the same with NumPy.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["SUMS", "add_up_scalar_tests", "add_up_vector_tests"]

#: What the columns of the result are.
SUMS = ("first", "second", "fourth", "cross", "reach", "squared_reach", "chance_second", "chance_fourth")


def add_up_scalar_tests(
    values: FloatArray,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Add up ``w h (y - v)`` of tests ``(n, k)`` for every coordinate, shape ``(k d, 8)``."""
    (n, k), d = values.shape, forecasts.shape[1]
    sums = np.zeros((k * d, len(SUMS)))
    for i in range(n):
        for test in range(k):
            share = weights[i] * values[i, test]
            if share == 0.0:  # most indicators are
                continue
            square = share * share
            for j in range(d):
                below, above = forecasts[i, j] - low[j], high[j] - forecasts[i, j]
                variance = below * above
                moment = test * d + j
                term = share * (outcomes[i, j] - forecasts[i, j])
                sums[moment, 0] += term
                sums[moment, 1] += term * term
                sums[moment, 2] += term * term * term * term
                sums[moment, 3] += weights[i] * term
                sums[moment, 4] += abs(share)
                sums[moment, 5] += square
                sums[moment, 6] += square * variance
                sums[moment, 7] += square * square * variance * (below * below - variance + above * above)
    return sums


def add_up_vector_tests(
    values: FloatArray,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    low: FloatArray,
    high: FloatArray,
    simplex: bool,
) -> FloatArray:
    """Add up ``w B . (y - v)`` of tests ``(n, K, d)``, shape ``(K, 8)``."""
    n, k, d = values.shape
    sums = np.zeros((k, len(SUMS)))
    for i in range(n):
        weight = weights[i]
        for moment in range(k):
            term, common = 0.0, 0.0
            for j in range(d):
                term += values[i, moment, j] * (outcomes[i, j] - forecasts[i, j])
                if simplex:  # no difference of outcomes sees what all coordinates share
                    common += values[i, moment, j] * forecasts[i, j]
            size, deviation, farthest, fourth = 0.0, 0.0, 0.0, 0.0
            for j in range(d):
                value = abs(values[i, moment, j] - common)
                size = max(size, value)
                if simplex:
                    chance = value * value * forecasts[i, j]
                    deviation += chance
                    fourth += value * value * chance
                else:
                    below, above = forecasts[i, j] - low[j], high[j] - forecasts[i, j]
                    deviation += value * np.sqrt(below * above)
                    farthest += value * max(below, above)
            if not simplex:
                deviation *= deviation
                fourth = deviation * farthest * farthest
            term *= weight
            square = weight * weight
            sums[moment, 0] += term
            sums[moment, 1] += term * term
            sums[moment, 2] += term * term * term * term
            sums[moment, 3] += weight * term
            sums[moment, 4] += weight * size
            sums[moment, 5] += square * size * size
            sums[moment, 6] += square * deviation
            sums[moment, 7] += square * square * fourth
    return sums
