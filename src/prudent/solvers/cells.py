"""Rows gathered into cells with total weight and mean tests.

A world that is constant on cells has the same moments on all rows as on the
cells, so its value is an upper bound for all rows. The dual of the cells is
never below the dual of the rows (``phi`` is concave), and equal to it where
all rows of a cell share a linear piece of ``phi`` (docs/theory.md, section 6).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.compiled import compiled
from prudent.remembering import remembered_for_arrays
from prudent.solvers import cell_loops
from prudent.solvers.game import Game
from prudent.solvers.moment_system import MomentSystem

__all__ = ["Cells", "sum_cells"]

_WORK_FOR_THREADS = 1 << 18
_ROWS_FOR_ONE_CORE = 1 << 18  # with more of them it pays that cores share the columns


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
        self.index = index
        tests, nothing = system.values.reshape(-1, len(forecasts)), np.zeros((len(forecasts), 0))
        own = (nothing, nothing) if game.shared else (game.rewards[:, 0], game.offsets)
        self._numbers = tests, forecasts, *own
        # Games on the same rows begin with the same cells.
        moment, self.weights, known = _sum_up(system.values, system.weights, forecasts, index, count)
        self._moment = system.combined(moment)
        if not game.shared:
            known = np.concatenate([known, _means([*own[0].T, *own[1].T], index, system.weights, self.weights)])
        self._means = known

    @cached_property
    def _columns(self) -> list[FloatArray]:
        """Everything that cells have means of, each over all rows."""
        tests, forecasts, rewards, offsets = self._numbers
        return [*tests, *forecasts.T, *rewards.T, *offsets.T]

    @cached_property
    def _plain_weights(self) -> FloatArray:
        """Weights, each in its place: equal ones are a view of one number."""
        return np.ascontiguousarray(self._system.weights)

    @property
    def _one_core(self) -> bool:
        return self.index.size <= _ROWS_FOR_ONE_CORE

    @cached_property
    def _by_row(self) -> FloatArray:
        return _turned_around(self._system.values)

    def tests_of(self, rows: IntArray) -> FloatArray:
        """Tests of some rows, all of their numbers side by side."""
        if self._one_core:
            return self._by_row.take(rows, axis=0)
        return self._numbers[0][:, rows].T

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.weights.size)

    def split(self, rows: IntArray, labels: IntArray) -> None:
        """Part cells by the labels of their rows, all of which are given."""
        former = self.index[rows]
        span = int(labels.max()) + 1
        combined = former * span + labels
        occurs = np.bincount(combined) > 0  # numbers are small: counting them is faster than sorting
        position = (np.cumsum(occurs) - 1).take(combined)
        parents = np.flatnonzero(occurs) // span
        # One part keeps the number of its cell, the others get new ones.
        fresh = np.concatenate([[False], parents[1:] == parents[:-1]])
        numbers = parents.copy()
        numbers[fresh] = self.count + np.arange(int(fresh.sum()))
        self.index = self.index.copy()
        self.index[rows] = numbers[position]
        self._gather(rows, position, numbers, self.count + int(fresh.sum()))

    def _gather(self, rows: IntArray, position: IntArray, touched: IntArray, count: int) -> None:
        """Sum up the touched cells, all of whose rows are given, and the position of each row's cell among them."""
        grown = count - self.count
        self.weights = np.concatenate([self.weights, np.zeros(grown)])
        self._means = np.concatenate([self._means, np.zeros((len(self._means), grown))], axis=1)
        loop = compiled(cell_loops.sum_touched, self.index.size) if self._one_core else None
        if loop is None:
            index, weights = self.index[rows], self._system.weights[rows]
            totals = np.bincount(index, weights=weights, minlength=count).astype(np.float64, copy=False)
            means = _means([column[rows] for column in self._columns], index, weights, totals)
            self.weights[touched], self._means[:, touched] = totals[touched], means[:, touched]
            return
        totals, sums = np.zeros(touched.size), np.zeros((touched.size, len(self._columns)))
        loop(rows, position, self._plain_weights, self._by_row, *self._numbers[1:], totals, sums)
        self.weights[touched] = totals
        self._means[:, touched] = np.divide(sums, totals[:, None], out=np.zeros_like(sums), where=totals[:, None] > 0).T

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


@remembered_for_arrays
def _turned_around(values: FloatArray) -> FloatArray:
    """Tests ``(n, numbers)``: where few rows of many are looked up, their numbers had better lie side by side."""
    return np.ascontiguousarray(values.reshape(-1, values.shape[-1]).T)


@remembered_for_arrays
def _sum_up(
    values: FloatArray, weights: FloatArray, forecasts: FloatArray, index: IntArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Moments of the forecasts, weights of cells, and means of tests and forecasts in them."""
    columns = [*values.reshape(-1, len(forecasts)), *forecasts.T]
    totals = np.bincount(index, weights=weights, minlength=count).astype(np.float64, copy=False)
    weighted = weights * forecasts.T
    moment = (values @ weighted.T).reshape(-1) if values.ndim == 2 else np.tensordot(values, weighted, axes=2)
    return moment, totals, _means(columns, index, weights, totals)


def _means(columns: list[FloatArray], index: IntArray, weights: FloatArray, totals: FloatArray) -> FloatArray:
    """Weighted means of columns in each cell, ``(columns, cells)``; zero where there is no weight."""
    loop = compiled(sum_cells, index.size * len(columns), exact=True)
    weights = np.ascontiguousarray(weights)
    means = np.zeros((len(columns), totals.size))
    touched = np.flatnonzero(totals)

    def average(part: slice) -> None:
        column, sums = columns[part.start], np.zeros(totals.size)
        if loop is not None:
            loop(index, weights, np.ascontiguousarray(column), sums)
        else:
            sums = np.bincount(index, weights=weights * column, minlength=totals.size).astype(np.float64, copy=False)
        means[part.start, touched] = sums[touched] / totals[touched]

    over_rows(average, len(columns), 1, threads_from=_WORK_FOR_THREADS // max(1, index.size))
    return means


def sum_cells(index: IntArray, weights: FloatArray, column: FloatArray, sums: FloatArray) -> None:
    """Add up the weighted numbers of each cell; a loop to be compiled, which threads can share, unlike NumPy's."""
    for i in range(index.size):
        sums[index[i]] += weights[i] * column[i]
