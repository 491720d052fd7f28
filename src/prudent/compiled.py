"""Loops over rows, compiled where numba is installed (the extra ``fast``).

NumPy makes a pass through memory of every operation; a compiled loop makes
one of a whole formula. Loops are ordinary Python functions that say what one
row needs, and every caller has a NumPy version for machines without numba:
the two agree up to rounding, which the certificates allow for.

Numba takes most of a second to import and more to compile, so it is loaded
only for long arrays. What it compiled is kept on disk for the next process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from inspect import getsource
from pathlib import Path
from threading import Timer
from typing import Any

__all__ = [
    "ROWS_WORTH_COMPILING",
    "compiled",
    "compiled_along",
    "kept_on_disk",
    "rows_at_once",
    "switch",
    "worth_compiling",
]

#: "0" compiles nothing, "1" compiles however few the rows are; from the environment, where the process started.
switch = os.environ.get("PRUDENT_COMPILED", "")

#: From this many rows on a pass over them is worth a compiled loop.
ROWS_WORTH_COMPILING = 20_000
_ROWS_PER_CALL = 1 << 17
_SECONDS_UNTIL_TOLD = 2.0
# Sums of a block may be taken in any order, which vector registers need; NaN and infinity keep their meaning.
_FREEDOM = {"reassoc", "contract", "nsz"}


def compiled(
    loop: Callable[..., Any], n_rows: int = ROWS_WORTH_COMPILING, *, exact: bool = False
) -> Callable[..., Any] | None:
    """Return the compiled version of a loop over rows; None for few rows and where it cannot be had.

    An ``exact`` loop takes every operation in the order in which it is written, so that its results are those of
    NumPy to the last bit.
    """
    return _compile(loop, exact) if worth_compiling(n_rows) else None


def worth_compiling(n_rows: int) -> bool:
    """True for many rows, unless the switch says otherwise."""
    return switch == "1" or (switch != "0" and n_rows >= ROWS_WORTH_COMPILING)


def rows_at_once(loop: Callable[..., Any] | None) -> int | None:
    """Rows for one call of a loop: it keeps its temporaries in registers, so only threads ask for several calls."""
    return None if loop is None else _ROWS_PER_CALL


@cache
def compiled_along(loop: Callable[..., Any], called: tuple[Callable[..., Any], ...]) -> Callable[..., Any] | None:
    """Return the compiled version of a loop that calls other functions of this package; None where it cannot be had."""
    try:
        from numba.extending import register_jitable

        sources = "".join(map(getsource, called))
    except (ImportError, OSError):  # no numba, or a package without its sources
        return None
    for function in called:
        register_jitable(fastmath=_FREEDOM, error_model="numpy")(function)
    # What is kept on disk is known by its name and is as old as its file; the functions called come from others.
    loop.__qualname__ = f"{loop.__name__}_{sha256(sources.encode()).hexdigest()[:12]}"
    return _compile(loop)


def kept_on_disk(loop: Callable[..., Any]) -> bool | None:
    """True if somebody has compiled this loop before; None if there is no place to keep it."""
    if not isinstance(loop, _Announced):
        return None
    dispatcher: Any = loop._loop
    path = dispatcher.stats.cache_path
    return None if path is None else any(Path(path).glob(f"*.{dispatcher.py_func.__qualname__}-*.nbi"))


@cache
def _compile(loop: Callable[..., Any], exact: bool = False) -> Callable[..., Any] | None:
    try:
        import numba
    except ImportError:
        return None
    freedom = set() if exact else _FREEDOM
    # A division by zero gives what it gives in NumPy, and who looks at the result knows what to do with infinity.
    try:
        return _Announced(numba.njit(loop, cache=True, nogil=True, fastmath=freedom, error_model="numpy"))
    except RuntimeError:  # no directory to keep it in: compile anew in every process
        return _Announced(numba.njit(loop, nogil=True, fastmath=freedom, error_model="numpy"))


class _Announced:
    """A loop whose first call, which compiles it, says so on a terminal if it takes long."""

    def __init__(self, loop: Callable[..., Any]) -> None:
        self._loop, self._known = loop, False

    def __call__(self, *arguments: Any) -> Any:
        if self._known:
            return self._loop(*arguments)
        timer = Timer(_SECONDS_UNTIL_TOLD, _tell)
        timer.daemon = True
        timer.start()
        try:
            return self._loop(*arguments)
        finally:
            timer.cancel()
            self._known = True


def _tell() -> None:
    if sys.stderr.isatty():
        print("prudent: compiling loops, once per installation (PRUDENT_COMPILED=0 does without)", file=sys.stderr)
