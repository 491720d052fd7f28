"""The rows' part of a Newton step, as loops to be compiled: what row_newton and row_blocks do, with rows in blocks.

Rows come last in every array. A block of rows goes through a whole formula while its numbers are in the processor's
cache, and every step runs over all rows of the block, which is what vector registers need. Rewards are shared. Loops
work on the rows from ``begin`` to ``end`` only, so that threads can share them. Of a symmetric ``metric`` the upper
triangle is kept, row by row: entry ``(j, k)``, with ``j <= k``, is at ``j (2 d - j - 1) / 2 + k``. Rooms and prices may
underflow in the last steps: divisions by zero then give infinity, as in NumPy, and the iteration ends.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = [
    "advance_rows",
    "correct_gaps",
    "measure_rows",
    "move_rows",
    "products_after",
    "push_rows",
    "widen_gaps",
]

#: Rows of a block: enough for vector registers, few enough for the nearest cache.
_ROWS = 256


def push_rows(
    begin: int,
    end: int,
    rewards: FloatArray,
    simplex: bool,
    gaps: FloatArray,
    per_room: FloatArray,
    mean: FloatArray,
    dual_residual: FloatArray,
    sum_residual: FloatArray,
    metric: FloatArray,
    surplus: FloatArray,
    push: FloatArray,
    image: FloatArray,
) -> None:
    """Write the right side of the rows' equations for gaps of the products, and its image under the inverses."""
    m, d = rewards.shape
    pull = np.empty((gaps.shape[0], _ROWS))  # gaps over rooms: computed again where they are needed, not stored
    for first in range(begin, end, _ROWS):
        part = slice(first, min(first + _ROWS, end))
        rows = part.stop - first
        for a in range(gaps.shape[0]):
            u, gap, z = per_room[a, part], gaps[a, part], pull[a]
            for i in range(rows):
                z[i] = gap[i] * u[i]
        more, missing = surplus[part], sum_residual[part]
        for i in range(rows):
            more[i] = -missing[i]
        for a in range(m):
            z = pull[a]
            for i in range(rows):
                more[i] += z[i]
        for j in range(d):
            right, residual, center, lower = push[j, part], dual_residual[j, part], mean[j, part], pull[m + j]
            for i in range(rows):
                right[i] = residual[i] + lower[i] + center[i] * more[i]
            for a in range(m):
                z, reward = pull[a], rewards[a, j]
                for i in range(rows):
                    right[i] -= reward * z[i]
            if not simplex:
                upper = pull[m + d + j]
                for i in range(rows):
                    right[i] -= upper[i]
        for j in range(d):
            product = image[j, part]
            product[:] = 0.0
            for k in range(d):
                low, high = min(j, k), max(j, k)
                entry, vector = metric[low * (2 * d - low - 1) // 2 + high, part], push[k, part]
                for i in range(rows):
                    product[i] += entry[i] * vector[i]


def move_rows(
    begin: int,
    end: int,
    rewards: FloatArray,
    simplex: bool,
    per_room: FloatArray,
    ratio: FloatArray,
    total: FloatArray,
    mean: FloatArray,
    metric: FloatArray,
    flow: FloatArray,
    gaps: FloatArray,
    surplus: FloatArray,
    push: FloatArray,
    refinements: int,
    d_room: FloatArray,
    d_price: FloatArray,
    d_nu: FloatArray,
) -> tuple[float, float]:
    """Write the steps of rooms, prices and sums that a push makes; return the fastest relative falls of both."""
    m, d = rewards.shape
    step = _ROWS
    left, more, scratch = np.empty((d, step)), np.empty(step), np.empty(step)
    x = d_room[m : m + d]
    falls_room, falls_price = np.zeros(step), np.zeros(step)  # one number per place in a block: no order among rows
    for first in range(begin, end, step):
        part = slice(first, min(first + step, end))
        rows = part.stop - first
        level = d_nu[part]
        level[:] = 0.0
        for j in range(d):
            move = x[j, part]
            move[:] = 0.0
            for k in range(d):
                low, high = min(j, k), max(j, k)
                entry, right = metric[low * (2 * d - low - 1) // 2 + high, part], push[k, part]
                for i in range(rows):
                    move[i] += entry[i] * right[i]
        if simplex:
            for j in range(d):
                share, right = flow[j, part], push[j, part]
                for i in range(rows):
                    level[i] += share[i] * right[i]
        for _ in range(refinements):
            if simplex:
                more[:] = 0.0
                for j in range(d):
                    move = x[j, part]
                    for i in range(rows):
                        more[i] += move[i] / d
                for j in range(d):
                    move = x[j, part]
                    for i in range(rows):
                        move[i] -= more[i]
            for j in range(d):
                rest, right, move, barrier = left[j], push[j, part], x[j, part], ratio[m + j, part]
                for i in range(rows):
                    rest[i] = right[i] - level[i] - barrier[i] * move[i]
                if not simplex:
                    barrier = ratio[m + d + j, part]
                    for i in range(rows):
                        rest[i] -= barrier[i] * move[i]
            for a in range(m):
                weight = ratio[a, part]
                scratch[:] = 0.0
                for j in range(d):
                    center, move, reward = mean[j, part], x[j, part], rewards[a, j]
                    for i in range(rows):
                        scratch[i] += (reward - center[i]) * move[i]
                for i in range(rows):
                    scratch[i] *= weight[i]
                for j in range(d):
                    center, rest, reward = mean[j, part], left[j], rewards[a, j]
                    for i in range(rows):
                        rest[i] -= (reward - center[i]) * scratch[i]
            if simplex:
                more[:] = 0.0
                for j in range(d):
                    share, rest = flow[j, part], left[j]
                    for i in range(rows):
                        more[i] += share[i] * rest[i]
                for i in range(rows):
                    level[i] += more[i]
                for j in range(d):
                    rest = left[j]
                    for i in range(rows):
                        rest[i] -= more[i]
            for j in range(d):
                move = x[j, part]
                for k in range(d):
                    low, high = min(j, k), max(j, k)
                    entry, rest = metric[low * (2 * d - low - 1) // 2 + high, part], left[k]
                    for i in range(rows):
                        move[i] += entry[i] * rest[i]
        extra, sums = surplus[part], total[part]
        for i in range(rows):
            scratch[i] = extra[i] / sums[i]
        for j in range(d):
            center, move = mean[j, part], x[j, part]
            for i in range(rows):
                scratch[i] += center[i] * move[i]
        for a in range(m):
            height = d_room[a, part]
            for i in range(rows):
                height[i] = scratch[i]
            for j in range(d):
                move, reward = x[j, part], rewards[a, j]
                for i in range(rows):
                    height[i] -= reward * move[i]
        if not simplex:
            for j in range(d):
                above, move = d_room[m + d + j, part], x[j, part]
                for i in range(rows):
                    above[i] = -move[i]
        for a in range(ratio.shape[0]):
            step_room, step_price = d_room[a, part], d_price[a, part]
            z, gap, u = ratio[a, part], gaps[a, part], per_room[a, part]
            for i in range(rows):
                step_price[i] = gap[i] * u[i] - z[i] * step_room[i]
            for i in range(rows):
                fall = step_room[i] * u[i]
                falls_room[i] = min(falls_room[i], fall)
            for i in range(rows):
                fall = step_price[i] * u[i] / z[i]  # over the price
                falls_price[i] = min(falls_price[i], fall)
    return falls_room.min(), falls_price.min()


def measure_rows(
    begin: int,
    end: int,
    rewards: FloatArray,
    simplex: bool,
    room: FloatArray,
    price: FloatArray,
    nu: FloatArray,
    tilts: FloatArray,
    to_zero: FloatArray,
    dual_residual: FloatArray,
    sum_residual: FloatArray,
) -> None:
    """Write the gaps of the products to zero and what the rows' equations miss."""
    m, d = rewards.shape
    for first in range(begin, end, _ROWS):
        part = slice(first, min(first + _ROWS, end))
        rows = part.stop - first
        for a in range(room.shape[0]):
            x, y, gap = room[a, part], price[a, part], to_zero[a, part]
            for i in range(rows):
                gap[i] = -x[i] * y[i]
        missing = sum_residual[part]
        missing[:] = 1.0
        for a in range(m):
            y = price[a, part]
            for i in range(rows):
                missing[i] -= y[i]
        for j in range(d):
            residual, level, tilt, lower = dual_residual[j, part], nu[part], tilts[j, part], price[m + j, part]
            for i in range(rows):
                residual[i] = lower[i] - tilt[i] - level[i]
            for a in range(m):
                y, reward = price[a, part], rewards[a, j]
                for i in range(rows):
                    residual[i] -= reward * y[i]
            if not simplex:
                upper = price[m + d + j, part]
                for i in range(rows):
                    residual[i] -= upper[i]


def products_after(
    begin: int,
    end: int,
    room: FloatArray,
    price: FloatArray,
    d_room: FloatArray,
    d_price: FloatArray,
    primal: float,
    dual: float,
    weights: FloatArray,
) -> tuple[float, float]:
    """Return the weighted sum and the least of all products after a step of these lengths."""
    step = _ROWS
    total, least = 0.0, np.full(step, np.inf)
    for first in range(begin, end, step):
        part = slice(first, min(first + step, end))
        w = weights[part]
        for a in range(room.shape[0]):
            x, y, dx, dy = room[a, part], price[a, part], d_room[a, part], d_price[a, part]
            for i in range(w.size):
                product = (x[i] + primal * dx[i]) * (y[i] + dual * dy[i])
                total += w[i] * product
                least[i] = min(least[i], product)
    return total, least.min()


def widen_gaps(
    begin: int,
    end: int,
    gaps: FloatArray,
    room: FloatArray,
    price: FloatArray,
    d_room: FloatArray,
    d_price: FloatArray,
    primal: float,
    dual: float,
    target: float,
    wider: FloatArray,
) -> None:
    """Add to gaps what products after a step of these lengths miss of ``[0.1, 10] target``."""
    low, high, part = 0.1 * target, 10.0 * target, slice(begin, end)
    for a in range(room.shape[0]):
        gap, out = gaps[a, part], wider[a, part]
        x, y, dx, dy = room[a, part], price[a, part], d_room[a, part], d_price[a, part]
        for i in range(x.size):
            product = (x[i] + primal * dx[i]) * (y[i] + dual * dy[i])
            missed = low - product if product < low else high - product if product > high else 0.0
            out[i] = gap[i] + (max(-high, missed))


def correct_gaps(
    begin: int,
    end: int,
    to_zero: FloatArray,
    d_room: FloatArray,
    d_price: FloatArray,
    target: float,
    gaps: FloatArray,
) -> None:
    """Write the gaps of products to a target, less the products of a step's parts."""
    part = slice(begin, end)
    for a in range(to_zero.shape[0]):
        now, dx, dy, out = to_zero[a, part], d_room[a, part], d_price[a, part], gaps[a, part]
        for i in range(now.size):
            out[i] = target + now[i] - dx[i] * dy[i]


def advance_rows(
    begin: int,
    end: int,
    room: FloatArray,
    price: FloatArray,
    d_room: FloatArray,
    d_price: FloatArray,
    primal: float,
    dual: float,
    new_room: FloatArray,
    new_price: FloatArray,
) -> None:
    """Write rooms and prices after a step of these lengths."""
    part = slice(begin, end)
    for a in range(room.shape[0]):
        x, y, dx, dy = room[a, part], price[a, part], d_room[a, part], d_price[a, part]
        new_x, new_y = new_room[a, part], new_price[a, part]
        for i in range(x.size):
            new_x[i] = x[i] + primal * dx[i]
            new_y[i] = y[i] + dual * dy[i]
