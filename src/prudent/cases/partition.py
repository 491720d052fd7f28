"""Which cell a row of a table belongs to: a grid of the forecast and the labels of the tests, finer where asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen
from prudent.arrays.lazy_narwhals import Expr, Frame, nw, where
from prudent.cases.engine_rows import Rows, kinds_of
from prudent.guarantees.engine_tests import EngineLabel, EngineTests, coordinate, joined, split
from prudent.spaces import Space

_FIRST_CELLS = 4096
_FIRST_CELLS_OF_ONE = 2048  # along one coordinate: enough for the tolerance, and their sums stay in the fastest memory
_PARTS = {1: 64, 2: 8, 3: 4}  # per coordinate, when a cell is divided; 2 where there are more
_MOST_DIVIDED = 8  # coordinates along which cells are divided
_LARGEST_KEY = 2**62


@frozen
class Partition:
    """A rule that numbers cells; rows it does not know about never leave their engine.

    Attributes
    ----------
    space : Box or Simplex
    per_coordinate : int
        Cells of the first grid along each of ``axes`` coordinates.
    tests : EngineTests
    labels : tuple of EngineLabel
        What the cells must tell apart: the labels of the tests, then further ones.
    divisions : tuple of arrays
        Keys of cells that are divided, each time by the next finer grid.
    """

    space: Space
    axes: int
    per_coordinate: int
    tests: EngineTests
    labels: tuple[EngineLabel, ...]
    divisions: tuple[IntArray, ...] = ()

    @property
    def _counts(self) -> list[int]:
        return [self.per_coordinate] * self.axes + [label.n_labels for label in self.labels]

    @property
    def _parts(self) -> list[int]:
        """Parts of a cell that is divided, along each of the first coordinates."""
        return [_PARTS.get(self.axes, 2)] * min(self.axes, _MOST_DIVIDED)

    def _end(self, divisions: int) -> int:
        """All keys are below this number after so many divisions, and those of further parts are not."""
        return int(np.prod(self._counts, dtype=object)) * (1 + int(np.prod(self._parts))) ** divisions

    def with_key(self, rows: Rows, keys: IntArray | None = None, *, whole: bool = False) -> Frame:
        """Add the column ``key``.

        ``keys`` keeps the rows of some cells; with ``whole`` they are keys before the last division.
        """
        frame, column = rows.frame if keys is None else self._near(rows.frame, keys), nw.col("key")
        digits = [self._step(j, self.per_coordinate) for j in range(self.axes)]
        key = joined([*digits, *(label.expression for label in self.labels)], self._counts)
        frame = frame.with_columns(kinds_of(self.tests, key).cast(nw.Int64).alias("key"))
        for number, divided in enumerate(self.divisions):
            if number == len(self.divisions) - 1 and keys is not None and whole:
                frame = frame.filter(column.is_in(keys.tolist()))
            per, parts = self._parts[0], self._parts
            finer = self.per_coordinate * per ** (number + 1)
            part = joined([self._step(j, finer) % per for j in range(len(parts))], parts)
            moved = column * int(np.prod(parts)) + part + self._end(number)
            key = where(column.is_in(divided.tolist()), moved, column)
            frame = frame.with_columns(key.cast(nw.Int64).alias("key"))
        return frame if keys is None or whole else frame.filter(column.is_in(keys.tolist()))

    def _near(self, frame: Frame, keys: IntArray) -> Frame:
        """Keep rows by plain comparisons first, which engines push down into their files."""
        if self.axes != 1:
            return frame
        lower, upper = self._decode(keys)[1:]  # not cut: rows that touch a cut are to be found on both sides
        order = np.argsort(lower[:, 0])
        ranges: list[list[float]] = []
        for low, high in zip(lower[order, 0].tolist(), upper[order, 0].tolist(), strict=True):
            if ranges and low <= ranges[-1][1]:
                ranges[-1][1] = max(high, ranges[-1][1])
            else:
                ranges.append([low, high])
        if len(ranges) > 16:
            ranges = [[ranges[0][0], ranges[-1][1]]]
        value = nw.col(coordinate(0))
        return frame.filter(nw.any_horizontal(*((value >= a) & (value <= b) for a, b in ranges), ignore_nulls=False))

    def divided(self, keys: IntArray) -> Partition | None:
        """Divide some cells by a finer grid; None where keys would leave whole numbers of 64 bits."""
        if self._end(len(self.divisions) + 1) >= _LARGEST_KEY:
            return None
        return replace(self, divisions=(*self.divisions, keys))

    def decode(self, keys: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Labels of the tests ``(cells, labels)`` and bounds of the forecasts ``(cells, d)`` of cells."""
        labels, lower, upper = self._decode(keys)
        for place, label in enumerate(self.labels):
            if label.cuts is not None:
                edges = np.array([-np.inf, *label.cuts, np.inf])
                lower[:, 0] = np.maximum(lower[:, 0], edges[labels[:, place]])
                upper[:, 0] = np.minimum(upper[:, 0], edges[labels[:, place] + 1])
        return labels[:, : len(self.tests.labels)], lower, upper

    def _decode(self, keys: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """All labels of cells, and the bounds of their grids."""
        inside, parts = [], self._parts
        for number in reversed(range(len(self.divisions))):
            end = self._end(number)
            before, part = np.divmod(keys - end, int(np.prod(parts)))
            inside.append((keys >= end, part))
            keys = np.where(keys >= end, before, keys)
        digits = split(keys, self._counts)
        index, labels = digits[:, : self.axes], digits[:, self.axes :]
        count = np.full(index.shape, self.per_coordinate)
        divided = slice(len(parts))
        for own, part in reversed(inside):
            index[own, divided] = index[own, divided] * parts[0] + split(part[own], parts)
            count[own, divided] *= parts[0]
        low, high = self.space.bounds
        lower, upper = np.tile(low, (len(index), 1)), np.tile(high, (len(index), 1))
        gridded = slice(self.axes)
        width = (high - low)[gridded] / count
        # A little wider, since rows find their cells in floats.
        slop = (16 * EPSILON * (np.abs(low) + np.abs(high) + (high - low)))[gridded]
        lower[:, gridded] = np.maximum(low[gridded], low[gridded] + width * index - slop)
        upper[:, gridded] = np.minimum(high[gridded], low[gridded] + width * (index + 1) + slop)
        return labels, lower, upper

    def _step(self, j: int, count: int) -> Expr:
        """Index of a coordinate in a grid of so many cells."""
        low, high = (float(bound[j]) for bound in self.space.bounds)
        # A hair less than count cells, so that the upper bound is in the last of them without a comparison.
        scale = count * (1 - 8 * EPSILON) / (high - low)
        distance = nw.col(coordinate(j)) - low if low else nw.col(coordinate(j))
        return (distance * scale).floor().cast(nw.Int64)


def first_partition(space: Space, tests: EngineTests, apart: tuple[EngineLabel, ...] = ()) -> Partition:
    """Lay a grid over the space; coordinates of a simplex sum to one, so its last needs no axis.

    Cells tell the labels of the tests apart, and further ones.
    """
    axes = space.free_dimension
    first = _FIRST_CELLS_OF_ONE if axes == 1 else _FIRST_CELLS
    per_coordinate = max(2, round(first ** (1 / axes) - 1e-9)) if axes <= 12 else 1
    return Partition(space, axes, per_coordinate, tests, (*tests.labels, *apart))
