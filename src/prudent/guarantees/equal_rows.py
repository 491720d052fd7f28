"""Rows that no solver can tell apart: found once, by a hash of what is known about them."""

import numpy as np

from prudent.arrays import FloatArray, IntArray


def equal_rows(*tables: FloatArray) -> tuple[int, IntArray] | None:
    """Number the groups of equal rows in tables ``(n, ...)`` side by side; None if all differ, or hardly any are equal.

    Returns
    -------
    count : int
    index : array of shape (n,)
        The group of each row.
    """
    n = len(tables[0])
    if n > 5_000:
        # If rows repeat often enough to matter, some of these thousand do.
        rows = np.unique(np.random.default_rng(0).integers(0, n, 1_000))
        sample = _columns([table[rows] for table in tables])
        if sample and np.unique(_fingerprints(sample, rows.size)).size == rows.size:
            return None
    columns = _columns(tables)
    if not columns:
        return 1, np.zeros(n, dtype=np.int64)
    _, first, index = np.unique(_fingerprints(columns, n), return_index=True, return_inverse=True)
    if first.size == n or not all(np.array_equal(column, column[first][index]) for column in columns):
        return None  # nothing to merge, or two keys share a fingerprint
    return first.size, index


def numbered(labels: IntArray) -> tuple[int, IntArray] | None:
    """Number groups of rows that have the same label, a small number; None if all differ."""
    occurs = np.bincount(labels) > 0
    count = int(occurs.sum())
    if count == labels.size:
        return None
    return count, labels if occurs.all() else (np.cumsum(occurs) - 1).take(labels)


def _columns(tables: list[FloatArray] | tuple[FloatArray, ...]) -> list[FloatArray]:
    """Everything that tells rows apart, one array per number that a row has."""
    # Adding zero makes 0.0 and -0.0 one key, and copies.
    return [column + 0.0 for table in tables for column in table.reshape(table.shape[0], -1).T]


def _fingerprints(columns: list[FloatArray], n: int) -> IntArray:
    """Hash the bit patterns of each row to 64 bits; equal rows get equal numbers."""
    mixed = np.zeros(n, dtype=np.uint64)
    for column in columns:
        mixed ^= column.view(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)
