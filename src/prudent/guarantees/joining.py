"""Tests of several guarantees side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.column_tests import ColumnTests
from prudent.guarantees.evaluated import EvaluatedTests

__all__ = ["join"]


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
    tables, sources = zip(*(_columns(part) for part in parts), strict=True)
    firsts = np.cumsum([0] + [table.shape[1] for table in tables])
    source = [np.where(one >= 0, one + first, -1) for one, first in zip(sources, firsts, strict=False)]
    return ColumnTests(_side_by_side(list(tables)), np.concatenate(source), names, scales, groups, bounds)


def _columns(tests: EvaluatedTests) -> tuple[FloatArray, IntArray]:
    """Columns of a table that tests are made of, and which of them is which coordinate of a test."""
    if isinstance(tests, ColumnTests):
        return tests.columns, tests.source
    d = tests.dimension
    if not tests.scalar:
        return tests.values.reshape(tests.n_rows, tests.n_moments * d), np.arange(tests.n_moments * d).reshape(-1, d)
    k = tests.values.shape[1]
    source = np.full((k, d, d), -1, dtype=np.int64)
    source[:, np.arange(d), np.arange(d)] = np.arange(k)[:, None]
    return tests.values, source.reshape(k * d, d)


def _side_by_side(values: list[FloatArray]) -> FloatArray:
    """Tables of tests as one; scalar tests with the rows of a test next to each other, as sums over rows read them."""
    if values[0].ndim > 2:
        return np.concatenate(values, axis=1)
    columns = np.empty((sum(part.shape[1] for part in values), len(values[0])))
    return np.concatenate([part.T for part in values], out=columns).T


def _distinct(names: list[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(distinct)
