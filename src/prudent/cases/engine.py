"""Run queries where the data live: what is done is told to a terminal, and failures are one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import numpy as np

from prudent.arrays import AnyArray, FloatArray, Frame
from prudent.errors import EngineError, FileFormatError, InputError, MissingExtraError, stopped_by_signal
from prudent.progress import tell

_LONGEST = 400


def collect(frame: Frame, doing: str) -> dict[str, AnyArray]:
    """Run a lazy query and return its few rows by column."""
    tell(doing, at_once=True)
    with speaking(doing):
        result = _collected(frame)
        return {name: result[name].to_numpy() for name in result.columns}


def _collected(frame: Frame) -> Any:
    """Run a query in a thread of its own, so that this one can be interrupted: DuckDB 2 does not look at signals."""
    connection = getattr(frame.to_native(), "_con", None)
    if connection is None:
        return frame.collect()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(frame.collect)
        try:
            return running.result()
        finally:  # asked once more where the first request came before the query had begun
            while not running.done():
                connection.interrupt()
                wait([running], 5.0)


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
        text = " ".join(str(error).split()) or type(error).__name__
        # Java puts the reason last, behind calls that say nothing.
        words = re.split(r" at [\w.$/]+\(", text.rpartition("Caused by: ")[2])[0]
        words = words if len(words) <= _LONGEST else words[:_LONGEST] + " ..."
        cancelled = "interrupt" in type(error).__name__.lower() or "cancel" in text.lower()
        outcome = "was cancelled" if cancelled else "failed"
        raise EngineError(f"{doing} {outcome}; nothing was changed. The engine says: {words}") from error


def numbers(column: AnyArray) -> FloatArray:
    """Return sums as floats; an engine may give decimals or objects, and NULL for no rows."""
    return np.array([0.0 if value is None else float(value) for value in column.tolist()], dtype=np.float64)
