"""Run queries where the data live; what an engine says when it fails reaches the caller in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import EngineError, InputError, MissingExtraError, stopped_by_signal
from prudent.tables.passes import run_pass

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["collect", "engine_name", "numbers", "speaking"]

_LONGEST = 400


def collect(frame: nw.LazyFrame[Any], doing: str) -> dict[str, NDArray[Any]]:
    """Run a lazy query and return its few rows by column."""
    with speaking(doing):
        result = run_pass(frame.collect, doing)
        return {name: result[name].to_numpy() for name in result.columns}


def engine_name(frame: nw.LazyFrame[Any]) -> str:
    """Name of the engine behind a lazy table: duckdb, polars, pyspark."""
    return str(frame.implementation).rpartition(".")[2].lower()


@contextmanager
def speaking(doing: str) -> Iterator[None]:
    """Turn whatever an engine raises into one error that says what was being done."""
    try:
        yield
    except (InputError, MissingExtraError, MemoryError):
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


def numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Return sums as floats; an engine may give decimals or objects, and NULL for no rows."""
    return np.array([0.0 if value is None else float(value) for value in column.tolist()], dtype=np.float64)
