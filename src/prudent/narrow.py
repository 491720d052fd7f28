"""Tables with many rows and few columns: NumPy looks at such rows one by one, which takes ten times as long."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_in_rows", "smallest_in_rows"]

_NARROW = 16
_FEW_NUMBERS = 1_000


def smallest_in_rows(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smallest number along the last axis, of which there is at least one."""
    return _reduced(np.minimum, table)


def largest_in_rows(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest number along the last axis, of which there is at least one."""
    return _reduced(np.maximum, table)


def _reduced(extreme: np.ufunc, table: NDArray[np.float64]) -> NDArray[np.float64]:
    width = table.shape[-1]
    if width > _NARROW or table.size < _FEW_NUMBERS:
        whole: Any = extreme.reduce(table, axis=-1)
        return np.asarray(whole)
    result = table[..., 0].copy()
    for j in range(1, width):
        extreme(result, table[..., j], out=result)
    return result
