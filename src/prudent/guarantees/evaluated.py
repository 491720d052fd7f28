"""Tests evaluated on rows: the only form in which solvers ever see a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.equal_rows import equal_rows, numbered
from prudent.guarantees.tilt_loop import tilted
from prudent.narrow import largest_in_columns, smallest_in_columns
from prudent.remembering import remembered_for_arrays

__all__ = ["EvaluatedTests", "mean_sizes", "write_out"]

_ROWS_FOR_LONG_SUMS = 100
_FEW_MOMENTS = 3


@dataclass(frozen=True, eq=False)
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
        layout = _layout(
            tuple(test_names),
            tuple(coordinate_names),
            tuple(scales.tolist()),
            tuple((scales if bounds is None else bounds).tolist()),
        )
        values = values if values.flags.f_contiguous else np.ascontiguousarray(values)
        names, all_scales, groups, limits = layout
        return cls(values, names, all_scales, groups, len(coordinate_names), limits, disjoint)

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

    @cached_property
    def cells(self) -> tuple[int, IntArray] | None:
        """Groups of rows with equal tests: how many, and that of each row; None if there is nothing to gain."""
        return equal_rows(self.values) if self.labels is None else numbered(self.labels)

    @property
    def table(self) -> FloatArray:
        """Everything that tests tell rows apart by, two-dimensional."""
        return self.values.reshape(self.n_rows, -1)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Arrays over rows that sums and solvers are given."""
        return [self.values, *([] if self.cells is None else [self.cells[1]])]

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return self.values.nbytes

    @property
    def sizes(self) -> FloatArray:
        """Largest absolute number of every test over rows, ``(k,)``; of vector tests by coordinate, ``(K d,)``."""
        flat = self.values.reshape(self.n_rows, -1)
        return np.maximum(largest_in_columns(flat, 0.0), -smallest_in_columns(flat, 0.0))

    def moment_sizes(self, width: FloatArray) -> FloatArray:
        """How large residuals of at most this width ``(d,)`` can make each moment, ``(K,)``."""
        sizes = self.sizes
        return np.outer(sizes, width).reshape(-1) if self.scalar else sizes.reshape(-1, self.dimension) @ width

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which moments have a test that is not zero everywhere, ``(K,)``."""
        if self.scalar:
            return np.repeat(self.sizes > 0, self.dimension)
        return np.asarray((self.sizes.reshape(-1, self.dimension) > 0).any(axis=1))

    def tilts(self, multipliers: FloatArray) -> FloatArray:
        """Compute the tilt ``s(v) = sum_j lambda_j B_j(v)`` of each row, shape ``(n, d)``.

        Accumulated test by test and not by a matrix product, so that the tilt
        of a forecast does not depend, even in its last bit, on its neighbours.
        """
        if self.scalar and self.n_rows > _ROWS_FOR_LONG_SUMS:
            table = multipliers.reshape(-1, self.dimension)
            found = tilted(self.values, table)
            if found is not None:
                return found
            columns = np.zeros((self.dimension, self.n_rows))  # long sums first, then the shape that rows have
            for i in np.flatnonzero(table.any(axis=1)):
                test = np.ascontiguousarray(self.values[:, i])
                for column, multiplier in zip(columns, table[i], strict=True):
                    column += test * multiplier
            return np.ascontiguousarray(columns.T)
        if self.scalar and self.n_moments:
            shares = self.values[:, :, None] * multipliers.reshape(-1, self.dimension)
            return np.add.accumulate(shares, axis=1)[:, -1] + 0.0
        tilts = np.zeros((self.n_rows, self.dimension))
        for j in np.flatnonzero(multipliers):
            tilts += self.values[:, j] * multipliers[j]
        return tilts

    def reach(self, multipliers: FloatArray, weights: FloatArray, width: FloatArray) -> float:
        """Compute ``sum_i w_i sum_j |lambda_j| |B_j(v_i)| . width``: what tilts are made of before anything cancels."""
        totals = mean_sizes(self.values, weights)
        if self.scalar:
            return float(totals @ np.abs(multipliers).reshape(-1, self.dimension) @ width)
        return float(np.abs(multipliers).reshape(-1) @ totals.reshape(-1, self.dimension) @ width)

    def factors(self, multipliers: FloatArray) -> FloatArray | None:
        """What columns of the table are multiplied by to make a tilt, ``(c, d)``; None where there is no such thing."""
        return multipliers.reshape(-1, self.dimension) if self.scalar else None

    def combined(self, sums: FloatArray) -> FloatArray:
        """Moments from sums ``(c, d)`` of the table's columns times weighted residuals, where there are factors."""
        return sums.reshape(-1)

    def moments(self, residuals: FloatArray, weights: FloatArray) -> FloatArray:
        """Compute ``sum_i w_i B_j(v_i) . residual_i`` for every moment, shape ``(K,)``."""
        weighted = weights[:, None] * residuals
        if self.scalar and self.values.shape[1] * self.dimension <= _FEW_MOMENTS:  # not worth a library's threads
            return np.einsum("nk,nd->kd", self.values, weighted).reshape(-1)
        if self.scalar:
            return (self.values.T @ weighted).reshape(-1)
        return np.einsum("nkd,nd->k", self.values, weighted)

    def row_moments(self, residuals: FloatArray) -> FloatArray:
        """Compute ``B_j(v_i) . residual_i`` for every row and moment, shape ``(n, K)``."""
        if self.scalar:
            return (self.values[:, :, None] * residuals[:, None, :]).reshape(len(residuals), -1)
        return np.einsum("nkd,nd->nk", self.values, residuals)

    def take(self, index: IntArray | slice) -> EvaluatedTests:
        """Keep the given rows."""
        labels = None if self.labels is None else self.labels[index]
        return replace(self, values=self.values[index], labels=labels)

    def without_rows(self) -> EvaluatedTests:
        """Keep names, scales, groups and bounds; a copy, since a view of no rows would keep all of them in memory."""
        return replace(self, values=self.values[:0].copy(), labels=None)

    def as_vector(self) -> EvaluatedTests:
        """Write every scalar test as its ``d`` vector tests ``h e_1 .. h e_d``."""
        if not self.scalar:
            return self
        return replace(self, values=write_out(self.values, self.dimension))


@remembered_for_arrays
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


@lru_cache(maxsize=64)
def _layout(
    test_names: tuple[str, ...], coordinate_names: tuple[str, ...], scales: tuple[float, ...], bounds: tuple[float, ...]
) -> tuple[tuple[str, ...], FloatArray, IntArray, FloatArray]:
    """Names, scales, groups and bounds of the moments of scalar tests; every prediction asks for the same few."""
    k, d = len(test_names), len(coordinate_names)
    names = tuple(f"{test} x {coordinate}" for test in test_names for coordinate in coordinate_names)
    limits = np.zeros((k * d, d))
    limits[np.arange(k * d), np.tile(np.arange(d), k)] = np.repeat(bounds, d)
    layout = np.repeat(np.array(scales), d), np.repeat(np.arange(k), d), limits
    for part in layout:
        part.flags.writeable = False  # they are shared
    return (test_names if d == 1 else names), *layout
