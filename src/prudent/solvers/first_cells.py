"""Where the refinement of cells begins: rows that are close to each other.

Tests are functions of the forecast, so rows with close forecasts have close tests, whatever the tests are. The
partition depends on the forecasts alone, and many games on the same rows begin with the same one.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.remembering import remembered_for_arrays
from prudent.solvers.cells import Cells
from prudent.solvers.game import Game
from prudent.solvers.moment_system import MomentSystem

__all__ = ["bisected", "first_cells", "neighbouring"]

_BUCKETS = 1 << 16
_FEWEST_CELLS = 64
_MOST_CELLS = 512
_ROWS_PER_CELL = 200
_NEIGHBOURS_PER_MOMENT = 128
_FEWEST_NEIGHBOURS = 256
_MOST_NEIGHBOURS = 1_024


def first_cells(game: Game, system: MomentSystem, forecasts: FloatArray) -> Cells:
    """Gather rows that are close."""
    if game.dimension == 1:
        wanted = int(np.clip(_NEIGHBOURS_PER_MOMENT * system.size, _FEWEST_NEIGHBOURS, _MOST_NEIGHBOURS))
    else:
        # Fewer cells than exact moments ask for would allow no world at all.
        wanted = int(np.clip(len(forecasts) // _ROWS_PER_CELL, _FEWEST_CELLS, _MOST_CELLS))
        wanted = max(wanted, 4 * system.size // game.dimension)
    return Cells(game, system, forecasts, *_close_forecasts(forecasts, wanted))


@remembered_for_arrays
def _close_forecasts(forecasts: FloatArray, wanted: int) -> tuple[IntArray, int]:
    """Cell of each row, and how many there are."""
    return neighbouring(forecasts[:, 0], wanted) if forecasts.shape[1] == 1 else bisected(forecasts.T, wanted)


def bisected(values: FloatArray, count: int) -> tuple[IntArray, int]:
    """Halve the rows of ``values (k, n)`` again and again along their widest direction."""
    n = values.shape[1]
    values = _different(values)
    if len(values) == 0:
        return np.zeros(n, dtype=np.int64), 1
    parts = [np.arange(n)]
    while len(parts) < count and len(parts) < n:
        halves = []
        for part in parts:
            if part.size < 2:
                halves.append(part)
                continue
            inside = values[:, part]
            widest = int((inside.max(axis=1) - inside.min(axis=1)).argmax())
            order = np.argpartition(inside[widest], part.size // 2)
            halves += [part[order[: part.size // 2]], part[order[part.size // 2 :]]]
        parts = halves
    index = np.empty(n, dtype=np.int64)
    for number, part in enumerate(parts):
        index[part] = number
    return index, len(parts)


def _different(values: FloatArray) -> FloatArray:
    """Leave out directions in which rows do not differ, or differ as in one before: they are never the widest first.

    Scalar tests that stand beside vector tests are written out by coordinate, so most of their directions are such.
    """
    low, high = values.min(axis=1), values.max(axis=1)
    kept: list[int] = []
    for j in np.flatnonzero(high > low).tolist():
        alike = [i for i in kept if low[i] == low[j] and high[i] == high[j]]
        if not any(np.array_equal(values[i], values[j]) for i in alike):
            kept.append(j)
    return values if len(kept) == len(values) else values[kept]


def neighbouring(position: FloatArray, count: int) -> tuple[IntArray, int]:
    """Cut rows along one coordinate into parts of about equal numbers, by counting into fine buckets."""
    low = float(position.min())
    scale = _BUCKETS / max(float(position.max()) - low, 1e-300)
    bucket = ((position - low) * scale).astype(np.int64)
    np.minimum(bucket, _BUCKETS - 1, out=bucket)
    filled = np.cumsum(np.bincount(bucket, minlength=_BUCKETS))
    part = (filled - 1) * count // position.size
    numbers = np.cumsum(np.concatenate([[0], np.diff(part) > 0]))  # no cell without rows
    return numbers[bucket], int(numbers[-1]) + 1
