"""A least-recently-used (LRU) cache, bounded in entries and in bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

Value = TypeVar("Value")


class BoundedCache:
    """Keep the values used last, by hashable keys.

    Thread-safe, but not single-flight: concurrent callers may compute the same value twice. Copies are empty.

    Parameters
    ----------
    max_entries : int
    max_bytes : int
        Of all arrays and bytes in values, counted when they are stored. The newest value stays even if it
        is larger alone.
    owned : bool
        True for a cache that belongs to what it is about: values that refer to an owner of a cache (``owns_cache``)
        then do not count its arrays.

    Examples
    --------
    >>> from prudent.cases.bounded_cache import BoundedCache
    >>> cache = BoundedCache(max_entries=2, max_bytes=1_000)
    >>> [cache.get(key, lambda: key.upper()) for key in ("a", "b", "c")]
    ['A', 'B', 'C']
    >>> cache.get("c", lambda: "computed again"), cache.get("a", lambda: "computed again")
    ('C', 'computed again')
    """

    def __init__(self, max_entries: int, max_bytes: int, *, owned: bool = False) -> None:
        self._max_entries, self._max_bytes, self._owned = max_entries, max_bytes, owned
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value of a key; compute and store it if there is none."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                value: Value = self._entries[key][0]
                return value
        value = compute()
        self.put(key, value)
        return value

    def put(self, key: Hashable, value: Any) -> None:
        """Store a value, in place of the one that was there."""
        size = array_bytes(value, owned=self._owned)
        with self._lock:
            self._remove(key)
            self._entries[key] = value, size
            self._bytes += size
            while len(self._entries) > self._max_entries or (len(self._entries) > 1 and self._bytes > self._max_bytes):
                self._remove(next(iter(self._entries)))

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._entries

    def discard(self, matches: Callable[[Any], bool]) -> None:
        """Remove the entries whose keys match."""
        with self._lock:
            for key in [key for key in self._entries if matches(key)]:
                self._remove(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), owned=self._owned), (self._max_entries, self._max_bytes)

    def _remove(self, key: Hashable) -> None:
        self._bytes -= self._entries.pop(key, (None, 0))[1]


def array_bytes(value: Any, *, owned: bool = False) -> int:
    """Add up arrays and bytes that can be reached from a value, each once; a view counts as what it keeps alive.

    With ``owned``, what says that it ``owns_cache`` is there anyway, and does not count.
    """
    seen: set[int] = set()
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        known = id(one) in seen or (owned and getattr(one, "owns_cache", False))
        if known or isinstance(one, (str, int, float, type, ModuleType)):
            continue
        seen.add(id(one))
        if isinstance(one, bytes):
            total += len(one)
        elif isinstance(one, np.ndarray):
            if isinstance(one.base, np.ndarray):
                waiting.append(one.base)
            else:
                total += one.nbytes
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        else:
            waiting += getattr(one, "__dict__", {}).values()
    return total
