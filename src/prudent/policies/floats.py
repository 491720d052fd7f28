"""Bisection over doubles themselves: where a rule changes, to the last bit."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray

__all__ = ["first_among", "first_at_least", "neighbours"]

_PARTS = 64


def first_at_least(reached: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least double in ``(low, high]`` at which a property that stays holds; it holds at ``high``."""
    below, above = _rank(low), _rank(high)
    while above - below > 1:
        middle = (below + above) // 2
        if reached(_double(middle)):
            above = middle
        else:
            below = middle
    return _double(above)


def first_among(reached: Callable[[FloatArray], NDArray[np.bool_]], low: float, high: float) -> float:
    """The same for a property that is tested at many doubles at once: one part of 64 is left after each look."""
    below, above = _rank(low), _rank(high)
    while above - below > 1:
        ranks = range(below, above + 1, max(1, (above - below) // _PARTS))[1:]
        holds = reached(_doubles(np.array(ranks)))
        first = int(holds.argmax()) if holds.any() else len(ranks)
        below, above = (ranks[first - 1] if first else below), (ranks[first] if first < len(ranks) else above)
    return _double(above)


def _rank(value: float) -> int:
    """Number doubles in their order; both zeros are 0."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return int(bits) if bits >= 0 else -(int(bits) & 0x7FFFFFFFFFFFFFFF)


def _double(rank: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<q", abs(rank)))
    return float(value) if rank >= 0 else -float(value)


def _doubles(ranks: IntArray) -> FloatArray:
    values = np.abs(ranks).view(np.float64)
    return np.where(ranks >= 0, values, -values)


def neighbours(values: FloatArray, count: int) -> FloatArray:
    """Return values and up to ``count`` doubles on each side of each, in order."""
    ranks = {_rank(float(value)) + step for value in values for step in range(-count, count + 1)}
    return np.array([_double(rank) for rank in sorted(ranks)])
