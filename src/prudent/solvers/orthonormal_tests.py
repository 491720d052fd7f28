"""Tests that must vanish exactly only matter through their span: write them in an orthonormal basis.

Nearly equal tests are tests of their own, down to rounding: two columns that differ by 1e-13 restrict worlds as much
as two that differ by one. Combinations of tests are therefore computed in twice the working precision, by error-free
transformations (Dekker; Ogita, Rump and Oishi), and a test is dropped only if on every row it is a combination of the
others up to the rounding of its own numbers.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen, sums_of_rows
from prudent.guarantees.evaluated import EvaluatedTests

_SPLITTER = 2.0**27 + 1.0
_PASSES = 4
_ROWS_AT_ONCE = 1 << 13
_SMALL = 1e-8


@frozen
class Basis:
    """Combinations of columns.

    Attributes
    ----------
    transform : array of shape (p, r)
        Orthonormal columns are the given ones times this matrix.
    null : array of shape (p - r, p)
        Combinations that are zero on every row.
    values : array of shape (N, r)
        The orthonormal columns.
    error : array of shape (r,)
        By how much the numbers of each column may be off, beside one rounding of their own.
    """

    transform: FloatArray
    null: FloatArray
    values: FloatArray
    error: FloatArray


def gram_of_movements(
    tests: EvaluatedTests, weights: FloatArray, room: FloatArray, simplex: bool, single: bool
) -> FloatArray:
    """Compute ``sum_i w_i B_i^T D_i B_i``, nothing of which cancels.

    In ``single`` tests every moment has one coordinate, as those of scalar tests.
    """
    total = np.maximum(sums_of_rows(room), 1e-300)
    if simplex and not single:
        values = tests.vectors
        values = values - np.einsum("nd,nkd->nk", room / total[:, None], values)[:, :, None]
        flat = values.transpose(0, 2, 1).reshape(room.size, -1)
        return (flat * (weights[:, None] * room).reshape(-1, 1)).T @ flat
    source, d = tests.source, room.shape[1]
    gram = np.zeros((len(source), len(source)))
    in_coordinate = [np.flatnonzero(source[:, j] >= 0) for j in range(d)]
    taken = [tests.table[:, source[moments, j]] for j, moments in enumerate(in_coordinate)]
    for a in range(d):
        for b in range(a + 1) if simplex else [a]:
            entry = room[:, a]
            if simplex:
                mine = room.sum(axis=1, where=np.arange(d) != a) if a == b else -room[:, b]
                entry = entry * mine / total
            block = (taken[a] * (weights * entry)[:, None]).T @ taken[b]
            gram[np.ix_(in_coordinate[a], in_coordinate[b])] += block
            if a != b:
                gram[np.ix_(in_coordinate[b], in_coordinate[a])] += block.T
    return gram


def orthonormal_basis(columns: FloatArray, weights: FloatArray, rounding: float = 2.0) -> Basis:
    """Orthonormalise columns ``(N, p)`` in the weighted inner product (Gram and Schmidt, repeated).

    A combination of at most ``rounding`` epsilon of what it is made of, on every row, counts as zero.

    Lengths are scaled to one up to a factor of two, by powers of two, which are free of rounding.
    """
    n, p = columns.shape
    norms = np.sqrt(weights @ columns**2)
    values, error, squares = np.empty((p, n)), np.zeros(p), np.zeros(p)
    transform, null = np.zeros((p, p)), list[FloatArray]()
    rank = 0
    for j in range(p):
        mixed = np.zeros(p)
        mixed[j] = 1.0 / norms[j] if norms[j] > 0 else 1.0
        found, size = columns[:, j] * mixed[j], float(norms[j] > 0)
        for _ in range(_PASSES if size else 0):
            inner = values[:rank] @ (weights * found) / squares[:rank]
            if np.abs(inner).max(initial=0.0) <= _SMALL * size:
                break
            mixed = mixed - transform[:, :rank] @ inner
            found, sizes = accurate_combination(columns, mixed)
            size = float(np.sqrt(weights @ found**2))
            if size <= _SMALL and (np.abs(found) <= rounding * EPSILON * sizes).all():
                break
        if 0.0 < size <= _SMALL:  # indicators and the like are sums and differences of each other
            for candidate in (_with_simple_fractions(mixed / mixed[j]), mixed):
                rest, sizes = accurate_combination(columns, candidate)
                if size and (np.abs(rest) <= rounding * EPSILON * sizes).all():
                    mixed, size = candidate, 0.0
        if size == 0.0:
            null.append(mixed)
            continue
        scale = 2.0 ** -np.round(np.log2(size))
        transform[:, rank], values[rank], squares[rank] = mixed * scale, found * scale, (size * scale) ** 2
        error[rank] = (p + 4) ** 2 * EPSILON**2 * scale * float((np.abs(columns) @ np.abs(mixed)).max())
        rank += 1
    return Basis(transform[:, :rank], np.array(null).reshape(len(null), p), values[:rank].T, error[:rank])


def _with_simple_fractions(numbers: FloatArray) -> FloatArray:
    """Put numbers that are nearly a multiple of 1/1,024 there."""
    simple = np.round(numbers * 1024) / 1024
    return np.where(np.abs(numbers - simple) <= _SMALL, simple, numbers)


def accurate_combination(columns: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute ``columns @ factors`` in twice the working precision, rounded; and ``|columns| @ |factors|``."""
    result, sizes = np.empty(len(columns)), np.empty(len(columns))
    chosen: IntArray = np.flatnonzero(factors)
    for first in range(0, len(columns), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        high = np.zeros(len(columns[part]))
        low, size = np.zeros_like(high), np.zeros_like(high)
        for j in chosen:
            product, rest = _two_product(np.ascontiguousarray(columns[part, j]), float(factors[j]))
            high, lost = two_sum(high, product)
            low += lost + rest
            size += np.abs(product)
        result[part], sizes[part] = high + low, size
    return result, sizes


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rounded sum and what rounding took away, exactly."""
    total = a + b
    share = total - a
    return total, (a - (total - share)) + (b - share)


def _two_product(a: FloatArray, b: float) -> tuple[FloatArray, FloatArray]:
    """Return the rounded product and what rounding took away, exactly."""
    product = a * b
    a_high, b_high = _SPLITTER * a, _SPLITTER * b
    a_high = a_high - (a_high - a)
    b_high = b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
