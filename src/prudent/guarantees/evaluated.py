"""Tests evaluated on rows, the only form in which solvers see a guarantee, and rows that they cannot tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, count

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen, largest_in_columns, smallest_in_columns
from prudent.errors import InputError
from prudent.spaces import Space


@frozen
class EvaluatedTests:
    """Test functions at ``n`` forecasts, with the names and units of their moments.

    A *scalar* test ``h`` stands for the ``d`` moments ``E[h (Y - v)]``; a
    *vector* test ``B`` for the single moment ``E[B . (Y - v)]``. Moments are
    kept flat, in the order of ``names``; scalar tests list their ``d``
    coordinates together. Written out, ``k`` scalar tests beside a vector test
    take ``(k d + 1) d`` numbers per row, most of them zero or repeated; as
    columns of a table they take ``k + d``.

    Attributes
    ----------
    table : array of shape (n, c)
        Columns that tests are made of: scalar tests, or coordinates of vector tests.
    source : array of shape (K, d)
        The column that is a coordinate of a moment's test; -1 where it is zero.
    names : tuple of str
        One per moment, length ``K`` (``k * d`` for scalar tests).
    scales : array of shape (K,)
        ``max |h|`` over the space where slack is in outcome units, else 1.
    groups : array of shape (K,)
        The test that each moment belongs to; slack norms act within a test.
    bounds : array of shape (K, d)
        The largest coordinates of ``|B|`` at any forecast of the space (for a scalar test ``|h|`` in its own
        coordinate); infinite where unknown.
    scalar : bool
        True if every test is a scalar function of the forecast.
    disjoint : bool
        True if in every coordinate at most one test is not zero, as for cells.
    labels : array of shape (n,) or None
        Rows with the same label, a small number, have equal tests; None where there are no labels.
    """

    table: FloatArray
    source: IntArray
    names: tuple[str, ...]
    scales: FloatArray
    groups: IntArray
    bounds: FloatArray
    scalar: bool = False
    disjoint: bool = False
    labels: IntArray | None = None

    @classmethod
    def scalar_layout(
        cls,
        tests: Sequence[str],
        space: Space,
        scales: FloatArray | None = None,
        bounds: FloatArray | None = None,
        *,
        disjoint: bool = False,
    ) -> EvaluatedTests:
        """Name scalar tests, without rows; each has one moment per coordinate.

        Scales ``(k,)`` default to one, bounds ``(k,)`` to the scales.
        """
        k, d = len(tests), space.dimension
        require_few(k * d, space)
        names = tests if d == 1 else [f"{test} x {name}" for test in tests for name in space.coordinate_names]
        own, groups = np.tile(np.eye(d, dtype=bool), (k, 1)), np.repeat(np.arange(k), d)
        units = np.ones(k) if scales is None else scales
        limits = np.where(own, np.repeat(units if bounds is None else bounds, d)[:, None], 0.0)
        made = cls.vector_layout(names, limits, np.where(own, groups[:, None], -1), disjoint=disjoint)
        return replace(made, scales=np.repeat(units, d), groups=groups, scalar=True)

    @classmethod
    def vector_layout(
        cls, names: Sequence[str], bounds: FloatArray, source: IntArray | None = None, *, disjoint: bool = False
    ) -> EvaluatedTests:
        """Name vector tests with bounds ``(K, d)``, without rows; by default each has a column per coordinate."""
        if source is None:
            source = np.arange(bounds.size).reshape(bounds.shape)
        tests, columns = np.arange(len(names)), int(source.max(initial=-1)) + 1
        return cls(np.zeros((0, columns)), source, tuple(names), np.ones(tests.size), tests, bounds, disjoint=disjoint)

    @property
    def values(self) -> FloatArray:
        """Tests ``(n, k)`` if all are scalar, else :attr:`vectors`."""
        return self.table if self.scalar else self.vectors

    @property
    def vectors(self) -> FloatArray:
        """All tests written out, ``(n, K, d)``: a scalar test as ``h e_1 .. h e_d``."""
        if self._written_out:
            return self.table.reshape(self.n_rows, *self.source.shape)
        return np.column_stack([self.table, np.zeros(self.n_rows)])[:, self.source]  # -1 is the column of zeros

    @property
    def _written_out(self) -> bool:
        return np.array_equal(self.source.reshape(-1), np.arange(self.table.shape[1]))

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates ``d``."""
        return int(self.source.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of forecasts."""
        return len(self.table)

    @property
    def n_tests(self) -> int:
        """Number of tests ``k``."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def n_moments(self) -> int:
        """Number of moments ``K``."""
        return len(self.names)

    @property
    def multiplier_shape(self) -> tuple[int, ...]:
        """Shape in which multipliers are shown: ``(k, d)`` for scalar tests, else ``(K,)``."""
        return (self.table.shape[1], self.dimension) if self.scalar else (self.n_moments,)

    @cached_property
    def cells(self) -> tuple[int, IntArray] | None:
        """Groups of rows with equal tests: how many, and that of each row; None if there is nothing to gain."""
        return equal_rows(self.table) if self.labels is None else numbered(self.labels)

    @cached_property
    def sizes(self) -> FloatArray:
        """Largest absolute number of every column of the table over rows, ``(c,)``."""
        return np.maximum(largest_in_columns(self.table, 0.0), -smallest_in_columns(self.table, 0.0))

    def moment_sizes(self, width: FloatArray) -> FloatArray:
        """How large residuals of at most this width ``(d,)`` can make each moment, ``(K,)``."""
        return np.append(self.sizes, 0.0)[self.source] @ width

    @property
    def seen(self) -> BoolArray:
        """Which moments have a test that is not zero everywhere, ``(K,)``."""
        return self.moment_sizes(np.ones(self.dimension)) > 0

    def factors(self, multipliers: FloatArray) -> FloatArray:
        """What columns of the table are multiplied by to make a tilt, ``(c, d)``."""
        factors = np.zeros((self.table.shape[1], self.dimension))
        moment, coordinate = np.nonzero(self.source >= 0)
        np.add.at(factors, (self.source[moment, coordinate], coordinate), multipliers.reshape(-1)[moment])
        return factors

    def tilts(self, multipliers: FloatArray) -> FloatArray:
        """Compute the tilt ``s(v) = sum_j lambda_j B_j(v)`` of each row, shape ``(n, d)``.

        Accumulated column by column and not by a matrix product, so that the tilt
        of a forecast does not depend, even in its last bit, on its neighbours.
        """
        tilts = np.zeros((self.dimension, self.n_rows))  # long sums first, then the shape that rows have
        for column, factor in zip(self.table.T, self.factors(multipliers), strict=True):
            if factor.any():
                tilts += np.multiply.outer(factor, column)
        return np.ascontiguousarray(tilts.T)

    def reach(self, multipliers: FloatArray, weights: FloatArray, width: FloatArray) -> float:
        """Compute ``sum_i w_i sum_j |lambda_j| |B_j(v_i)| . width``: what tilts are made of before anything cancels."""
        totals = np.append(weights @ np.abs(self.table), 0.0)[self.source]
        return float(np.abs(multipliers).reshape(-1) @ totals @ width)

    def moments(self, residuals: FloatArray, weights: FloatArray) -> FloatArray:
        """Compute ``sum_i w_i B_j(v_i) . residual_i`` for every moment, shape ``(K,)``."""
        sums = self.table.T @ (weights[:, None] * residuals)
        sums = np.concatenate([sums, np.zeros((1, self.dimension))])
        return np.take_along_axis(sums, self.source, axis=0).sum(axis=1)

    def row_moments(self, residuals: FloatArray) -> FloatArray:
        """Compute ``B_j(v_i) . residual_i`` for every row and moment, shape ``(n, K)``."""
        result = np.zeros((self.n_rows, self.n_moments))
        for k, j in np.argwhere(self.source >= 0):
            result[:, k] += self.table[:, self.source[k, j]] * residuals[:, j]
        return result

    def take(self, index: IntArray | slice) -> EvaluatedTests:
        """Keep the given rows."""
        return self.with_rows(self.table[index], None if self.labels is None else self.labels[index])

    def without_rows(self) -> EvaluatedTests:
        """Keep names, scales, groups and bounds; a copy, since a view of no rows would keep all of them in memory."""
        return self.with_rows(self.table[:0].copy())

    def with_rows(self, table: FloatArray, labels: IntArray | None = None) -> EvaluatedTests:
        """Put other rows under the same names, scales, groups and bounds."""
        return replace(self, table=table, labels=labels)

    def as_vector(self) -> EvaluatedTests:
        """Write every test out."""
        if self._written_out and not self.scalar:
            return self
        source = np.arange(self.source.size).reshape(self.source.shape)
        return replace(self, table=self.vectors.reshape(self.n_rows, source.size), source=source, scalar=False)


def require_few(n_moments: int, space: Space) -> None:
    """Refuse tests whose bounds alone take more than 80 MB."""
    if n_moments * space.dimension > 10_000_000:
        raise InputError(f"the guarantee has too many tests on {space!r}: {n_moments:,} moments.")


def join(parts: Sequence[EvaluatedTests]) -> EvaluatedTests:
    """Put the tests of several guarantees side by side; repeated names get a number."""
    if len(parts) == 1:
        return parts[0]
    source, groups, columns, tests = [], [], 0, 0
    for part in parts:
        source.append(np.where(part.source >= 0, part.source + columns, -1))
        groups.append(part.groups + tests)
        columns += part.table.shape[1]
        tests += part.n_tests
    return EvaluatedTests(
        # The rows of a column lie next to each other, as sums over rows read them.
        np.ascontiguousarray(np.concatenate([part.table.T for part in parts])).T,
        np.concatenate(source),
        _distinct([name for part in parts for name in part.names]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate(groups),
        np.concatenate([part.bounds for part in parts]),
        scalar=all(part.scalar for part in parts),
    )


def _distinct(names: list[str]) -> tuple[str, ...]:
    distinct: dict[str, None] = {}
    for name in names:
        numbered_names = (f"{name} ({number})" for number in count(2))
        distinct[next(each for each in chain([name], numbered_names) if each not in distinct)] = None
    return tuple(distinct)


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
        rows = np.random.default_rng(0).choice(n, 1_000, replace=False, shuffle=False)
        sample = _columns([table[rows] for table in tables])
        if sample and np.diff(np.sort(_fingerprints(sample, rows.size))).all():
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
