"""The rows' part of a Newton step, as loops to be compiled: what row_newton and row_blocks do, with rows in blocks.

Rows come last in every array. A block of rows goes through a whole formula while its numbers are in the processor's
cache, and every step runs over all rows of the block, which is what vector registers need. Rewards are shared. Loops
with a ``begin`` and an ``end`` work on these rows only, so that threads can share them.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["advance", "correct_gaps", "move_rows", "products_after", "push_rows", "widen_gaps"]

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
    pull: FloatArray,
    surplus: FloatArray,
    push: FloatArray,
    image: FloatArray,
) -> None:
    """Write the right side of the rows' equations for gaps of the products, and its image under the inverses."""
    m, d = rewards.shape
    for first in range(begin, end, _ROWS):
        part = slice(first, min(first + _ROWS, end))
        rows = part.stop - first
        for a in range(gaps.shape[0]):
            u, gap, z = per_room[a, part], gaps[a, part], pull[a, part]
            for i in range(rows):
                z[i] = gap[i] * u[i]
        more, missing = surplus[part], sum_residual[part]
        for i in range(rows):
            more[i] = -missing[i]
        for a in range(m):
            z = pull[a, part]
            for i in range(rows):
                more[i] += z[i]
        for j in range(d):
            right, residual, center, lower = push[j, part], dual_residual[j, part], mean[j, part], pull[m + j, part]
            for i in range(rows):
                right[i] = residual[i] + lower[i] + center[i] * more[i]
            for a in range(m):
                z, reward = pull[a, part], rewards[a, j]
                for i in range(rows):
                    right[i] -= reward * z[i]
            if not simplex:
                upper = pull[m + d + j, part]
                for i in range(rows):
                    right[i] -= upper[i]
        for j in range(d):
            product = image[j, part]
            product[:] = 0.0
            for k in range(d):
                entry, vector = metric[j, k, part], push[k, part]
                for i in range(rows):
                    product[i] += entry[i] * vector[i]


def move_rows(
    begin: int,
    end: int,
    rewards: FloatArray,
    simplex: bool,
    per_room: FloatArray,
    per_price: FloatArray,
    ratio: FloatArray,
    total: FloatArray,
    mean: FloatArray,
    metric: FloatArray,
    flow: FloatArray,
    pull: FloatArray,
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
                entry, right = metric[j, k, part], push[k, part]
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
                    entry, rest = metric[j, k, part], left[k]
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
            z, gap, u, v = ratio[a, part], pull[a, part], per_room[a, part], per_price[a, part]
            for i in range(rows):
                step_price[i] = gap[i] - z[i] * step_room[i]
            for i in range(rows):
                fall = step_room[i] * u[i]
                falls_room[i] = min(falls_room[i], fall)
            for i in range(rows):
                fall = step_price[i] * v[i]
                falls_price[i] = min(falls_price[i], fall)
    return falls_room.min(), falls_price.min()


def products_after(
    room: FloatArray,
    price: FloatArray,
    d_room: FloatArray,
    d_price: FloatArray,
    primal: float,
    dual: float,
    weights: FloatArray,
) -> tuple[float, float]:
    """Return the weighted sum and the least of all products after a step of these lengths."""
    n, step = weights.size, _ROWS
    total, least = 0.0, np.full(step, np.inf)
    for first in range(0, n, step):
        part = slice(first, min(first + step, n))
        w = weights[part]
        for a in range(room.shape[0]):
            x, y, dx, dy = room[a, part], price[a, part], d_room[a, part], d_price[a, part]
            for i in range(w.size):
                product = (x[i] + primal * dx[i]) * (y[i] + dual * dy[i])
                total += w[i] * product
                least[i] = min(least[i], product)
    return total, least.min()


def widen_gaps(
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
    low, high = 0.1 * target, 10.0 * target
    for a in range(room.shape[0]):
        gap, out, x, y, dx, dy = gaps[a], wider[a], room[a], price[a], d_room[a], d_price[a]
        for i in range(x.size):
            product = (x[i] + primal * dx[i]) * (y[i] + dual * dy[i])
            missed = low - product if product < low else high - product if product > high else 0.0
            out[i] = gap[i] + (max(-high, missed))


def correct_gaps(
    products: FloatArray, d_room: FloatArray, d_price: FloatArray, target: float, gaps: FloatArray
) -> None:
    """Write the gaps of products to a target, less the products of a step's parts."""
    for a in range(products.shape[0]):
        now, dx, dy, out = products[a], d_room[a], d_price[a], gaps[a]
        for i in range(now.size):
            out[i] = target - now[i] - dx[i] * dy[i]


def advance(values: FloatArray, steps: FloatArray, length: float, result: FloatArray) -> None:
    """Write values after a step of some length."""
    for a in range(values.shape[0]):
        x, dx, out = values[a], steps[a], result[a]
        for i in range(x.size):
            out[i] = x[i] + length * dx[i]
