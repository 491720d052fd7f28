"""The cache keeps the values used last, within its bounds."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import prudent
from prudent.cases.bounded_cache import BoundedCache, array_bytes


def test_failures_and_what_was_used_least_are_not_kept() -> None:
    cache = BoundedCache(2, 1_000)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    asked = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5)]
    assert [cache.get(key, lambda value=value: value) for key, value in asked] == [1, 2, 1, 4, 5]


def test_bytes_are_bounded_and_the_newest_stays() -> None:
    cache = BoundedCache(10, 1_000)
    computed = []

    def get(key: str, n: int) -> None:
        cache.get(key, lambda: computed.append(key) or {"deep": [np.zeros(n)[1:]]})

    for key, n in [
        ("a", 50),
        ("b", 50),
        ("a", 50),
        ("c", 50),
        ("a", 50),
        ("b", 50),
        ("large", 1_000),
        ("large", 1_000),
    ]:
        get(key, n)
    assert computed == ["a", "b", "c", "b", "large"]
    get("a", 50)
    get("large", 1)
    assert computed[5:] == ["a", "large"]


def test_entries_that_match_are_discarded() -> None:
    cache = BoundedCache(10, 1_000)
    for key in ((1, "a"), (1, "b"), (2, "a")):
        cache.get(key, lambda: "first")
    cache.discard(lambda key: key[0] == 1)
    assert [cache.get(key, lambda: "again") for key in ((1, "a"), (1, "b"), (2, "a"))] == ["again", "again", "first"]


def test_arrays_are_counted_once_and_views_as_a_whole() -> None:
    class Holder:
        def __init__(self, **parts: Any) -> None:
            self.__dict__.update(parts)

    table = np.zeros((10, 2))
    assert array_bytes(Holder(one=table, other=[table[:1], {"again": table}], text="a")) == 160
    assert array_bytes("text") == 0


def test_what_owns_a_cache_is_not_counted_in_it() -> None:
    """Results refer to their rows; counted with each of them, rows would throw results out."""
    v = np.linspace(0, 1, 1_000)
    cases = prudent.Cases(v, v)
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    advice = prudent.advise(problem, cases)
    assert array_bytes(advice) > array_bytes(advice, owned=True)
    assert array_bytes(advice, owned=True) < 4 * v.nbytes
    rows = cases.on(problem.space)
    known = set(rows.cache._entries)
    prudent.advise(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4]), cases)
    assert {key for key in known if key[0] in ("folds", "cross-fitted")} <= set(rows.cache._entries)


def test_a_stored_value_is_replaced_at_once() -> None:
    cache = BoundedCache(2, 1_000)
    cache.put("a", 1)
    cache.put("a", 2)
    assert cache.get("a", lambda: 3) == 2


def test_copies_and_pickles_are_empty_and_keep_the_bounds() -> None:
    cache = BoundedCache(2, 1_000)
    cache.get("a", lambda: 1)
    for again in (pickle.loads(pickle.dumps(cache)), deepcopy(cache)):
        assert [again.get(key, lambda key=key: key.upper()) for key in "abca"] == ["A", "B", "C", "A"]
    assert cache.get("a", lambda: 2) == 1
