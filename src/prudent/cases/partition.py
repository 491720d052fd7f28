"""Which cell a row of a table belongs to: a grid of the forecast, the labels of the tests, finer where asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen
from prudent.arrays.lazy_narwhals import Expr, Frame, nw, where
from prudent.cases.engine_rows import Rows, kinds_of
from prudent.guarantees.engine_tests import EngineLabel, EngineTests, coordinate, counted, with_ends
from prudent.spaces import Space

_FIRST_CELLS = 4096
_FIRST_CELLS_OF_ONE = 2048  # along one coordinate: enough for the tolerance, and their sums stay in the fastest memory
_ALIGNED = 4 * EPSILON  # of the space: how far a cut may lie from where grid cells meet
_MOST_PARITIES = 8  # coordinates whose cells are told apart at once
_PARTS = {1: 64, 2: 8, 3: 4}  # per coordinate, when a cell is divided
_LARGEST_KEY = 2**62


@frozen
class _Division:
    """Cells that are divided: their keys, which part a row belongs to, and whether the parts are a finer grid."""

    keys: IntArray
    offset: int
    parts: int
    label: Any
    by: Literal["grid", "cuts", "label"]


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
    aligned : bool
        True where every cut is where two grid cells meet, up to rounding: the cell of a row then says on which side of
        the cuts it is, and no row is compared with them.
    """

    space: Space
    axes: int
    per_coordinate: int
    tests: EngineTests
    labels: tuple[EngineLabel, ...]
    aligned: bool = False
    divisions: tuple[_Division, ...] = ()

    @property
    def _steps(self) -> int:
        """Number of grid cells along a coordinate; an aligned grid has one more, for the upper bound itself."""
        return self.per_coordinate + self.aligned

    @cached_property
    def _cuts(self) -> FloatArray:
        """All cuts of the one coordinate."""
        return np.unique(np.concatenate([np.zeros(0), *(label.cuts or () for label in self.labels)]))

    @cached_property
    def _coded(self) -> list[int]:
        """Places of the labels that are part of a key; the others follow from the grid cell."""
        return [place for place, label in enumerate(self.labels) if label.cuts is None or not self.aligned]

    def crossing(self, keys: IntArray, least: FloatArray, most: FloatArray) -> IntArray:
        """Keys of cells whose forecasts, from the least to the most, are not all on one side of every cut.

        A row finds its cell by one multiplication in floats, which is off by one at most, and only within rounding of
        where two cells meet. On an aligned grid the range of each cell therefore shows whether that happened.
        """
        edges = with_ends(self._cuts)
        reached = self._decode(keys)[1]
        return keys[(least < edges[reached]) | (most >= edges[reached + 1])]

    def cut(self, keys: IntArray) -> Partition:
        """Tell the cuts in some cells apart, by comparing their rows with them."""
        label = counted(nw.col(coordinate(0)), self._cuts.tolist())
        return self._with(_Division(keys, self._end, len(self._cuts) + 1, label, "cuts"))

    def with_key(self, rows: Rows, keys: IntArray | None = None, *, whole: bool = False) -> Frame:
        """Add the column ``key``.

        ``keys`` keeps the rows of some cells; with ``whole`` they are keys before the last division.
        """
        frame, column = rows.frame if keys is None else self._near(rows.frame, keys), nw.col("key")
        key = self._step(0, self.per_coordinate)
        for j in range(1, self.axes):
            key = key * self._steps + self._step(j, self.per_coordinate)
        for place in self._coded:
            key = key * self.labels[place].n_labels + self.labels[place].expression
        frame = frame.with_columns(kinds_of(rows, self.tests, key).cast(nw.Int64).alias("key"))
        for number, division in enumerate(self.divisions):
            if number == len(self.divisions) - 1 and keys is not None and whole:
                frame = frame.filter(column.is_in(keys.tolist()))
            divided = column * division.parts + division.label + division.offset
            key = where(column.is_in(division.keys.tolist()), divided, column)
            frame = frame.with_columns(key.cast(nw.Int64).alias("key"))
        return frame if keys is None or whole else frame.filter(column.is_in(keys.tolist()))

    def _near(self, frame: Frame, keys: IntArray) -> Frame:
        """Keep rows by plain comparisons first, which engines push down into their files."""
        if self.axes != 1:
            return frame
        lower, upper = self._decode(keys)[2:]  # not cut: rows that touch a cut are to be found on both sides
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

    def divided(self, keys: IntArray, otherwise: Callable[[], tuple[Any, int]]) -> Partition | None:
        """Divide some cells by a finer grid; None where keys would leave whole numbers of 64 bits.

        With too many coordinates for a finer grid, divide by a label that is then asked for, with the number of labels.
        """
        per, end = _PARTS.get(self.axes), self._end
        label, parts = otherwise() if per is None else (self._parts(self._finest * per, per), per**self.axes)
        if end * (1 + parts) >= _LARGEST_KEY:
            return None
        return self._with(_Division(keys, end, parts, label, "label" if per is None else "grid"))

    def parities(self, times: int) -> tuple[Any, int]:
        """Write whether a row is in an odd or an even cell of a finer grid, along every coordinate up to a few.

        A label where there are too many coordinates for a finer grid; the grid is eight times finer each time, since
        this is asked for where rows lie close together. Returns the number of labels, too.
        """
        return self._parts(self.per_coordinate * 8**times, 2), 2 ** min(self.axes, _MOST_PARITIES)

    def _with(self, division: _Division) -> Partition:
        return replace(self, divisions=(*self.divisions, division))

    @property
    def _end(self) -> int:
        """All keys are below this number."""
        if self.divisions:
            return self.divisions[-1].offset * (1 + self.divisions[-1].parts)
        coded = [self.labels[place].n_labels for place in self._coded]
        return int(self._steps**self.axes) * int(np.prod(coded, dtype=np.int64))

    @property
    def _finest(self) -> int:
        """Cells per coordinate of the finest grid."""
        return int(self.per_coordinate * _PARTS[self.axes] ** sum(one.by == "grid" for one in self.divisions))

    def decode(self, keys: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Labels of the tests ``(cells, labels)`` and bounds of the forecasts ``(cells, d)`` of cells."""
        labels, reached, lower, upper = self._decode(keys)
        ends = with_ends(self._cuts)
        for place, label in enumerate(self.labels):
            if label.cuts is None:
                continue
            edges = with_ends(label.cuts)
            if self.aligned:
                labels[:, place] = np.searchsorted(edges[1:-1], ends[reached], side="right")
            lower[:, 0] = np.maximum(lower[:, 0], edges[labels[:, place]])
            upper[:, 0] = np.minimum(upper[:, 0], edges[labels[:, place] + 1])
        return labels[:, : len(self.tests.labels)], lower, upper

    def _decode(self, keys: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Labels that keys hold, the number of cuts that an aligned cell has reached, and the bounds of its grid."""
        inside = []
        for division in reversed(self.divisions):
            own = keys >= division.offset
            before, part = np.divmod(keys - division.offset, division.parts)
            keys = np.where(own, before, keys)
            inside.append((division.by, own, part))
        labels = np.zeros((len(keys), len(self.labels)), dtype=np.int64)
        for place in reversed(self._coded):
            keys, labels[:, place] = np.divmod(keys, self.labels[place].n_labels)
        index = np.zeros((len(keys), self.axes), dtype=np.int64)
        for j in reversed(range(self.axes)):
            keys, index[:, j] = np.divmod(keys, self._steps)
        count = np.full(len(keys), self.per_coordinate)
        lower, upper = self._bounds(index, count)
        reached = np.searchsorted(self._cuts, (lower[:, 0] + upper[:, 0]) / 2, side="right")
        for by, own, part in reversed(inside):
            if by == "cuts":
                reached = np.where(own, part, reached)
            if by == "grid":
                per = _PARTS[self.axes]
                count[own] *= per
                for j in reversed(range(self.axes)):
                    part, digit = np.divmod(part, per)
                    index[:, j] = np.where(own, index[:, j] * per + digit, index[:, j])
        return labels, reached, *self._bounds(index, count)

    def _bounds(self, index: IntArray, count: IntArray) -> tuple[FloatArray, FloatArray]:
        """Where cells of grids lie; a little wider, since rows find theirs in floats."""
        low, high = self.space.bounds
        lower, upper = np.tile(low, (len(index), 1)), np.tile(high, (len(index), 1))
        own = slice(self.axes)
        width = (high - low)[own] / count[:, None]
        slop = (16 * EPSILON * (np.abs(low) + np.abs(high) + (high - low)))[own]
        lower[:, own] = np.maximum(low[own], low[own] + width * index - slop)
        upper[:, own] = np.minimum(high[own], low[own] + width * (index + 1) + slop)
        return lower, upper

    def _step(self, j: int, count: int) -> Expr:
        """Index of a coordinate in a grid of so many cells."""
        low, high = (float(bound[j]) for bound in self.space.bounds)
        # A hair less than count cells, so that the upper bound is in the last of them without a comparison. On an
        # aligned grid it has a cell of its own instead, and a round number that is a cut is where it belongs.
        hair = 0.0 if self.aligned else 8 * EPSILON
        scale = count * (1 - hair) / (high - low)
        distance = nw.col(coordinate(j)) - low if low else nw.col(coordinate(j))
        return (distance * scale).floor().cast(nw.Int64)

    def _parts(self, count: int, per: int) -> Expr:
        """Index in a grid of so many cells, within a cell of ``per`` along each coordinate up to a few."""
        part = nw.lit(0)
        for j in range(min(self.axes, _MOST_PARITIES)):
            part = part * per + self._step(j, count) % per
        return part


def first_partition(space: Space, tests: EngineTests, apart: tuple[EngineLabel, ...] = ()) -> Partition:
    """Lay a grid over the space; coordinates of a simplex sum to one, so its last needs no axis.

    Cells tell the labels of the tests apart, and further ones.
    """
    axes = space.free_dimension
    first = _FIRST_CELLS_OF_ONE if axes == 1 else _FIRST_CELLS
    per_coordinate = max(2, round(first ** (1 / axes) - 1e-9)) if axes <= 12 else 1
    partition = Partition(space, axes, per_coordinate, tests, (*tests.labels, *apart))
    count = _aligned_count(partition) if partition._cuts.size else None
    return partition if count is None else replace(partition, per_coordinate=count, aligned=True)


def _aligned_count(partition: Partition) -> int | None:
    """The largest number of cells, from the usual one down to half of it, whose grid meets every cut; or None."""
    low, high = partition.space.interval
    counts = np.arange(partition.per_coordinate, partition.per_coordinate // 2, -1)
    steps = np.outer(counts, (partition._cuts - low) / (high - low))
    tolerance = _ALIGNED * (1 + (abs(low) + abs(high)) / (high - low))
    meets = np.flatnonzero((np.abs(steps - np.round(steps)) <= tolerance * counts[:, None]).all(axis=1))
    return int(counts[meets[0]]) if meets.size else None
