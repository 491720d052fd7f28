"""Progress of long commands, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prudent.progress import ProgressLine

if TYPE_CHECKING:
    from prudent.tables import Table

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
def table_progress(what: str, table: Table) -> Iterator[Callable[[], None]]:
    """Say how much of a table is read: rows, or bytes of text."""
    line = ProgressLine(what, wanted=table.size is not None)
    try:
        yield lambda: line.show(table.done, table.size or 0)
    finally:
        line.close()
