"""Results remembered by what they depend on; a bounded number, and each is computed once at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Memory"]

Result = TypeVar("Result")


class Memory(Generic[Result]):
    """Keeps the results used last.

    Parameters
    ----------
    capacity : int
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held: OrderedDict[str, Future[Result]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str, make: Callable[[], Result]) -> Result:
        """Return what is remembered, or make it; who asks for the same in the meantime waits for it."""
        with self._lock:
            future = self._held.get(key)
            mine = future is None
            if future is None:
                future = self._held[key] = Future()
                while len(self._held) > self._capacity:
                    self._held.popitem(last=False)
            self._held.move_to_end(key)
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    if self._held.get(key) is future:  # a mistake is not worth remembering
                        del self._held[key]
                future.set_exception(error)
                raise
        return future.result()
