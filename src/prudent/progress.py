"""A progress line for long work, shown only on a terminal."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_SECONDS_BETWEEN = 0.2


class ProgressLine:
    """Write "what: 3 of 10" over itself on standard error.

    Nothing is written where standard error is not a terminal.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._on = sys.stderr.isatty()
        self._last = 0.0
        self._width = 0

    def say(self, state: str, *, last: bool = False) -> None:
        """Show words at most a few times a second; the last ones are always shown."""
        now = time.monotonic()
        if not self._on or (now - self._last < _SECONDS_BETWEEN and not last):
            return
        self._last = now
        text = f"{self.what}: {state}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        """End the line."""
        if self._on and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()


_steps: ContextVar[ProgressLine | None] = ContextVar("steps", default=None)


@contextmanager
def show_steps(what: str) -> Iterator[None]:
    """Show what solvers and queries inside the block tell."""
    line = ProgressLine(what)
    token = _steps.set(line)
    try:
        yield
    finally:
        _steps.reset(token)
        line.close()


def tell(state: str, *, at_once: bool = False) -> None:
    """Report a step to the progress line, if there is one; a step that may take long is shown at once."""
    line = _steps.get()
    if line is not None:
        line.say(state, last=at_once)
