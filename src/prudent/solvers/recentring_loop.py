"""Steps of all rows to the central path, as a loop to be compiled: what ``recentred`` in row_newton does."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.row_factor_loop import factor_rows
from prudent.solvers.row_loops import measure_rows, move_rows, push_rows

__all__ = ["CALLED", "MOST_RECENTRING", "recentre_rows"]

#: Most steps to the central path; rows that need more stay where they are by then.
MOST_RECENTRING = 25


def recentre_rows(
    rewards: FloatArray,
    simplex: bool,
    tilts: FloatArray,
    mu: float,
    room: FloatArray,
    price: FloatArray,
    nu: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bring rows with given tilts to the central path, every row with steps of its own."""
    (d, n), c = tilts.shape, len(room)
    room, price, nu = room.copy(), price.copy(), nu.copy()
    to_zero, dual_residual, sum_residual = np.empty((c, n)), np.empty((d, n)), np.empty(n)
    per_room, ratio, total, mean = np.empty((c, n)), np.empty((c, n)), np.empty(n), np.empty((d, n))
    metric, flow = np.empty((d * (d + 1) // 2, n)), np.empty((d if simplex else 0, n))
    gaps, surplus, push, image = np.empty((c, n)), np.empty(n), np.empty((d, n)), np.empty((d, n))
    d_room, d_price, d_nu = np.empty((c, n)), np.empty((c, n)), np.empty(n)
    products, fall_room, fall_price = np.empty(n), np.empty(n), np.empty(n)
    for _ in range(MOST_RECENTRING):
        measure_rows(0, n, rewards, simplex, room, price, nu, tilts, to_zero, dual_residual, sum_residual)
        off, missed = 0.0, 0.0
        products[:] = 0.0
        for a in range(c):
            for i in range(n):
                off = max(off, abs(to_zero[a, i] / mu + 1.0))
                products[i] -= to_zero[a, i] / c
        for j in range(d):
            for i in range(n):
                missed = max(missed, abs(dual_residual[j, i]))
        if off < 0.5 and missed < 0.1 * mu:
            break
        factor_rows(0, n, rewards, simplex, room, price, per_room, ratio, total, mean, metric, flow)
        for a in range(c):
            for i in range(n):
                gaps[a, i] = max(0.1 * products[i], mu) + to_zero[a, i]
        push_rows(
            0, n, rewards, simplex, gaps, per_room, mean, dual_residual, sum_residual, metric, surplus, push, image
        )
        move_rows(
            0,
            n,
            rewards,
            simplex,
            per_room,
            ratio,
            total,
            mean,
            metric,
            flow,
            gaps,
            surplus,
            push,
            0,
            d_room,
            d_price,
            d_nu,
        )
        fall_room[:], fall_price[:] = -1e-9, -1e-9
        for a in range(c):
            for i in range(n):
                fall_room[i] = min(fall_room[i], d_room[a, i] / room[a, i])
                fall_price[i] = min(fall_price[i], d_price[a, i] / price[a, i])
        for i in range(n):
            fall_room[i] = min(1.0, -0.95 / fall_room[i])  # how far the row may go
            fall_price[i] = min(1.0, -0.95 / fall_price[i])
            nu[i] += fall_price[i] * d_nu[i]
        for a in range(c):
            for i in range(n):
                room[a, i] += fall_room[i] * d_room[a, i]
                price[a, i] += fall_price[i] * d_price[a, i]
    return room, price, nu


#: Functions that the loop calls, and that are compiled along with it.
CALLED = (factor_rows, measure_rows, move_rows, push_rows)
