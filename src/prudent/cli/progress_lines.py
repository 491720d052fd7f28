"""Progress of long commands, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prudent.progress import ProgressLine

__all__ = ["rung_progress", "table_progress"]

_DEFAULT_RUNGS = 6


@contextmanager
def rung_progress(what: str, rungs: int = _DEFAULT_RUNGS) -> Iterator[Callable[[str], None]]:
    """Say which rung of the ladder is worked on."""
    line, seen = ProgressLine(what, wanted=True), 0

    def show(name: str) -> None:
        nonlocal seen
        seen += 1
        line.show(seen, rungs, name)

    try:
        yield show
    finally:
        line.close()


@contextmanager
def table_progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Say how much of a table is read, rows or bytes of text, where it is known how much there is."""
    line = ProgressLine(what, wanted=True)

    def show(done: int, size: int | None) -> None:
        if size is not None:
            line.show(done, size)

    try:
        yield show
    finally:
        line.close()
