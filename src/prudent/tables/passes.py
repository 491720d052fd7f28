"""Passes over a table take time: a line says how far the engine is, and an interruption ends its query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from prudent.progress import ProgressLine

__all__ = ["run_pass", "show_passes"]

_SECONDS_BETWEEN = 0.1

Result = TypeVar("Result")


@dataclass
class _Watch:
    line: ProgressLine
    connection: Any
    passes: int = 0

    def show(self, doing: str) -> None:
        percent = self.connection.query_progress()
        known = f", {percent:.0f}%" if percent >= 0 else ""
        self.line.say(f"pass {self.passes}, {doing}{known}")


_watch: ContextVar[_Watch | None] = ContextVar("watch", default=None)


@contextmanager
def show_passes(what: str, connection: Any) -> Iterator[None]:
    """Show on a terminal what the passes inside the block do; an interruption ends a query that runs.

    Parameters
    ----------
    what : str
        Starts the line.
    connection : DuckDB connection or None
        On which the queries run, ``Columns.connection``; None for rows in memory, where there are no passes.
    """
    if connection is None:
        yield
        return
    connection.execute("SET enable_progress_bar = true")  # else it does not count
    connection.execute("SET enable_progress_bar_print = false")
    line = ProgressLine(what, wanted=True)
    token = _watch.set(_Watch(line, connection))
    try:
        yield
    finally:
        _watch.reset(token)
        line.close()


def run_pass(query: Callable[[], Result], doing: str) -> Result:
    """Run a query and return its result, shown where passes are shown.

    The query then runs in a thread of its own, and this one stays free to show its progress and to be interrupted.
    """
    watch = _watch.get()
    if watch is None:
        return query()
    watch.passes += 1
    with ThreadPoolExecutor(1) as worker:
        running = worker.submit(query)
        try:
            while not running.done():
                watch.show(doing)
                wait([running], _SECONDS_BETWEEN)
        except BaseException:
            while not running.done():  # once might be before the query has begun
                watch.connection.interrupt()
                wait([running], _SECONDS_BETWEEN)
            raise
        return running.result()
