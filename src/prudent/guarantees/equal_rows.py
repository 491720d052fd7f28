"""Rows that no solver can tell apart: found once, by a hash of what is known about them."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray

__all__ = ["equal_rows"]

_ROWS_TO_SAMPLE = 5_000
_SAMPLE = 1_000


def equal_rows(*tables: FloatArray) -> tuple[int, IntArray] | None:
    """Number the groups of equal rows in tables ``(n, ...)`` side by side; None if all differ, or hardly any are equal.

    Returns
    -------
    count : int
    index : array of shape (n,)
        The group of each row.
    """
    n = len(tables[0])
    if n > _ROWS_TO_SAMPLE:
        # If rows repeat often enough to matter, some of these thousand do.
        rows = _distinct(np.random.default_rng(0).integers(0, n, _SAMPLE))
        sample = _keys([table[rows] for table in tables])
        if sample.shape[1] and _distinct(_fingerprints(sample)).size == rows.size:
            return None
    keys = _keys(tables)
    if keys.shape[1] == 0:
        return 1, np.zeros(n, dtype=np.int64)
    _, first, index = np.unique(_fingerprints(keys), return_index=True, return_inverse=True)
    if first.size == n or not np.array_equal(keys, keys[first[index]]):
        return None  # nothing to merge, or two keys share a fingerprint
    return first.size, index


def _keys(tables: list[FloatArray] | tuple[FloatArray, ...]) -> FloatArray:
    """Everything that tells rows apart, one line per row."""
    flat = [table.reshape(table.shape[0], -1) for table in tables]
    return np.hstack(flat) + 0.0  # so that 0.0 and -0.0 are one key


def _fingerprints(keys: FloatArray) -> IntArray:
    """Hash each row of bit patterns to 64 bits; equal rows get equal numbers."""
    bits = keys.view(np.uint64)
    mixed = np.zeros(keys.shape[0], dtype=np.uint64)
    for j in range(keys.shape[1]):
        mixed ^= bits[:, j]
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def _distinct(numbers: IntArray) -> IntArray:
    """Sort numbers and leave out repetitions; for few of them faster than ``np.unique``."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
