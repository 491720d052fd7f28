"""Results remembered by what they depend on; bounded in number and size, and each is computed once at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

__all__ = ["Memory", "array_bytes"]

Result = TypeVar("Result")


class Memory(Generic[Result]):
    """Keeps the results used last.

    Parameters
    ----------
    capacity : int
    most_bytes : int, optional
        Of all arrays in results; the one that was made last stays even if it has more.
    """

    def __init__(self, capacity: int, most_bytes: int | None = None) -> None:
        self._capacity, self._most_bytes = capacity, most_bytes
        self._held: OrderedDict[str, Future[Result]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = Lock()

    def get(self, key: str, make: Callable[[], Result]) -> Result:
        """Return what is remembered, or make it; who asks for the same in the meantime waits for it."""
        with self._lock:
            future = self._held.get(key)
            mine = future is None
            if future is None:
                future = self._held[key] = Future()
                while len(self._held) > self._capacity:
                    self._drop(next(iter(self._held)))
            self._held.move_to_end(key)
        if mine:
            try:
                made = make()
                self._weigh(key, future, made)
                future.set_result(made)
            except BaseException as error:
                with self._lock:
                    if self._held.get(key) is future:  # a mistake is not worth remembering
                        self._drop(key)
                future.set_exception(error)
                raise
        return future.result()

    def holds(self, key: str) -> bool:
        """True if there is a result, not only somebody who makes it."""
        with self._lock:
            future = self._held.get(key)
            return future is not None and future.done() and future.exception() is None

    def forget(self, part: str) -> None:
        """Drop everything whose key has this in it."""
        with self._lock:
            for key in [key for key in self._held if part in key]:
                self._drop(key)

    def _weigh(self, key: str, future: Future[Result], made: Result) -> None:
        """Make room for a new result; what is still being made weighs nothing and stays."""
        if self._most_bytes is None:
            return
        size = array_bytes(made)
        with self._lock:
            if self._held.get(key) is not future:
                return
            self._sizes[key] = size
            self._held.move_to_end(key)
            for oldest in [other for other in self._held if other in self._sizes and other != key]:
                if sum(self._sizes.values()) <= self._most_bytes:
                    break
                self._drop(oldest)

    def _drop(self, key: str) -> None:
        del self._held[key]
        self._sizes.pop(key, None)


def array_bytes(result: Any) -> int:
    """Add up the arrays that a result holds on to, each once, however deep they lie."""
    seen: set[int] = set()
    total, waiting = 0, [result]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float, type, ModuleType)):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if isinstance(one.base, np.ndarray):
                waiting.append(one.base)  # a view keeps the whole
            else:
                total += one.nbytes
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        else:
            waiting += getattr(one, "__dict__", {}).values()
    return total
