"""Rows gathered into cells with total weight and mean tests.

A world that is constant on cells has the same moments on all rows as on the
cells, so its value is an upper bound for all rows. The dual of the cells is
never below the dual of the rows (``phi`` is concave), and equal to it where
all rows of a cell share a linear piece of ``phi`` (docs/theory.md, section 6).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.compiled import compiled
from prudent.solvers.game import Game
from prudent.solvers.moment_system import MomentSystem

__all__ = ["Cells", "bisected", "neighbouring", "sum_cells"]

_BUCKETS = 1 << 16
_WORK_FOR_THREADS = 1 << 18


class Cells:
    """A partition of the rows of a game and its moment system.

    Attributes
    ----------
    index : array of shape (n,)
        The cell of each row.
    weights : array of shape (count,)
    """

    def __init__(self, game: Game, system: MomentSystem, forecasts: FloatArray, index: IntArray, count: int) -> None:
        self._game, self._system = game, system
        self._moment = system.moments(forecasts.T)
        self.index = index
        self.weights = np.zeros(0)
        self._columns = [*system.values.reshape(-1, len(forecasts)), *forecasts.T]
        if not game.shared:
            self._columns += [*game.rewards[:, 0].T, game.offsets[:, 0]]
        self._means = np.zeros((len(self._columns), 0))
        self._gather(slice(None), index, count)

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.weights.size)

    def split(self, rows: IntArray, labels: IntArray) -> None:
        """Part cells by the labels of their rows, all of which are given."""
        former = self.index[rows]
        span = int(labels.max()) + 1
        keys, position = np.unique(former * span + labels, return_inverse=True)
        parents = keys // span
        # One part keeps the number of its cell, the others get new ones.
        fresh = np.concatenate([[False], parents[1:] == parents[:-1]])
        numbers = parents.copy()
        numbers[fresh] = self.count + np.arange(int(fresh.sum()))
        self.index = self.index.copy()
        self.index[rows] = numbers[position]
        self._gather(rows, self.index[rows], self.count + int(fresh.sum()))

    def _gather(self, rows: IntArray | slice, index: IntArray, count: int) -> None:
        """Sum up the cells that contain the given rows; all rows of such a cell are given."""
        weights = self._system.weights[rows]
        totals = np.bincount(index, weights=weights, minlength=count)
        touched = np.flatnonzero(totals)
        grown = count - self.count
        self.weights = np.concatenate([self.weights, np.zeros(grown)])
        self.weights[touched] = totals[touched]
        self._means = np.concatenate([self._means, np.zeros((len(self._means), grown))], axis=1)
        loop = compiled(sum_cells, index.size * len(self._columns), exact=True)
        weights = np.ascontiguousarray(weights)

        def average(part: slice) -> None:
            column = self._columns[part.start][rows]
            sums: FloatArray = np.zeros(count)
            if loop is not None:
                loop(index, weights, np.ascontiguousarray(column), sums)
            else:
                sums = np.bincount(index, weights=weights * column, minlength=count).astype(np.float64, copy=False)
            self._means[part.start, touched] = sums[touched] / totals[touched]

        over_rows(average, len(self._columns), 1, threads_from=_WORK_FOR_THREADS // max(1, index.size))

    @property
    def system(self) -> MomentSystem:
        """The moments of worlds that are constant on cells, such that all rows' moments are right."""
        system = self._system
        shape = (*system.values.shape[:-1], self.count)
        values = self._means[: len(self._columns) - self._carried].reshape(shape)
        cells = replace(system, values=values, weights=self.weights)
        # What the cells' moments must reach so that those of all rows are right.
        shift = self._moment - cells.moments(self.forecasts.T)
        return replace(cells, center=system.center + shift)

    @property
    def forecasts(self) -> FloatArray:
        """Mean forecasts, shape ``(count, d)``."""
        start = len(self._columns) - self._carried
        return np.clip(self._means[start : start + self._game.dimension].T, 0.0, 1.0)

    @property
    def game(self) -> Game:
        """The game on cells: shared, or mean rewards where every row has one action of its own."""
        if self._game.shared:
            return self._game
        d = self._game.dimension
        rewards, offsets = self._means[-d - 1 : -1].T, self._means[-1]
        return Game(np.ascontiguousarray(rewards)[:, None], offsets[:, None], self._game.space, shared=False)

    @property
    def _carried(self) -> int:
        """Number of columns beside the tests."""
        d = self._game.dimension
        return d if self._game.shared else 2 * d + 1


def sum_cells(index: IntArray, weights: FloatArray, column: FloatArray, sums: FloatArray) -> None:
    """Add up the weighted numbers of each cell; a loop to be compiled, which threads can share, unlike NumPy's."""
    for i in range(index.size):
        sums[index[i]] += weights[i] * column[i]


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
