"""What policies expect of outcomes, as a loop to be compiled: one pass over the rows, without a table of products."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["add_up_means"]

_ROWS = 1 << 10


def add_up_means(mixtures: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
    """Add up ``w_i pi_i(a)`` and ``w_i pi_i(a) p_i`` for every action, shape ``(blocks, m, 1 + d)``."""
    (n, d), m = points.shape, mixtures.shape[1]
    sums = np.zeros(((n + _ROWS - 1) // _ROWS, m, 1 + d))
    for i in range(n):
        into = sums[i // _ROWS]
        for a in range(m):
            share = weights[i] * mixtures[i, a]
            into[a, 0] += share
            for j in range(d):
                into[a, 1 + j] += share * points[i, j]
    return sums
