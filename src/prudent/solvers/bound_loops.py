"""What the bounds of several coordinates need of every row, as loops to be compiled.

They write one number per row, which NumPy then adds up, so that sums err by what :mod:`prudent.solvers.bounds` says.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["best_of_rows", "hold_rows", "worst_of_actions", "worst_of_mixtures"]


def worst_of_mixtures(
    tilts: FloatArray,
    distances: FloatArray,
    mixtures: FloatArray,
    rewards: FloatArray,
    offsets: FloatArray,
    width: FloatArray,
    simplex: bool,
    values: FloatArray,
) -> None:
    """Write ``c.pi + min_p p.(R^T pi + s) - s.v`` of every row, outcomes measured from the space's lower corner.

    Rewards ``(1 or n, m, d)`` and offsets ``(1 or n, m)`` are those of all rows, or of each.
    """
    n, d = tilts.shape
    own = len(rewards) > 1
    for i in range(n):
        row = i if own else 0
        value, least = 0.0, np.inf if simplex else 0.0
        for a in range(mixtures.shape[1]):
            value += offsets[row, a] * mixtures[i, a]
        for j in range(d):
            direction = tilts[i, j]
            for a in range(mixtures.shape[1]):
                direction += mixtures[i, a] * rewards[row, a, j]
            if simplex:
                least = min(least, direction)
            else:
                least += min(direction, 0.0) * width[j]
            value -= tilts[i, j] * distances[i, j]
        values[i] = value + least


def worst_of_actions(
    tests: FloatArray,
    table: FloatArray,
    forecasts: FloatArray,
    low: FloatArray,
    rewards: FloatArray,
    offsets: FloatArray,
    width: FloatArray,
    simplex: bool,
    values: FloatArray,
) -> None:
    """Write the same where every row has one action, for tilts that are tests ``(n, c)`` times a table ``(c, d)``."""
    n, d = forecasts.shape
    own = len(rewards) > 1
    for i in range(n):
        row = i if own else 0
        value, least = offsets[row, 0], np.inf if simplex else 0.0
        for j in range(d):
            tilt = 0.0
            for c in range(tests.shape[1]):
                tilt += tests[i, c] * table[c, j]
            direction = tilt + rewards[row, 0, j]
            if simplex:
                least = min(least, direction)
            else:
                least += min(direction, 0.0) * width[j]
            value -= tilt * (forecasts[i, j] - low[j])
        values[i] = value + least


def hold_rows(
    forecasts: FloatArray,
    beliefs: FloatArray,
    low: FloatArray,
    weights: FloatArray,
    rewards: FloatArray,
    offsets: FloatArray,
    values: FloatArray,
    residuals: FloatArray,
) -> None:
    """Write the utility of every row's best action at its belief, and how far that is from the forecast, ``(d, n)``."""
    n, d = forecasts.shape
    own = len(rewards) > 1
    for i in range(n):
        row = i if own else 0
        best = -np.inf
        for a in range(offsets.shape[1]):
            utility = offsets[row, a]
            for j in range(d):
                utility += (beliefs[i, j] - low[j]) * rewards[row, a, j]
            if utility > best or utility != utility:  # what is no number is no bound either, and must be seen
                best = utility
        values[i] = best
        for j in range(d):
            residuals[j, i] = weights[i] * (beliefs[i, j] - forecasts[i, j])


def best_of_rows(distances: FloatArray, rewards: FloatArray, offsets: FloatArray, values: FloatArray) -> None:
    """Write the utility of every row's best action at beliefs measured from the space's lower corner."""
    n, d = distances.shape
    own = len(rewards) > 1
    for i in range(n):
        row = i if own else 0
        best = -np.inf
        for a in range(offsets.shape[1]):
            utility = offsets[row, a]
            for j in range(d):
                utility += distances[i, j] * rewards[row, a, j]
            if utility > best or utility != utility:  # what is no number is no bound either, and must be seen
                best = utility
        values[i] = best
