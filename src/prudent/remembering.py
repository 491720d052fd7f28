"""What several games on the same rows share is computed once, and forgotten with the rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

__all__ = ["remembered", "remembered_for_arrays", "unchanging_arrays"]

Key = TypeVar("Key")
Result = TypeVar("Result")


def remembered(function: Callable[[Key], Result]) -> Callable[[Key], Result]:
    """Remember the result for every object that a function was called with, as long as the object lives.

    Results must not refer to their object, or both would stay. A stress test solves three games on one ambiguity set.
    """
    results: WeakKeyDictionary[Key, Result] = WeakKeyDictionary()

    def recalled(key: Key) -> Result:
        found = results.get(key)
        if found is None:
            found = results[key] = function(key)
        return found

    return recalled


_unchanging: ContextVar[bool] = ContextVar("unchanging", default=False)


@contextmanager
def unchanging_arrays() -> Iterator[None]:
    """Promise that no array that the block computes with changes while it lives.

    Whoever owns the arrays can promise that. A user may fill the same array again between two fits, so results are
    remembered for arrays only inside such a block.
    """
    token = _unchanging.set(True)
    try:
        yield
    finally:
        _unchanging.reset(token)


def remembered_for_arrays(function: Callable[..., Result]) -> Callable[..., Result]:
    """Remember results for the very arrays (not equal ones) among the arguments, as long as all of them live.

    The other arguments are compared. Results must not refer to the arrays, or both would stay. Decisions that are
    edited on the same rows, and slack that is, meet the same arrays again and again.
    """
    results: dict[Hashable, tuple[list[ref[Any]], Result]] = {}

    @wraps(function)
    def recalled(*arguments: Any) -> Result:
        if not _unchanging.get():
            return function(*arguments)
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        key = tuple(id(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments)
        found = results.get(key)
        if found is None:
            # Numbers of dead arrays are given to new ones, so an entry goes with the first array that dies.
            refs = [ref(array, lambda _: results.pop(key, None)) for array in arrays]
            found = results[key] = refs, function(*arguments)
        return found[1]

    return recalled
