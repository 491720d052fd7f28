"""Parts of long arrays: in order, on all cores, with the same result on any number of them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from prudent.arrays import chunks


@pytest.mark.parametrize("n", [1, 5, 1 << 15, (1 << 15) + 1, 600_000])
def test_parts_cover_all_rows_once_and_in_order(n: int) -> None:
    parts = chunks.over_rows(lambda part: (part.start, part.stop), n)
    assert parts[0][0] == 0
    assert parts[-1][1] == n
    assert all(one[1] == other[0] for one, other in pairwise(parts))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind threads to cores")
def test_the_result_does_not_depend_on_the_number_of_cores() -> None:
    numbers = np.random.default_rng(0).normal(size=700_000)

    def sums() -> list[float]:
        return chunks.over_rows(lambda part: float(numbers[part].sum()), numbers.size)

    several = sums()
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert sums() == several
    finally:
        os.sched_setaffinity(0, cores)


def test_an_error_in_one_part_reaches_the_caller() -> None:
    def fail(part: slice) -> None:
        if part.start > 0:
            raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        chunks.over_rows(fail, 700_000)


def test_no_rows_give_no_parts() -> None:
    assert chunks.over_rows(lambda part: part, 0) == []


def test_parts_may_look_at_parts_themselves() -> None:
    """A worker that asks for more parts does the work itself instead of waiting for workers."""
    n = 600_000

    def nested(part: slice) -> int:
        return sum(chunks.over_rows(lambda inner: inner.stop - inner.start, n))

    assert set(chunks.over_rows(nested, n, rows=200_000)) == {n}


def test_several_threads_may_call_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(chunks.over_rows, lambda part: part.stop - part.start, 600_000) for _ in range(8)]
        assert [sum(call.result()) for call in calls] == [600_000] * 8
