"""What the vertex table does with a row, as loops to be compiled: find the optimal vertex, mix the actions there."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray

__all__ = ["VERTICES_LIKE_A_PASS", "least_two", "mix_rows", "normalize_rows"]

#: Comparing a row with so many vertices is as much work as any pass over rows that is worth a compiled loop.
VERTICES_LIKE_A_PASS = 50

_ROWS = 128


def least_two(
    tilts: FloatArray,
    corners: FloatArray,
    heights: FloatArray,
    nearest: IntArray,
    least: FloatArray,
    second: FloatArray,
) -> None:
    """Write the vertex with the least score ``height + tilt . corner`` for tilts ``(d, n)``, and the two least scores.

    Vertex by vertex over a block of rows, so that rows share vector registers.
    """
    d, n = tilts.shape
    score = np.empty(_ROWS)
    for first in range(0, n, _ROWS):
        part = slice(first, min(first + _ROWS, n))
        best, runner_up, index = least[part], second[part], nearest[part]
        rows = best.size
        best[:], runner_up[:], index[:] = np.inf, np.inf, 0
        for j in range(heights.size):
            height = heights[j]
            for i in range(rows):
                score[i] = height
            for c in range(d):
                tilt, corner = tilts[c, part], corners[j, c]
                for i in range(rows):
                    score[i] += tilt[i] * corner
            for i in range(rows):
                better = score[i] < best[i]
                behind = best[i] if better else score[i]
                runner_up[i] = min(runner_up[i], behind)
                best[i] = score[i] if better else best[i]
                index[i] = j if better else index[i]


def mix_rows(
    scaled: FloatArray, nearest: IntArray, slopes: FloatArray, constants: FloatArray, mixtures: FloatArray
) -> None:
    """Write the mixtures that are affine in tilts ``(n, d)`` at each row's vertex; in the order in which NumPy adds."""
    for i in range(nearest.size):
        mixture, slope, tilt = mixtures[i], slopes[nearest[i]], scaled[i]
        mixture[:] = constants[nearest[i]]
        for j in range(tilt.size):
            for a in range(mixture.size):
                mixture[a] += slope[j, a] * tilt[j]


def normalize_rows(mixtures: FloatArray, negligible: float, result: FloatArray) -> None:
    """Write mixtures without negligible shares, with sum one."""
    for i in range(mixtures.shape[0]):
        mixture, final = mixtures[i], result[i]
        total = 0.0
        for a in range(mixture.size):
            final[a] = mixture[a] if mixture[a] >= negligible else 0.0
            total += final[a]
        for a in range(mixture.size):
            final[a] /= total
