"""Time and peak memory of one call, inside the process that makes it."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

__all__ = ["PeakMemory", "best_of", "seconds_of", "side_by_side"]

_MOST_REPEATS = 20
_PATIENCE = 60.0


def seconds_of(call: Callable[[], Any]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best_of(make_call: Callable[[], Callable[[], Any]], first: float, budget: float) -> float:
    """Repeat a call that took ``first`` seconds until the budget is used up; return the least time.

    ``make_call`` prepares a fresh call before each repeat, outside the measured time.
    """
    best, used, repeats = first, first, 1
    while used + best <= budget and repeats < _MOST_REPEATS:
        seconds = seconds_of(make_call())
        best, used, repeats = min(best, seconds), used + seconds, repeats + 1
    return best


def side_by_side(call: Callable[[], Any], reference: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Alternate two calls, so that a busy machine slows both, and return the least time of each."""
    first = seconds_of(call) + seconds_of(reference)
    # The first pair warms up. Slow pairs are repeated less, so that there is an answer before the time limit.
    fitting = max(1, min(repeats, int(_PATIENCE / first)))
    pairs = [(seconds_of(call), seconds_of(reference)) for _ in range(fitting)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


class PeakMemory:
    """Peak resident memory above what the process held when the block began; ``extra_bytes`` afterwards.

    Linux can forget an earlier peak. Elsewhere only the peak since the start of the process is known, which is
    the same unless preparing took more than the measured call.
    """

    extra_bytes: int

    def __enter__(self) -> Self:
        gc.collect()
        if sys.platform == "linux":
            Path("/proc/self/clear_refs").write_text("5")
        self._before = _peak_bytes()
        return self

    def __exit__(self, *_: object) -> None:
        self.extra_bytes = _peak_bytes() - self._before


def _peak_bytes() -> int:
    if sys.platform == "linux":
        # Not getrusage: its peak belongs to the process, and a new program inherits that of its parent.
        status = Path("/proc/self/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
