"""Run queries where the data live: progress on a terminal, an end when interrupted, failures in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from threading import Thread
from typing import Any

import numpy as np

from prudent.arrays import AnyArray, FloatArray
from prudent.arrays.lazy_narwhals import Frame
from prudent.errors import EngineError, FileFormatError, InputError, MissingExtraError, stopped_by_signal
from prudent.progress import ProgressLine

_LONGEST = 400

#: Runs a query, and shows what it does; None where nothing is shown.
_runner: ContextVar[Callable[[Callable[[], Any], str], Any] | None] = ContextVar("runner", default=None)


def collect(frame: Frame, doing: str) -> dict[str, AnyArray]:
    """Run a lazy query and return its few rows by column."""
    with speaking(doing):
        run = _runner.get()
        result: Any = frame.collect() if run is None else run(frame.collect, doing)
        return {name: result[name].to_numpy() for name in result.columns}


def engine_name(frame: Frame) -> str:
    """Name of the engine behind a lazy table: duckdb, polars, pyspark."""
    return str(frame.implementation).rpartition(".")[2].lower()


@contextmanager
def speaking(doing: str) -> Iterator[None]:
    """Turn whatever an engine raises into one error that says what was being done."""
    try:
        yield
    except (InputError, FileFormatError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        if stopped_by_signal(error):
            raise KeyboardInterrupt from error
        text = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
        # Java puts the reason last, behind calls that say nothing.
        words = re.split(r" at [\w.$/]+\(", text.rpartition("Caused by: ")[2])[0]
        words = words if len(words) <= _LONGEST else words[:_LONGEST] + " ..."
        cancelled = "interrupt" in type(error).__name__.lower() or "cancel" in text.lower()
        outcome = "was cancelled" if cancelled else "failed"
        raise EngineError(f"{doing} {outcome}; nothing was changed. The engine says: {words}") from error


def numbers(column: AnyArray) -> FloatArray:
    """Return sums as floats; an engine may give decimals or objects, and NULL for no rows."""
    return np.array([0.0 if value is None else float(value) for value in column.tolist()], dtype=np.float64)


@contextmanager
def show_passes(what: str, connection: Any) -> Iterator[None]:
    """Show on a terminal what the passes inside the block do; an interruption ends a query that runs.

    Parameters
    ----------
    what : str
        Starts the line.
    connection : DuckDB connection or None
        On which the queries run, ``TableCases.connection``; None for rows in memory, where there are no passes.
    """
    if connection is None:
        yield
        return
    # Without a bar DuckDB does not count.
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    line, passes = ProgressLine(what, wanted=True), count(1)

    def run(query: Callable[[], Any], doing: str) -> Any:
        """Run a query in a thread of its own: this one stays free to show its progress and to be interrupted."""
        number, running = next(passes), Future[Any]()

        def work() -> None:
            try:
                running.set_result(query())
            except BaseException as error:  # noqa: BLE001  # raised again where the result is read
                running.set_exception(error)

        try:
            # As a daemon, so that a query that does not end cannot keep the process.
            Thread(target=work, daemon=True).start()
            while not running.done():
                percent = connection.query_progress()
                line.say(f"pass {number}, {doing}{f', {percent:.0f}%' if percent >= 0 else ''}")
                wait([running], 0.1)
        except BaseException:
            # DuckDB can lock up when it is asked again while it obeys, so there are seconds in between; a second
            # request is needed only where the first came before the query had begun.
            for _ in range(3):
                if not running.done():
                    connection.interrupt()
                    wait([running], 5.0)
            raise
        return running.result()

    token = _runner.set(run)
    try:
        yield
    finally:
        _runner.reset(token)
        line.close()
