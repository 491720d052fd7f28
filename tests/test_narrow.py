"""Extremes of narrow rows are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.narrow import largest_in_rows, smallest_in_rows


@pytest.mark.parametrize("shape", [(5, 3), (4_000, 1), (4_000, 3), (4_000, 20), (2_000, 2, 4)])
def test_least_and_largest_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(1).normal(size=shape)
    table.flat[7] = np.nan
    before = table.copy()
    np.testing.assert_array_equal(smallest_in_rows(table), table.min(axis=-1))
    np.testing.assert_array_equal(largest_in_rows(table), table.max(axis=-1))
    np.testing.assert_array_equal(table, before)
