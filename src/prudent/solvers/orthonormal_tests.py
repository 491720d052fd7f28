"""Tests that must vanish exactly only matter through their span: write them in an orthonormal basis.

Nearly equal tests are tests of their own, down to rounding: two columns that differ by 1e-13 restrict worlds as much
as two that differ by one. Combinations of tests are therefore computed in twice the working precision, by error-free
transformations (Dekker; Ogita, Rump and Oishi), and a test is dropped only if on every row it is a combination of the
others up to the rounding of its own numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen
from prudent.arrays.column_reductions import largest_in_columns, smallest_in_columns, sums_of_rows
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


@frozen
class SummedTests:
    """Tests of some moments, for sums over blocks of rows.

    Attributes
    ----------
    of_rows : callable
        Scalar tests ``(b, k)`` of a block of rows, or vector tests ``(b, p, d)``.
    coordinates : array of indices or None
        Those that each scalar test has a moment in; None for vector tests.
    """

    of_rows: Callable[[slice], FloatArray]
    coordinates: IntArray | None = None

    @classmethod
    def of(cls, tests: EvaluatedTests, chosen: IntArray, written: bool = False) -> SummedTests:
        """Take some moments' tests as they are, or ``written`` out as vector tests."""
        kinds, coordinates = np.unique(chosen // tests.dimension), np.unique(chosen % tests.dimension)
        if written or not tests.scalar or kinds.size * coordinates.size != chosen.size:
            return cls(lambda part: tests.take(part).as_vector().values[:, chosen])
        everything = kinds.size == tests.values.shape[1]
        return cls(lambda part: tests.values[part] if everything else tests.values[part][:, kinds], coordinates)

    def moments(self, values: FloatArray, weighted: FloatArray) -> FloatArray:
        """Sum up test times number, flat, for values of these tests and weighted numbers ``(b, d)``."""
        if self.coordinates is None:
            return np.tensordot(values, weighted, axes=([0, 2], [0, 1]))
        return (values.T @ weighted[:, self.coordinates]).reshape(-1)

    def sizes(self) -> FloatArray:
        """Largest absolute number of every moment's test, flat."""
        table = self.of_rows(slice(None))
        if self.coordinates is None:
            return np.abs(table).max(axis=(0, 2))
        largest = np.maximum(largest_in_columns(table, 0.0), -smallest_in_columns(table, 0.0))
        return np.repeat(largest, self.coordinates.size)

    def gram(self, part: slice, weights: FloatArray, room: FloatArray, simplex: bool) -> FloatArray:
        """Compute ``sum_i w_i B_i^T D_i B_i``, nothing of which cancels."""
        total, values = np.maximum(sums_of_rows(room), 1e-300), self.of_rows(part)
        if self.coordinates is None:
            if simplex:
                values = values - np.einsum("nd,nkd->nk", room / total[:, None], values)[:, :, None]
            flat = values.transpose(0, 2, 1).reshape(room.size, values.shape[1])
            return (flat * (weights[:, None] * room).reshape(-1, 1)).T @ flat
        k, places = values.shape[1], self.coordinates
        gram = np.zeros((k, places.size, k, places.size))
        for a, one in enumerate(places):
            for b, other in enumerate(places[: a + 1]):
                if simplex:
                    mine = room.sum(axis=1, where=np.arange(room.shape[1]) != one) if a == b else -room[:, other]
                    entry = room[:, one] * mine / total
                elif a == b:
                    entry = room[:, one]
                else:
                    continue
                gram[:, a, :, b] = gram[:, b, :, a] = (values * (weights * entry)[:, None]).T @ values
        return gram.reshape(k * places.size, -1)


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
