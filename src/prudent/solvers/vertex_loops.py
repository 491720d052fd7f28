"""What the vertex table does with a row, as loops to be compiled: find the optimal vertex, mix the actions there."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray

__all__ = [
    "FEW_VERTICES",
    "VERTICES_LIKE_A_PASS",
    "cover_cells",
    "first_of_least",
    "least_two",
    "mix_rows",
    "normalize_rows",
    "soften_rows",
]

#: Comparing a row with so many vertices is as much work as any pass over rows that is worth a compiled loop.
VERTICES_LIKE_A_PASS = 5

#: So few vertices are compared number by number, in NumPy's order: what free rounding saves would not pay for ties.
FEW_VERTICES = 64

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


def first_of_least(scaled: FloatArray, corners: FloatArray, heights: FloatArray, nearest: IntArray) -> None:
    """Write the first vertex with the least score for tilts ``(n, d)``; scores add up in the order that NumPy takes."""
    n, d = scaled.shape
    tilts, score, best = np.empty((d, _ROWS)), np.empty(_ROWS), np.empty(_ROWS)
    for first in range(0, n, _ROWS):
        index = nearest[first : min(first + _ROWS, n)]
        for j in range(d):
            tilt = tilts[j]
            for i in range(index.size):
                tilt[i] = scaled[first + i, j]
        best[:], index[:] = np.inf, 0
        for vertex in range(heights.size):
            score[:] = heights[vertex]
            for j in range(d):
                tilt, corner = tilts[j], corners[vertex, j]
                for i in range(index.size):
                    score[i] += tilt[i] * corner
            for i in range(index.size):
                better = score[i] < best[i]
                best[i] = score[i] if better else best[i]
                index[i] = vertex if better else index[i]


def cover_cells(
    tilts: FloatArray,
    corners: FloatArray,
    heights: FloatArray,
    limits: FloatArray,
    starts: IntArray,
    most: int,
    choice: IntArray,
) -> None:
    """Cover the rows of every cell by few vertices whose scores are within the rows' limits.

    Cell ``c`` has the rows from ``starts[c]`` to ``starts[c + 1]``. The vertex that suits most rows of a cell comes
    first, then the one that suits most of those left, ``most`` times; rows that are left then get the number of
    vertices. Scores are computed again each time: a table of all would not fit the cache.
    """
    d, count = tilts.shape[0], heights.size
    score, suited, columns = np.empty(count), np.empty(count, dtype=np.int64), corners.T.copy()
    left = np.empty(tilts.shape[1], dtype=np.int64)
    for cell in range(starts.size - 1):
        rest = left[: starts[cell + 1] - starts[cell]]
        for i in range(rest.size):
            rest[i] = starts[cell] + i
        for _ in range(most):
            suited[:] = 0
            for i in rest:
                score[:] = heights
                for c in range(d):
                    tilt = tilts[c, i]
                    for j in range(count):
                        score[j] += tilt * columns[c, j]
                limit = limits[i]
                for j in range(count):
                    suited[j] += score[j] <= limit
            picked = suited.argmax()
            kept = 0
            for i in rest:
                score_there = heights[picked]
                for c in range(d):
                    score_there += tilts[c, i] * columns[c, picked]
                if score_there <= limits[i]:
                    choice[i] = picked
                else:
                    rest[kept] = i
                    kept += 1
            rest = rest[:kept]
            if kept == 0:
                break
        for i in rest:
            choice[i] = count


def mix_rows(
    scaled: FloatArray, nearest: IntArray, slopes: FloatArray, constants: FloatArray, mixtures: FloatArray
) -> None:
    """Write the mixtures that are affine in tilts ``(n, d)`` at each row's vertex; in the order in which NumPy adds."""
    d, m = scaled.shape[1], mixtures.shape[1]
    for i in range(nearest.size):
        vertex = nearest[i]
        for a in range(m):
            share = constants[vertex, a]
            for j in range(d):
                share += slopes[vertex, j, a] * scaled[i, j]
            mixtures[i, a] = share


def normalize_rows(mixtures: FloatArray, negligible: float, result: FloatArray) -> None:
    """Write mixtures without negligible shares, with sum one."""
    n, m = mixtures.shape
    for i in range(n):
        total = 0.0
        for a in range(m):
            share = mixtures[i, a]
            share = share if share >= negligible else 0.0
            result[i, a] = share
            total += share
        for a in range(m):
            result[i, a] /= total


def soften_rows(
    tilts: FloatArray,
    starts: IntArray,
    vertices: IntArray,
    corners: FloatArray,
    heights: FloatArray,
    mu: float,
    value: FloatArray,
    excess: FloatArray,
    beliefs: FloatArray,
    spread: FloatArray,
) -> None:
    """Write the soft minimum of the scores of each row's vertices, and their mean and covariance.

    Row ``i`` has the vertices from ``starts[i]`` to ``starts[i + 1]``; tilts are ``(n, d)``.
    """
    n, d = tilts.shape
    shares, centered = np.empty(np.diff(starts).max()), np.empty(d)
    for i in range(n):
        own, tilt, mean, square = vertices[starts[i] : starts[i + 1]], tilts[i], beliefs[i], spread[i]
        least = np.inf
        for j in range(own.size):
            score = heights[own[j]]
            for a in range(d):
                score += tilt[a] * corners[own[j], a]
            shares[j] = score
            least = min(least, score)
        total, above_all = 0.0, 0.0
        mean[:], square[:] = 0.0, 0.0
        for j in range(own.size):
            above = shares[j] - least
            shares[j] = np.exp(-above / mu)
            total += shares[j]
            above_all += shares[j] * above
        value[i], excess[i] = least - mu * np.log(total), above_all / total
        for j in range(own.size):
            shares[j] /= total
            for a in range(d):
                mean[a] += shares[j] * corners[own[j], a]
        if own.size == 1:
            continue
        for j in range(own.size):
            for a in range(d):
                centered[a] = corners[own[j], a] - mean[a]
            entry = 0
            for a in range(d):
                weighted = shares[j] * centered[a]
                for b in range(a, d):
                    square[entry] += weighted * centered[b]
                    entry += 1
