"""Extremes and sums of narrow tables are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.arrays.column_reductions import (
    largest_in_columns,
    largest_in_rows,
    smallest_in_columns,
    smallest_in_rows,
    sums_of_rows,
)


@pytest.mark.parametrize("shape", [(5, 3), (4_000, 1), (4_000, 3), (4_000, 20), (2_000, 2, 4)])
def test_least_and_largest_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(1).normal(size=shape)
    table.flat[7] = np.nan
    before = table.copy()
    np.testing.assert_array_equal(smallest_in_rows(table), table.min(axis=-1))
    np.testing.assert_array_equal(largest_in_rows(table), table.max(axis=-1))
    np.testing.assert_array_equal(table, before)


@pytest.mark.parametrize("shape", [(0, 3), (5, 3), (4_000, 1), (4_000, 3), (4_000, 8), (4_000, 20)])
def test_columns_and_sums_are_those_of_numpy(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(2).normal(size=shape)
    np.testing.assert_array_equal(smallest_in_columns(table, 0.1), table.min(axis=0, initial=0.1))
    np.testing.assert_array_equal(largest_in_columns(table, 0.1), table.max(axis=0, initial=0.1))
    np.testing.assert_allclose(sums_of_rows(table), table.sum(axis=1), rtol=1e-12, atol=1e-12)
    if len(table):
        table[3, 0] = np.nan
        assert np.isnan(smallest_in_columns(table)[0])
        assert np.isnan(largest_in_columns(table)[0])
        assert np.isnan(sums_of_rows(table)[3])
