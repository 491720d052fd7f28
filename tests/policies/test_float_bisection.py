"""Bisection over doubles: the first of them at which something holds, and their neighbours."""

from __future__ import annotations

import numpy as np

from prudent.policies.float_bisection import first_among, neighbours


def test_bisection_over_doubles_finds_the_first() -> None:
    for low, high, edge in ((-1.0, 1.0, 5e-324), (-3.0, -1.0, -2.0), (-1.0, 2.0, 0.0), (0.0, 1e300, 1e-200)):
        assert first_among(lambda v, at=edge: v >= at, low, high) == edge


def test_neighbours_are_the_next_doubles_in_order_and_without_repetition() -> None:
    found = neighbours(np.array([1.0, -0.0, 5e-324]), 2)
    around_zero = [-1e-323, -5e-324, 0.0, 5e-324, 1e-323, 1.5e-323]
    around_one = [1 - 2**-52, 1 - 2**-53, 1.0, 1 + 2**-52, 1 + 2**-51]
    np.testing.assert_array_equal(found, [*around_zero, *around_one])
