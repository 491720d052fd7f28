"""Long arrays in parts that fit the processor's cache, on all cores.

A formula with ten temporaries costs ten trips to memory on a long array and
none on a short one. NumPy lets go of the interpreter inside its loops, so
threads share the parts.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, current_thread
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

_CHUNK_ROWS = 1 << 15
_LONG_CHUNK_ROWS = 1 << 17
_LARGEST_KEPT_BLOCK = 31 << 20
_THREAD_NAME = "prudent-rows"
_turn = Lock()


def over_rows(
    function: Callable[[slice], Result], n: int, rows: int | None = None, threads_from: int = 1 << 19
) -> list[Result]:
    """Apply a function to consecutive slices of ``n`` rows and return the results in order.

    Slices do not depend on the number of cores, so neither does any result.
    Threads pay from some number of rows on: the sooner, the more work a row is.
    """
    if 0 < n <= _CHUNK_ROWS and rows is None:
        return [function(slice(0, n))]
    keep_freed_memory()
    if rows is None:
        rows = _CHUNK_ROWS if n < threads_from else _LONG_CHUNK_ROWS
    slices = [slice(first, min(first + rows, n)) for first in range(0, n, rows)]
    inside = current_thread().name.startswith(_THREAD_NAME)  # a worker that waits for workers could wait forever
    if n < threads_from or inside or _available_cores() == 1:
        return [function(part) for part in slices]
    # Two layers of threads would fight for the same cores. The limit holds for the whole process, so two callers
    # take turns, or one would restore what the other had set.
    with _turn, one_blas_thread():
        return list(_pool().map(function, slices))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep matrix products on one thread, in a block or a function: rows are many and columns few, so others spin."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def keep_freed_memory() -> None:
    """Let temporaries of some hundred kilobytes reuse each other's memory.

    Allocate and free one 31 MB block, so that glibc raises its dynamic mmap threshold and reuses freed memory
    instead of returning it to the system and fetching every temporary anew, page by page.
    """
    np.empty(_LARGEST_KEPT_BLOCK, dtype=np.uint8)


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries with threads of their own, once: it takes longer than the work on a hundred thousand rows."""
    return ThreadpoolController()


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads of this process, kept for the next call."""
    return ThreadPoolExecutor(_available_cores(), thread_name_prefix=_THREAD_NAME)


def _start_afresh() -> None:
    """Drop, in a forked child, the pool without threads and the lock that a thread of the parent may hold."""
    global _turn
    _turn = Lock()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
