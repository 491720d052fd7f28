"""What the refinement of cells does with every row, as loops to be compiled; rows come in their order, cells in any."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray

__all__ = ["lose_in_cells", "sum_touched"]

_ROWS = 256


def lose_in_cells(
    values: FloatArray,
    table: FloatArray,
    own: FloatArray,
    corners: FloatArray,
    heights: FloatArray,
    weights: FloatArray,
    index: IntArray,
    tilts: FloatArray,
    least: FloatArray,
    sums: FloatArray,
) -> None:
    """Write tilts ``(d, n)`` and the least score ``height + tilt . corner`` of each row; add those up in its cell.

    Tilts are tests ``(k, n)`` times a table ``(k, d)``, and rewards ``(d, 0 or 1 or n)`` that act like one.
    """
    d, n = tilts.shape
    score = np.empty(_ROWS)
    for first in range(0, n, _ROWS):
        part = slice(first, min(first + _ROWS, n))
        rows = part.stop - first
        for j in range(d):
            tilt = tilts[j, part]
            tilt[:] = 0.0
            if own.shape[1] == n:
                reward = own[j, part]
                for i in range(rows):
                    tilt[i] = reward[i]
            elif own.shape[1] == 1:
                tilt[:] = own[j, 0]
            for t in range(len(values)):
                factor, test = table[t, j], values[t, part]
                for i in range(rows):
                    tilt[i] += factor * test[i]
        best = least[part]
        best[:] = np.inf
        for vertex in range(heights.size):
            score[:] = heights[vertex]
            for j in range(d):
                tilt, corner = tilts[j, part], corners[vertex, j]
                for i in range(rows):
                    score[i] += tilt[i] * corner
            for i in range(rows):
                best[i] = min(best[i], score[i])
        for i in range(rows):
            sums[index[first + i]] += weights[first + i] * best[i]


def sum_touched(
    index: IntArray,
    number: IntArray,
    weights: FloatArray,
    values: FloatArray,
    forecasts: FloatArray,
    rewards: FloatArray,
    offsets: FloatArray,
    totals: FloatArray,
    sums: FloatArray,
) -> None:
    """Add up weights of some cells, and weighted tests ``(k, n)``, forecasts, own rewards and offsets ``(n, ...)``.

    ``number`` says which row of the sums belongs to a cell, or -1 for none.
    """
    k, d = len(values), forecasts.shape[1]
    for i in range(index.size):
        row = number[index[i]]
        if row < 0:
            continue
        weight, into = weights[i], sums[row]
        totals[row] += weight
        for t in range(k):
            into[t] += weight * values[t, i]
        for j in range(d):
            into[k + j] += weight * forecasts[i, j]
        for j in range(rewards.shape[1]):
            into[k + d + j] += weight * rewards[i, j]
        for j in range(offsets.shape[1]):
            into[k + 2 * d + j] += weight * offsets[i, j]
