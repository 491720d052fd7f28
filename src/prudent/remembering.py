"""What several games on the same rows share is computed once, and forgotten with the rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

__all__ = ["remembered", "remembered_for_arrays", "steady"]

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


def steady(*arrays: NDArray[Any]) -> None:
    """Promise that arrays will not change: results for them may be remembered as long as they live.

    Arrays of users may be filled with other numbers before they are used again, so nothing is remembered for those.
    """
    for array in arrays:
        _steady[id(array)] = ref(array, _forgetting(id(array)))


def _forgetting(number: int) -> Callable[[ref[NDArray[Any]]], None]:
    """What to do when the array of a number is gone: the number will be another one's."""

    def forget(_: ref[NDArray[Any]]) -> None:
        _steady.pop(number, None)

    return forget


_steady: dict[int, ref[NDArray[Any]]] = {}


def remembered_for_arrays(function: Callable[..., Result]) -> Callable[..., Result]:
    """Remember results for the very arrays (not equal ones) among the arguments, if all of them are steady.

    The other arguments are compared. Results must not refer to the arrays, or both would stay; arrays in them are
    steady in turn. Decisions that are edited on the same rows, and slack that is, meet the same arrays again and again.
    """
    results: dict[Hashable, tuple[list[ref[Any]], Result]] = {}

    def recalled(*arguments: Any) -> Result:
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        if not all(id(array) in _steady for array in arrays):
            return function(*arguments)
        key = tuple(id(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments)
        found = results.get(key)
        if found is None:
            made = function(*arguments)
            steady(*(one for one in (made if isinstance(made, tuple) else (made,)) if isinstance(one, np.ndarray)))
            # Numbers of dead arrays are given to new ones, so an entry goes with the first array that dies.
            refs = [ref(array, lambda _: results.pop(key, None)) for array in arrays]
            found = results[key] = refs, made
        return found[1]

    return recalled
