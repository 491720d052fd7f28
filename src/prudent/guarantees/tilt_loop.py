"""Tilts of all rows, as a loop to be compiled: a block of rows stays in the cache while all tests are added up."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray
from prudent.compiled import compiled

__all__ = ["tilt_rows", "tilted"]

_ROWS = 256


def tilted(values: FloatArray, table: FloatArray) -> FloatArray | None:
    """Compute ``values @ table`` for tests ``(n, c)`` and a table ``(c, d)``; None where a loop is not worth it.

    Test by test, as NumPy would add them up, so that a tilt is the same to the last bit.
    """
    loop = compiled(tilt_rows, len(values), exact=True)
    if loop is None:
        return None
    tilts = np.empty((len(values), table.shape[1]))
    loop(values, np.ascontiguousarray(table), tilts)
    return tilts


def tilt_rows(values: FloatArray, table: FloatArray, tilts: FloatArray) -> None:
    """Write ``sum_c values[i, c] table[c]`` for every row ``i``, in the order of the tests."""
    n, d = tilts.shape
    block = np.empty((d, _ROWS))
    for first in range(0, n, _ROWS):
        rows = min(_ROWS, n - first)
        block[:] = 0.0
        for c in range(values.shape[1]):
            test = values[first : first + rows, c]
            for j in range(d):
                factor, total = table[c, j], block[j]
                if factor != 0.0:
                    for i in range(rows):
                        total[i] += test[i] * factor
        for j in range(d):
            total = block[j]
            for i in range(rows):
                tilts[first + i, j] = total[i]
