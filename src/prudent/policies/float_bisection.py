"""Bisection over doubles themselves: where a rule changes, to the last bit."""

from collections.abc import Callable

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray

_PARTS = 64


def first_among(reached: Callable[[FloatArray], BoolArray], low: float, high: float) -> float:
    """Return the least double in ``(low, high]`` at which a property that stays holds; it holds at ``high``.

    The property is tested at many doubles at once: one part of 64 is left after each look.
    """
    below, above = _ranks(np.array([low, high])).tolist()
    while above - below > 1:
        ranks = range(below, above + 1, max(1, (above - below) // _PARTS))[1:]
        holds = reached(_doubles(np.array(ranks)))
        first = int(holds.argmax()) if holds.any() else len(ranks)
        below, above = (ranks[first - 1] if first else below), (ranks[first] if first < len(ranks) else above)
    return float(_doubles(np.array([above]))[0])


def neighbours(values: FloatArray, count: int) -> FloatArray:
    """Return values and ``count`` doubles on each side of each, in order."""
    return _doubles(np.unique(_ranks(values)[:, None] + np.arange(-count, count + 1)))


def _ranks(values: FloatArray) -> IntArray:
    """Number doubles in their order; both zeros are 0."""
    bits = (np.abs(values) + 0.0).view(np.int64)
    return np.where(values < 0, -bits, bits)


def _doubles(ranks: IntArray) -> FloatArray:
    values = np.abs(ranks).view(np.float64)
    return np.where(ranks >= 0, values, -values)
