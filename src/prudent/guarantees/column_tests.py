"""Vector tests made of few columns: scalar tests beside vector tests, or tests of single coordinates.

Written out, ``k`` scalar tests beside a vector test take ``(k d + 1) d`` numbers per row, most of them zero or
repeated; as columns they take ``k + d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.equal_rows import equal_rows, numbered
from prudent.guarantees.evaluated import EvaluatedTests, mean_sizes
from prudent.guarantees.tilt_loop import tilted

__all__ = ["ColumnTests"]


class ColumnTests(EvaluatedTests):
    """Vector tests whose coordinates are columns of a table, or zero.

    Attributes
    ----------
    columns : array of shape (n, c)
        The rows of a column lie next to each other in memory.
    source : array of shape (K, d)
        The column that is a coordinate of a test; -1 where it is zero. No column is the same coordinate of two tests.
    """

    columns: FloatArray
    source: IntArray

    def __init__(
        self,
        columns: FloatArray,
        source: IntArray,
        names: Sequence[str],
        scales: FloatArray,
        groups: IntArray,
        bounds: FloatArray,
        *,
        disjoint: bool = False,
        labels: IntArray | None = None,
    ) -> None:
        # Some rows of a table are rows of its columns, without a copy.
        plain = columns if columns.strides[0] == columns.itemsize else np.asfortranarray(columns)
        given = {"columns": plain, "source": source, "names": tuple(names), "scales": scales}
        given |= {"groups": groups, "dimension": source.shape[1], "bounds": bounds}
        for name, value in {**given, "disjoint": disjoint, "labels": labels}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_coordinates(
        cls,
        columns: FloatArray,
        coordinates: IntArray,
        d: int,
        names: Sequence[str],
        *,
        disjoint: bool = False,
        labels: IntArray | None = None,
    ) -> ColumnTests:
        """Wrap indicators ``(n, K)``, each a test of one coordinate."""
        own, order = np.eye(d)[coordinates], np.arange(len(coordinates))
        source = np.where(own > 0, order[:, None], -1)
        return cls(columns, source, names, np.ones(order.size), order, own, disjoint=disjoint, labels=labels)

    @property  # computed, where others hold it
    def values(self) -> FloatArray:
        """All tests written out, ``(n, K, d)``."""
        values = np.zeros((self.n_rows, *self.source.shape))
        for k, j in np.argwhere(self.source >= 0):
            values[:, k, j] = self.columns[:, self.source[k, j]]
        return values

    @property
    def scalar(self) -> bool:
        """False: each test is one moment."""
        return False

    @property
    def n_rows(self) -> int:
        """Number of forecasts."""
        return int(self.columns.shape[0])

    @property
    def table(self) -> FloatArray:
        """The columns."""
        return self.columns

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Arrays over rows that sums and solvers are given."""
        return [self.columns, self.rows_last, *([] if self.cells is None else [self.cells[1]])]

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return self.columns.nbytes

    @property
    def sizes(self) -> FloatArray:
        """Largest absolute number of every column, ``(c,)``."""
        return np.array(
            [max(float(column.max(initial=0.0)), -float(column.min(initial=0.0))) for column in self.columns.T]
        )

    def moment_sizes(self, width: FloatArray) -> FloatArray:
        """How large residuals of at most this width ``(d,)`` can make each moment, ``(K,)``."""
        return np.append(self.sizes, 0.0)[self.source] @ width

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which moments have a test that is not zero everywhere, ``(K,)``."""
        return np.asarray((np.append(self.sizes, 0.0)[self.source] > 0).any(axis=1))

    @cached_property
    def cells(self) -> tuple[int, IntArray] | None:
        """Groups of rows with equal tests: how many, and that of each row; None if there is nothing to gain."""
        return equal_rows(self.columns) if self.labels is None else numbered(self.labels)

    @cached_property
    def rows_last(self) -> FloatArray:
        """The table turned around, ``(c, n)``."""
        return self.columns.T

    @cached_property
    def combination(self) -> FloatArray:
        """How moments are made of moments of the columns, flat ``(c d, K)``."""
        matrix = np.zeros((self.columns.shape[1] * self.dimension, self.n_moments))
        for k, j in np.argwhere(self.source >= 0):
            matrix[self.source[k, j] * self.dimension + j, k] = 1.0
        return matrix

    def tilts(self, multipliers: FloatArray) -> FloatArray:
        """Compute the tilt of each row, shape ``(n, d)``; column by column, see :meth:`EvaluatedTests.tilts`."""
        table = self.factors(multipliers)
        found = tilted(self.columns, table)
        if found is not None:
            return found
        tilts = np.zeros((self.dimension, self.n_rows))
        for column, row in zip(self.columns.T, table, strict=True):
            for j in np.flatnonzero(row):
                tilts[j] += column * row[j]
        return np.ascontiguousarray(tilts.T)

    def reach(self, multipliers: FloatArray, weights: FloatArray, width: FloatArray) -> float:
        """Compute what tilts are made of before anything cancels, see :meth:`EvaluatedTests.reach`."""
        totals = np.append(mean_sizes(self.columns, weights), 0.0)[self.source]
        return float(np.abs(multipliers).reshape(-1) @ totals @ width)

    def factors(self, multipliers: FloatArray) -> FloatArray:
        """What columns are multiplied by to make a tilt, ``(c, d)``."""
        flat: FloatArray = self.combination @ multipliers.reshape(-1)
        return flat.reshape(-1, self.dimension)

    def combined(self, sums: FloatArray) -> FloatArray:
        """Moments from sums ``(c, d)`` of columns times weighted residuals."""
        return sums.reshape(-1) @ self.combination

    def moments(self, residuals: FloatArray, weights: FloatArray) -> FloatArray:
        """Compute ``sum_i w_i B_j(v_i) . residual_i`` for every moment, shape ``(K,)``."""
        return self.combined(self.columns.T @ (weights[:, None] * residuals))

    def row_moments(self, residuals: FloatArray) -> FloatArray:
        """Compute ``B_j(v_i) . residual_i`` for every row and moment, shape ``(n, K)``."""
        result = np.zeros((self.n_rows, self.n_moments))
        for k, j in np.argwhere(self.source >= 0):
            result[:, k] += self.columns[:, self.source[k, j]] * residuals[:, j]
        return result

    def take(self, index: IntArray | slice) -> EvaluatedTests:
        """Keep the given rows."""
        labels = None if self.labels is None else self.labels[index]
        return self._with(self.columns[index], labels)

    def without_rows(self) -> EvaluatedTests:
        """Keep names, scales, groups and bounds, without rows."""
        return self._with(self.columns[:0].copy(), None)

    def as_vector(self) -> EvaluatedTests:
        """Write the tests out."""
        given = self.names, self.scales, self.groups, self.dimension, self.bounds, self.disjoint, self.labels
        return EvaluatedTests(self.values, *given)

    def _with(self, columns: FloatArray, labels: IntArray | None) -> ColumnTests:
        given = self.source, self.names, self.scales, self.groups, self.bounds
        return ColumnTests(columns, *given, disjoint=self.disjoint, labels=labels)
