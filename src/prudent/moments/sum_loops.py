"""Sums of moments as loops to be compiled: one pass over rows that are all units of their own.

:mod:`prudent.moments.sums` says what is added up, and does the same with NumPy.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["SUMS", "add_up_scalar_tests", "add_up_vector_tests"]

#: What the rows of the result are.
SUMS = ("first", "second", "fourth", "cross", "reach", "squared_reach", "chance_second", "chance_fourth")


def add_up_scalar_tests(
    values: FloatArray,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Add up ``w h (y - v)`` of tests ``(n, k)`` for every coordinate, shape ``(8, k d)``."""
    (n, k), d = values.shape, forecasts.shape[1]
    sums = np.zeros((len(SUMS), k * d))
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
                sums[0, moment] += term
                sums[1, moment] += term * term
                sums[2, moment] += term * term * term * term
                sums[3, moment] += weights[i] * term
                sums[4, moment] += abs(share)
                sums[5, moment] += square
                sums[6, moment] += square * variance
                sums[7, moment] += square * square * variance * (below * below - variance + above * above)
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
    """Add up ``w B . (y - v)`` of tests ``(n, K, d)``, shape ``(8, K)``."""
    n, k, d = values.shape
    sums = np.zeros((len(SUMS), k))
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
            sums[0, moment] += term
            sums[1, moment] += term * term
            sums[2, moment] += term * term * term * term
            sums[3, moment] += weight * term
            sums[4, moment] += weight * size
            sums[5, moment] += square * size * size
            sums[6, moment] += square * deviation
            sums[7, moment] += square * square * fourth
    return sums
