"""Tests evaluated on rows: the only form in which solvers ever see a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen
from prudent.arrays.column_reductions import largest_in_columns, smallest_in_columns
from prudent.guarantees.equal_rows import equal_rows, numbered


@frozen
class EvaluatedTests:
    """Test functions at ``n`` forecasts, with the names and units of their moments.

    A *scalar* test ``h`` stands for the ``d`` moments ``E[h (Y - v)]``; a
    *vector* test ``B`` for the single moment ``E[B . (Y - v)]``. Moments are
    kept flat, in the order of ``names``; scalar tests list their ``d``
    coordinates together.

    Attributes
    ----------
    values : array of shape (n, k) if all tests are scalar, else (n, K, d)
    names : tuple of str
        One per moment, length ``K`` (``k * d`` for scalar tests).
    scales : array of shape (K,)
        ``max |h|`` over the space where slack is in outcome units, else 1.
    groups : array of shape (K,)
        The test that each moment belongs to; slack norms act within a test.
    dimension : int
        Number of outcome coordinates ``d``.
    bounds : array of shape (K, d)
        The largest coordinates of ``|B|`` at any forecast of the space (for a scalar test ``|h|`` in its own
        coordinate); infinite where nobody knows.
    disjoint : bool
        True if in every coordinate at most one test is not zero, as for cells.
    labels : array of shape (n,) or None
        Rows with the same label, a small number, have equal tests; None where nobody has labelled them.
    """

    values: FloatArray
    names: tuple[str, ...]
    scales: FloatArray
    groups: IntArray
    dimension: int
    bounds: FloatArray
    disjoint: bool = False
    labels: IntArray | None = None

    @classmethod
    def from_scalar(
        cls,
        values: FloatArray,
        test_names: Sequence[str],
        scales: FloatArray,
        coordinate_names: Sequence[str],
        bounds: FloatArray | None = None,
        *,
        disjoint: bool = False,
    ) -> EvaluatedTests:
        """Wrap scalar tests ``(n, k)``; each gets one moment per coordinate. Bounds ``(k,)`` default to the scales."""
        k, d = len(test_names), len(coordinate_names)
        names = [f"{test} x {coordinate}" for test in test_names for coordinate in coordinate_names]
        limits = np.zeros((k, d, d))
        limits[:, np.arange(d), np.arange(d)] = (scales if bounds is None else bounds)[:, None]
        values = values if values.flags.f_contiguous else np.ascontiguousarray(values)
        named = tuple(test_names if d == 1 else names)
        groups = np.repeat(np.arange(k), d)
        return cls(values, named, np.repeat(scales, d), groups, d, limits.reshape(k * d, d), disjoint)

    @classmethod
    def from_vector(
        cls,
        values: FloatArray,
        names: Sequence[str],
        scales: FloatArray,
        bounds: FloatArray | None = None,
        *,
        disjoint: bool = False,
    ) -> EvaluatedTests:
        """Wrap vector tests ``(n, K, d)``, one moment each. Bounds ``(K, d)`` default to the scales."""
        groups = np.arange(values.shape[1])
        limits = np.repeat(scales[:, None], values.shape[2], axis=1) if bounds is None else bounds
        return cls(np.ascontiguousarray(values), tuple(names), scales, groups, values.shape[2], limits, disjoint)

    @property
    def scalar(self) -> bool:
        """True if every test is a scalar function of the forecast."""
        return self.values.ndim == 2

    @property
    def n_rows(self) -> int:
        """Number of forecasts."""
        return int(self.values.shape[0])

    @property
    def n_tests(self) -> int:
        """Number of tests ``k``."""
        return int(self.groups[-1]) + 1 if self.groups.size else 0

    @property
    def n_moments(self) -> int:
        """Number of moments ``K``."""
        return len(self.names)

    @property
    def multiplier_shape(self) -> tuple[int, ...]:
        """Shape in which multipliers are shown: ``(k, d)`` for scalar tests, else ``(K,)``."""
        return (self.values.shape[1], self.dimension) if self.scalar else (self.n_moments,)

    @property
    def table(self) -> FloatArray:
        """Columns that tests are made of, ``(n, c)``: scalar tests, or coordinates of vector tests."""
        return self.values if self.scalar else self.values.reshape(self.n_rows, self.n_moments * self.dimension)

    @cached_property
    def source(self) -> IntArray:
        """The column of the table that is a coordinate of a moment's test, ``(K, d)``; -1 where it is zero."""
        d = self.dimension
        if not self.scalar:
            return np.arange(self.n_moments * d).reshape(-1, d)
        return np.where(np.eye(d, dtype=bool), np.arange(self.values.shape[1])[:, None, None], -1).reshape(-1, d)

    @cached_property
    def cells(self) -> tuple[int, IntArray] | None:
        """Groups of rows with equal tests: how many, and that of each row; None if there is nothing to gain."""
        return equal_rows(self.table) if self.labels is None else numbered(self.labels)

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return self.table.nbytes

    @property
    def sizes(self) -> FloatArray:
        """Largest absolute number of every column of the table over rows, ``(c,)``."""
        return np.maximum(largest_in_columns(self.table, 0.0), -smallest_in_columns(self.table, 0.0))

    def moment_sizes(self, width: FloatArray) -> FloatArray:
        """How large residuals of at most this width ``(d,)`` can make each moment, ``(K,)``."""
        return np.append(self.sizes, 0.0)[self.source] @ width

    @property
    def seen(self) -> BoolArray:
        """Which moments have a test that is not zero everywhere, ``(K,)``."""
        return np.asarray((np.append(self.sizes, 0.0)[self.source] > 0).any(axis=1))

    def factors(self, multipliers: FloatArray) -> FloatArray:
        """What columns of the table are multiplied by to make a tilt, ``(c, d)``; no two moments share a place."""
        factors = np.zeros((self.table.shape[1], self.dimension))
        moment, coordinate = np.nonzero(self.source >= 0)
        factors[self.source[moment, coordinate], coordinate] = multipliers.reshape(-1)[moment]
        return factors

    def tilts(self, multipliers: FloatArray) -> FloatArray:
        """Compute the tilt ``s(v) = sum_j lambda_j B_j(v)`` of each row, shape ``(n, d)``.

        Accumulated column by column and not by a matrix product, so that the tilt
        of a forecast does not depend, even in its last bit, on its neighbours.
        """
        table, factors = self.table, self.factors(multipliers)
        if len(table) <= 100 and factors.size:
            return np.add.accumulate(table[:, :, None] * factors, axis=1)[:, -1] + 0.0
        tilts = np.zeros((self.dimension, len(table)))  # long sums first, then the shape that rows have
        for i in np.flatnonzero(factors.any(axis=1)):
            column = np.ascontiguousarray(table[:, i])
            for j in np.flatnonzero(factors[i]):
                tilts[j] += column * factors[i, j]
        return np.ascontiguousarray(tilts.T)

    def reach(self, multipliers: FloatArray, weights: FloatArray, width: FloatArray) -> float:
        """Compute ``sum_i w_i sum_j |lambda_j| |B_j(v_i)| . width``: what tilts are made of before anything cancels."""
        totals = np.append(mean_sizes(self.table, weights), 0.0)[self.source]
        return float(np.abs(multipliers).reshape(-1) @ totals @ width)

    def moments(self, residuals: FloatArray, weights: FloatArray) -> FloatArray:
        """Compute ``sum_i w_i B_j(v_i) . residual_i`` for every moment, shape ``(K,)``."""
        weighted, table = weights[:, None] * residuals, self.table
        few = table.shape[1] * self.dimension <= 3  # not worth a library's threads
        sums = np.einsum("nk,nd->kd", table, weighted) if few else table.T @ weighted
        sums = np.concatenate([sums, np.zeros((1, self.dimension))])
        return np.take_along_axis(sums, self.source, axis=0).sum(axis=1)

    def row_moments(self, residuals: FloatArray) -> FloatArray:
        """Compute ``B_j(v_i) . residual_i`` for every row and moment, shape ``(n, K)``."""
        table, result = self.table, np.zeros((self.n_rows, self.n_moments))
        for k, j in np.argwhere(self.source >= 0):
            result[:, k] += table[:, self.source[k, j]] * residuals[:, j]
        return result

    def take(self, index: IntArray | slice) -> EvaluatedTests:
        """Keep the given rows."""
        return self.with_rows(self.table[index], None if self.labels is None else self.labels[index])

    def without_rows(self) -> EvaluatedTests:
        """Keep names, scales, groups and bounds; a copy, since a view of no rows would keep all of them in memory."""
        return self.with_rows(self.table[:0].copy())

    def with_rows(self, table: FloatArray, labels: IntArray | None = None) -> EvaluatedTests:
        """Put other rows, as :attr:`table` has them, under the same names, scales, groups and bounds."""
        shape = (len(table), *self.values.shape[1:])
        return replace(self, values=table if table.shape == shape else table.reshape(shape), labels=labels)

    def as_vector(self) -> EvaluatedTests:
        """Write every scalar test as its ``d`` vector tests ``h e_1 .. h e_d``."""
        if not self.scalar:
            return self
        return replace(self, values=write_out(self.values, self.dimension))


def mean_sizes(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted sums of absolute numbers, one for each that a row has."""
    return np.asarray(weights @ np.abs(values).reshape(len(values), -1))


def write_out(values: FloatArray, d: int) -> FloatArray:
    """Write scalar tests ``(n, k)`` as vector tests ``(n, k d, d)``, each in one coordinate."""
    n, k = values.shape
    if d == 1:
        return values[:, :, None]
    table = np.zeros((n, k, d, d))
    coordinate = np.arange(d)
    table[:, :, coordinate, coordinate] = values[:, :, None]
    return table.reshape(n, k * d, d)
