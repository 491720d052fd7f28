"""The factorisation of every row's block, as a loop to be compiled: what :mod:`prudent.solvers.row_blocks` does.

As in :mod:`prudent.solvers.row_loops` rows come last and go through it in blocks, the upper triangle is kept, and
divisions by zero give infinity.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["factor_rows"]

#: Rows of a block: enough for vector registers, few enough for the nearest cache.
_ROWS = 256


def factor_rows(
    begin: int,
    end: int,
    rewards: FloatArray,
    simplex: bool,
    room: FloatArray,
    price: FloatArray,
    per_room: FloatArray,
    ratio: FloatArray,
    total: FloatArray,
    mean: FloatArray,
    metric: FloatArray,
    flow: FloatArray,
) -> None:
    """Write reciprocals of rooms, ratios of pairs, totals and mean rewards of action weights, and inverse blocks.

    The same reflections as in :mod:`prudent.solvers.row_blocks`; ``flow`` is used on the simplex only.
    """
    m, d = rewards.shape
    step = _ROWS
    root = np.empty((m, step))
    columns = np.empty((d, m, step))  # the stacked factor, column by column
    size, corner = np.empty((d, step)), np.empty((d, step))
    triangle, inverse = np.empty((d, d, step)), np.empty((d, d, step))
    first_sum, second_sum = np.empty(step), np.empty(step)
    for first in range(begin, end, step):
        part = slice(first, min(first + step, end))
        rows = part.stop - first
        for a in range(room.shape[0]):
            x, y, z, u = room[a, part], price[a, part], ratio[a, part], per_room[a, part]
            for i in range(rows):
                u[i] = 1.0 / x[i]
                z[i] = y[i] * u[i]
        sums = total[part]
        sums[:] = 0.0
        for a in range(m):
            z, r = ratio[a, part], root[a]
            for i in range(rows):
                sums[i] += z[i]
                r[i] = np.sqrt(z[i])
        for j in range(d):
            center = mean[j, part]
            center[:] = 0.0
            for a in range(m):
                z, reward = ratio[a, part], rewards[a, j]
                for i in range(rows):
                    center[i] += reward * z[i]
            for i in range(rows):
                center[i] /= sums[i]
            barrier, sizes, corners = ratio[m + j, part], size[j], corner[j]
            if simplex:
                for i in range(rows):
                    corners[i] = barrier[i]
            else:
                upper = ratio[m + d + j, part]
                for i in range(rows):
                    corners[i] = barrier[i] + upper[i]
            for i in range(rows):
                sizes[i] = corners[i]
            for a in range(m):
                column, r, reward = columns[j, a], root[a], rewards[a, j]
                for i in range(rows):
                    column[i] = (reward - center[i]) * r[i]
                    sizes[i] += column[i] * column[i]
            for i in range(rows):
                sizes[i] = 1.0 / np.sqrt(sizes[i])
                scaled = np.sqrt(corners[i]) * sizes[i]
                corners[i] = max(1e-13, scaled)
            for a in range(m):
                column = columns[j, a]
                for i in range(rows):
                    column[i] *= sizes[i]
        for j in range(d):
            length, factor = first_sum, second_sum
            corners, diagonal = corner[j], triangle[j, j]
            for i in range(rows):
                length[i] = corners[i] * corners[i]
            for a in range(m):
                column = columns[j, a]
                for i in range(rows):
                    length[i] += column[i] * column[i]
            for i in range(rows):
                length[i] = np.sqrt(length[i])
                diagonal[i] = -length[i]
                corners[i] += length[i]
                factor[i] = 1.0 / (length[i] * corners[i])
            for k in range(j + 1, d):
                share = triangle[j, k]
                share[:] = 0.0
                for a in range(m):
                    column, other = columns[j, a], columns[k, a]
                    for i in range(rows):
                        share[i] += column[i] * other[i]
                for i in range(rows):
                    share[i] *= factor[i]
                for a in range(m):
                    column, other = columns[j, a], columns[k, a]
                    for i in range(rows):
                        other[i] -= column[i] * share[i]
                for i in range(rows):
                    share[i] *= -corners[i]
        for j in range(d):
            diagonal, pivot = triangle[j, j], inverse[j, j]
            for i in range(rows):
                pivot[i] = 1.0 / diagonal[i]
            for row in range(j):
                above = inverse[row, j]
                above[:] = 0.0
                for k in range(row, j):
                    left, right = inverse[row, k], triangle[k, j]
                    for i in range(rows):
                        above[i] -= left[i] * right[i]
                for i in range(rows):
                    above[i] *= pivot[i]
        for row in range(d):
            sizes = size[row]
            for j in range(row, d):
                entry = inverse[row, j]
                for i in range(rows):
                    entry[i] *= sizes[i]
        for row in range(d):
            for j in range(row, d):
                entry = metric[row * (2 * d - row - 1) // 2 + j, part]
                entry[:] = 0.0
                for k in range(j, d):
                    left, right = inverse[row, k], inverse[j, k]
                    for i in range(rows):
                        entry[i] += left[i] * right[i]
        if simplex:
            image, whole = triangle[0], first_sum  # no longer needed as what they were
            whole[:] = 0.0
            for j in range(d):
                sum_of_row = image[j]
                sum_of_row[:] = 0.0
                for k in range(d):
                    low, high = min(j, k), max(j, k)
                    entry = metric[low * (2 * d - low - 1) // 2 + high, part]
                    for i in range(rows):
                        sum_of_row[i] += entry[i]
                for i in range(rows):
                    whole[i] += sum_of_row[i]
            for j in range(d):
                sum_of_row, share = image[j], flow[j, part]
                for i in range(rows):
                    share[i] = sum_of_row[i] / whole[i]
            for k in range(d):
                for j in range(k, d):
                    entry, sum_of_row, share = metric[k * (2 * d - k - 1) // 2 + j, part], image[k], flow[j, part]
                    for i in range(rows):
                        entry[i] -= sum_of_row[i] * share[i]
