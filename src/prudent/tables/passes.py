"""Passes over a table take time: a line says how far the engine is, and an interruption ends its query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

from prudent.progress import ProgressLine

__all__ = ["run_pass", "show_passes"]

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_BETWEEN_REQUESTS = 5.0
_MOST_REQUESTS = 3

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

    def end(self, running: Future[Any]) -> None:
        """Ask the engine to end a query.

        DuckDB can lock up when it is asked again while it obeys, so there are seconds in between; a second request is
        needed only where the first came before the query had begun.
        """
        for _ in range(_MOST_REQUESTS):
            if not running.done():
                self.connection.interrupt()
                wait([running], _SECONDS_BETWEEN_REQUESTS)


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
    running: Future[Result] = Future()

    def work() -> None:
        try:
            running.set_result(query())
        except BaseException as error:  # noqa: BLE001  # whoever waits raises it
            running.set_exception(error)

    try:
        # As a daemon, so that a query that does not end cannot keep the process.
        Thread(target=work, daemon=True).start()
        while not running.done():
            watch.show(doing)
            wait([running], _SECONDS_BETWEEN_LOOKS)
    except BaseException:
        watch.end(running)
        raise
    return running.result()
