"""What several games on the same rows share is computed once, and forgotten with the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

__all__ = ["remembered"]

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
