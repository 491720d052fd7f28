"""Results are remembered for arrays themselves, and forgotten with them."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from prudent.remembering import remembered_for_arrays


def test_the_same_arrays_and_arguments_are_computed_once() -> None:
    calls = []

    @remembered_for_arrays
    def scaled(values: np.ndarray, factor: float) -> np.ndarray:
        calls.append(factor)
        return values * factor

    values = np.arange(3.0)
    assert scaled(values, 2.0) is scaled(values, 2.0)
    assert calls == [2.0]
    np.testing.assert_array_equal(scaled(values, 3.0), [0.0, 3.0, 6.0])
    assert calls == [2.0, 3.0]
    assert scaled(values.copy(), 2.0) is not scaled(values, 2.0)  # equal arrays are others


def test_results_go_with_the_first_array_that_goes() -> None:
    @remembered_for_arrays
    def total(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.array([one.sum() + other.sum()])

    stays = np.ones(4)
    found = []
    for _ in range(50):  # numbers of dead arrays are given to new ones
        goes = np.random.default_rng(len(found)).random(4)
        found.append(weakref.ref(total(stays, goes)))
        assert float(total(stays, goes)[0]) == 4.0 + goes.sum()
    del goes
    gc.collect()
    assert all(result() is None for result in found)
