"""Tables with many rows and few columns: NumPy looks at such rows one by one, which takes ten times as long or more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_in_columns", "largest_in_rows", "smallest_in_columns", "smallest_in_rows", "sums_of_rows"]

_NARROW = 16
_VERY_NARROW = 4
_FEW_NUMBERS = 1_000


def smallest_in_rows(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smallest number along the last axis, of which there is at least one."""
    return _reduced(np.minimum, table)


def largest_in_rows(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest number along the last axis, of which there is at least one."""
    return _reduced(np.maximum, table)


def smallest_in_columns(table: NDArray[np.floating[Any]], initial: float = np.inf) -> NDArray[np.float64]:
    """Smallest number of each column ``(n, k)`` and the initial one."""
    if table.shape[1] > _NARROW:
        return np.asarray(table.min(axis=0, initial=initial))
    return np.array([column.min(initial=initial) for column in table.T])


def largest_in_columns(table: NDArray[np.floating[Any]], initial: float = -np.inf) -> NDArray[np.float64]:
    """Largest number of each column ``(n, k)`` and the initial one."""
    if table.shape[1] > _NARROW:
        return np.asarray(table.max(axis=0, initial=initial))
    return np.array([column.max(initial=initial) for column in table.T])


def sums_of_rows(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of each row ``(n, k)``, of which there is at least one column."""
    if table.shape[1] > _VERY_NARROW or table.size < _FEW_NUMBERS:
        return np.asarray(np.einsum("nk->n", table))
    total = table[:, 0].copy()
    for column in table.T[1:]:
        total += column
    return total


def _reduced(extreme: np.ufunc, table: NDArray[np.float64]) -> NDArray[np.float64]:
    width = table.shape[-1]
    if width > _NARROW or table.size < _FEW_NUMBERS:
        whole: Any = extreme.reduce(table, axis=-1)
        return np.asarray(whole)
    result = table[..., 0].copy()
    for j in range(1, width):
        extreme(result, table[..., j], out=result)
    return result
