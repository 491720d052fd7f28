"""Vector tests made of few columns: several guarantees side by side, or tests of single coordinates.

Written out, ``k`` scalar tests beside a vector test take ``(k d + 1) d`` numbers per row, most of them zero or
repeated; as columns they take ``k + d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.evaluated import EvaluatedTests


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

    def as_vector(self) -> EvaluatedTests:
        """Write the tests out."""
        given = self.names, self.scales, self.groups, self.dimension, self.bounds, self.disjoint, self.labels
        return EvaluatedTests(self.values, *given)

    def with_rows(self, table: FloatArray, labels: IntArray | None = None) -> ColumnTests:
        """Put other rows under the same names, scales, groups and bounds."""
        given = self.source, self.names, self.scales, self.groups, self.bounds
        return ColumnTests(table, *given, disjoint=self.disjoint, labels=labels)


def join(parts: Sequence[EvaluatedTests]) -> EvaluatedTests:
    """Put the tests of several guarantees side by side; repeated names get a number."""
    if len(parts) == 1:
        return parts[0]
    names = _distinct([name for part in parts for name in part.names])
    offsets = np.cumsum([0] + [part.n_tests for part in parts])
    scales = np.concatenate([part.scales for part in parts])
    groups = np.concatenate([part.groups + offset for part, offset in zip(parts, offsets, strict=False)])
    bounds = np.concatenate([part.bounds for part in parts])
    d = parts[0].dimension
    scalar = all(part.scalar for part in parts)
    if scalar or d == 1 or not any(part.scalar or isinstance(part, ColumnTests) for part in parts):
        same = parts if scalar else [part.as_vector() for part in parts]
        return EvaluatedTests(_side_by_side([part.values for part in same]), names, scales, groups, d, bounds)
    tables = [part.table for part in parts]
    firsts = np.cumsum([0] + [table.shape[1] for table in tables])
    source = [np.where(part.source >= 0, part.source + first, -1) for part, first in zip(parts, firsts, strict=False)]
    return ColumnTests(_side_by_side(tables), np.concatenate(source), names, scales, groups, bounds)


def _side_by_side(values: list[FloatArray]) -> FloatArray:
    """Tables of tests as one; scalar tests with the rows of a test next to each other, as sums over rows read them."""
    if values[0].ndim > 2:
        return np.concatenate(values, axis=1)
    columns = np.empty((sum(part.shape[1] for part in values), len(values[0])))
    return np.concatenate([part.T for part in values], out=columns).T


def _distinct(names: list[str]) -> tuple[str, ...]:
    distinct: dict[str, None] = {}
    for name in names:
        numbered_names = (f"{name} ({number})" for number in count(2))
        distinct[next(each for each in chain([name], numbered_names) if each not in distinct)] = None
    return tuple(distinct)
