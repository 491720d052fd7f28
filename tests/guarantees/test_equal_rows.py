"""Groups of equal rows, however they are found."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.guarantees.equal_rows import equal_rows


@pytest.mark.parametrize("n", [10, 6_000])
@pytest.mark.parametrize("kinds", [3, 200, 2_000])
def test_groups_hold_equal_rows_and_no_others(n: int, kinds: int) -> None:
    rng = np.random.default_rng(n + kinds)
    table = rng.random((kinds, 3))[rng.integers(0, kinds, n)]
    found = equal_rows(table[:, :2], table[:, 2:, None])
    distinct = len(np.unique(table, axis=0))
    if found is None:
        assert distinct > n // 2  # hardly any are equal
        return
    count, index = found
    assert (count, np.unique(index).tolist()) == (distinct, list(range(distinct)))
    first = np.full((count, 3), np.nan)
    first[index] = table
    np.testing.assert_array_equal(first[index], table)


def test_a_rare_kind_that_no_sample_shows_is_a_group_of_its_own() -> None:
    table = np.zeros((100_000, 1))
    table[77_777] = 1.0
    count, index = equal_rows(table)
    assert count == 2
    np.testing.assert_array_equal(np.flatnonzero(index == index[77_777]), [77_777])


def test_zeros_of_both_signs_are_equal() -> None:
    assert equal_rows(np.array([[0.0], [-0.0], [1.0]]))[0] == 2
