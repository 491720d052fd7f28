"""Long arrays in parts that fit the processor's cache, on all cores.

A formula with ten temporaries costs ten trips to memory on a long array and
none on a short one. NumPy lets go of the interpreter inside its loops, so
threads share the parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["over_rows"]

Result = TypeVar("Result")

_CHUNK_ROWS = 1 << 15
_THREADED_CHUNKS = 8


def over_rows(function: Callable[[slice], Result], n: int, rows: int = _CHUNK_ROWS) -> list[Result]:
    """Apply a function to consecutive slices of ``n`` rows and return the results in order.

    Slices do not depend on the number of cores, so neither does any result.
    """
    slices = [slice(first, min(first + rows, n)) for first in range(0, n, rows)]
    cores = _available_cores()
    if len(slices) < _THREADED_CHUNKS or cores == 1:
        return [function(part) for part in slices]
    with ThreadPoolExecutor(cores) as pool:
        return list(pool.map(function, slices))


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
