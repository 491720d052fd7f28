"""What the refinement of cells does with many rows, as loops to be compiled."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray

__all__ = ["lose_in_cells", "sum_touched"]

_ROWS = 512


def lose_in_cells(
    values: FloatArray,
    table: FloatArray,
    own: FloatArray,
    corners: FloatArray,
    heights: FloatArray,
    weights: FloatArray,
    index: IntArray,
    sums: FloatArray,
) -> None:
    """Add up the weighted least score ``height + tilt . corner`` of the rows of each cell.

    Tilts are tests ``(k, n)`` times a table ``(k, d)``, and rewards ``(0 or 1 or n, d)`` that act like one.
    """
    (k, d), n = table.shape, index.size
    tilts, score, best = np.empty((d, _ROWS)), np.empty(_ROWS), np.empty(_ROWS)
    for first in range(0, n, _ROWS):
        rows = min(_ROWS, n - first)
        for j in range(d):
            tilt = tilts[j]
            tilt[:] = own[0, j] if len(own) else 0.0
            if len(own) == n:
                for i in range(rows):
                    tilt[i] = own[first + i, j]
            for t in range(k):
                factor, test = table[t, j], values[t, first : first + rows]
                for i in range(rows):
                    tilt[i] += factor * test[i]
        best[:] = np.inf
        for vertex in range(heights.size):
            height = heights[vertex]
            if d == 3:  # in one pass: this is what most people have, two numbers or three classes
                one, two, three = corners[vertex]
                for i in range(rows):
                    best[i] = min(best[i], height + one * tilts[0, i] + two * tilts[1, i] + three * tilts[2, i])
            elif d == 2:
                one, two = corners[vertex]
                for i in range(rows):
                    best[i] = min(best[i], height + one * tilts[0, i] + two * tilts[1, i])
            else:
                score[:] = height
                for j in range(d):
                    tilt, corner = tilts[j], corners[vertex, j]
                    for i in range(rows):
                        score[i] += tilt[i] * corner
                for i in range(rows):
                    best[i] = min(best[i], score[i])
        for i in range(rows):
            sums[index[first + i]] += weights[first + i] * best[i]


def sum_touched(
    rows: IntArray,
    places: IntArray,
    weights: FloatArray,
    values: FloatArray,
    forecasts: FloatArray,
    rewards: FloatArray,
    offsets: FloatArray,
    totals: FloatArray,
    sums: FloatArray,
) -> None:
    """Add up weights of some rows, and weighted tests, forecasts, own rewards and offsets ``(n, ...)``.

    ``places`` says which row of the sums each belongs to.
    """
    k, d = values.shape[1], forecasts.shape[1]
    for at in range(rows.size):
        i, place = rows[at], places[at]
        weight, into = weights[i], sums[place]
        totals[place] += weight
        for t in range(k):
            into[t] += weight * values[i, t]
        for j in range(d):
            into[k + j] += weight * forecasts[i, j]
        for j in range(rewards.shape[1]):
            into[k + d + j] += weight * rewards[i, j]
        for j in range(offsets.shape[1]):
            into[k + 2 * d + j] += weight * offsets[i, j]
