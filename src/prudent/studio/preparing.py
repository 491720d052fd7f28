"""Compiled steps of the solver, which take half a minute to compile: once on a machine, beside the studio.

Another process compiles, at low priority, and leaves the result on disk; a compiler in this one would take turns at the
interpreter with those who answer. Questions that come before it is done are answered without.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from threading import Lock

__all__ = ["prepare_steps", "stop_compiling"]

_PROGRAM = "from prudent.solvers.compiled_step import prepare; prepare()"
_turn = Lock()
_compiler: subprocess.Popen[bytes] | None = None
_ending = False


def prepare_steps() -> None:
    """Have steps compiled if that was never done here, and load them; nothing where they cannot be kept."""
    global _compiler
    from prudent.solvers.compiled_step import is_kept, prepare

    kept = is_kept()
    if kept is False:
        with _turn:
            if _ending:
                return
            _compiler = subprocess.Popen(  # noqa: S603  # our own interpreter, and our own words
                [sys.executable, "-c", _PROGRAM], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        if hasattr(os, "setpriority"):
            with suppress(OSError):  # it may have ended already
                os.setpriority(os.PRIO_PROCESS, _compiler.pid, 10)
        kept = _compiler.wait() == 0
    if kept and not _ending:
        prepare()


def stop_compiling() -> None:
    """End the compiler, if it is at work: the next studio starts it again."""
    global _ending
    with _turn:
        _ending = True
        if _compiler is not None and _compiler.poll() is None:
            _compiler.kill()
