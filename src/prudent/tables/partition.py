"""Which cell a row of a table belongs to: a grid of the forecast, the labels of the tests, finer where asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.written import Block, WrittenTests, coordinate, counted
from prudent.spaces import Simplex, Space
from prudent.tables.rows import SNAPPED, UNUSED, Rows

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["LEFT_OUT", "REFUSED", "UNCLEAR", "Partition", "first_partition"]

#: Keys of rows that are in no cell.
LEFT_OUT, REFUSED, UNCLEAR = -1, -2, -3

_FIRST_CELLS = 4096
_FIRST_CELLS_OF_ONE = 2048  # along one coordinate: enough for the tolerance, and their sums stay in the fastest memory
_MOST_RANGES = 16
_ALIGNED = 4 * float(np.finfo(np.float64).eps)  # of the space: how far a cut may lie from where grid cells meet
_MOST_PARITIES = 8  # coordinates whose cells are told apart at once
_PARTS = {1: 64, 2: 8, 3: 4}  # per coordinate, when a cell is divided


@dataclass(frozen=True, eq=False)
class _Division:
    """Cells that are divided: their keys, into how many parts, and which part a row belongs to."""

    keys: IntArray
    offset: int
    parts: int
    finer: int  # cells per coordinate of the grid after the division; zero if labels divide
    label: Any


@dataclass(frozen=True, eq=False)
class Partition:
    """A rule that numbers cells; rows it does not know about never leave their engine.

    Attributes
    ----------
    space : Box or Simplex
    per_coordinate : int
        Cells of the first grid along each of ``axes`` coordinates.
    cut, other : tuples of Block
        Blocks whose labels the cells must tell apart.
    """

    space: Space
    axes: int
    per_coordinate: int
    cut: tuple[Block, ...] = ()  # labels that count cuts of the one coordinate: most grid cells know theirs
    other: tuple[Block, ...] = ()
    order: tuple[int, ...] = ()  # where each labelled block stands among cut and other
    demands: tuple[Any, ...] = ()
    divisions: tuple[_Division, ...] = ()
    aligned: bool = False  # every cut is where two grid cells meet, up to rounding
    crossed: tuple[int, ...] = ()  # grid cells of an aligned grid with rows on both sides of a cut

    @property
    def _steps(self) -> int:
        """Number of grid cells along a coordinate; an aligned grid has one more, for the upper bound itself."""
        return self.per_coordinate + self.aligned

    @property
    def _grid(self) -> int:
        """Number of grid cells, and one more for rows that were moved onto the space."""
        return int(self._steps**self.axes) + 1

    @cached_property
    def _cuts(self) -> FloatArray:
        """All cuts of the one coordinate."""
        return np.unique(np.concatenate([np.zeros(0), *(np.array(block.cuts) for block in self.cut)]))

    @cached_property
    def _cut_cells(self) -> IntArray:
        """Grid cells that a cut goes through, and the cell of moved rows."""
        if self.aligned:
            return np.array([*self.crossed, self._grid - 1], dtype=np.int64)
        first, last = self._reached
        return np.append(np.flatnonzero(first < last), self._grid - 1)

    @cached_property
    def _reached(self) -> tuple[IntArray, IntArray]:
        """The least and the largest number of cuts that rows of each grid cell may have reached."""
        lower, upper = self._bounds(np.arange(self._grid - 1)[:, None], np.full(self._grid - 1, self.per_coordinate))
        first = np.searchsorted(self._cuts, lower[:, 0], side="left")
        return first, np.searchsorted(self._cuts, upper[:, 0], side="right")

    def crossing(self, keys: IntArray, least: FloatArray, most: FloatArray) -> IntArray:
        """Keys of whole cells whose forecasts, from the least to the most, are not all on one side of every cut.

        With one of them all that share its grid cell, since rows are then told apart by grid cell.
        A row finds its cell by one multiplication in floats, which is off by one at most, and only within rounding of
        where two cells meet. On an aligned grid the range of each cell therefore shows whether that happened.
        """
        reached = np.searchsorted(self._cuts, self._middle(keys), side="right")
        edges = np.concatenate([[-np.inf], self._cuts, [np.inf]])
        cells, rank = self._first_position(keys)
        whole = rank < 0
        off = whole & ((least < edges[reached]) | (most >= edges[reached + 1]))
        return keys[whole & np.isin(cells, cells[off])]

    def parted(self, keys: IntArray) -> tuple[Partition, IntArray]:
        """Tell the cuts in some whole cells apart by comparisons; returns all keys that their rows may get."""
        others = int(np.prod([block.n_labels for block in self.other], dtype=np.int64))
        cells = self._first_position(keys)[0]
        partition = replace(self, crossed=(*self.crossed, *np.unique(cells).tolist()))
        first, last = self._reached
        parts = [
            (self._grid + cell * (len(self._cuts) + 1) + rank) * others + key % others
            for key, cell in zip(keys.tolist(), cells.tolist(), strict=True)
            for rank in range(first[cell], last[cell] + 1)
        ]
        return partition, np.array(parts, dtype=np.int64)

    def _middle(self, keys: IntArray) -> FloatArray:
        """Middles of cells along the first coordinate."""
        finest, index, _ = self._trace(keys)
        lower, upper = self._bounds(index, finest)
        middle: FloatArray = (lower[:, 0] + upper[:, 0]) / 2
        return middle

    @property
    def _positions(self) -> int:
        """Number of grid cells, parts of cut ones counted on top."""
        return self._grid * (len(self._cuts) + 2) if self.cut else self._grid

    @property
    def first_count(self) -> int:
        """Number of possible keys before any division."""
        return self._positions * int(np.prod([block.n_labels for block in self.other], dtype=np.int64))

    def with_key(self, rows: Rows, keys: IntArray | None = None, *, whole: bool = False) -> nw.LazyFrame[Any]:
        """Add the column ``key``.

        ``keys`` keeps the rows of some cells; with ``whole`` they are keys before the last division.
        """
        import narwhals.stable.v2 as nw

        rows.require_labels(self.other)
        frame = rows.frame
        if keys is not None:
            frame = self._near(frame, keys)
        position = self._step(0, self.per_coordinate)
        for j in range(1, self.axes):
            position = position * self._steps + self._step(j, self.per_coordinate)
        if rows.careful:  # moved rows are a cell of their own, which counts them
            position = nw.when(nw.col("state") == SNAPPED).then(nw.lit(self._grid - 1)).otherwise(position)
        frame = frame.with_columns(self._where_plain(rows, position).alias("key"))
        key = nw.col("key")
        if self.cut:
            rank = counted(nw.col(coordinate(0)), self._cuts.tolist())
            part = self._grid + key * (len(self._cuts) + 1) + rank
            cells = self._cut_cells if rows.careful else self._cut_cells[:-1]
            if cells.size:
                key = nw.when(key.is_in(cells.tolist())).then(part).otherwise(key)
        for block in self.other:
            key = key * block.n_labels + block.label
        for demand in self.demands:
            key = nw.when(demand).then(key).otherwise(nw.lit(REFUSED))
        if self.cut or self.other or self.demands:
            key = nw.when(nw.col("key") >= 0).then(key).otherwise(nw.col("key"))
            frame = frame.with_columns(key.cast(nw.Int64).alias("key"))
        for number, division in enumerate(self.divisions):
            if number == len(self.divisions) - 1 and keys is not None and whole:
                frame = frame.filter(nw.col("key").is_in(keys.tolist()))
            part = division.label if division.label is not None else self._part(division)
            divided = nw.col("key") * division.parts + part + division.offset
            chosen = nw.col("key").is_in(division.keys.tolist())
            frame = frame.with_columns(
                nw.when(chosen).then(divided).otherwise(nw.col("key")).cast(nw.Int64).alias("key")
            )
        if keys is not None and not whole:
            frame = frame.filter(nw.col("key").is_in(keys.tolist()))
        return frame

    def _where_plain(self, rows: Rows, position: nw.Expr) -> nw.Expr:
        import narwhals.stable.v2 as nw

        state = nw.col("state")
        if not rows.careful:
            return nw.when(state).then(position).otherwise(nw.lit(UNCLEAR)).cast(nw.Int64)
        aside = nw.when(state == UNUSED).then(nw.lit(LEFT_OUT)).otherwise(nw.lit(REFUSED))
        return nw.when(state <= SNAPPED).then(position).otherwise(aside).cast(nw.Int64)

    def _near(self, frame: nw.LazyFrame[Any], keys: IntArray) -> nw.LazyFrame[Any]:
        """Keep rows by plain comparisons first, which engines push down into their files."""
        import narwhals.stable.v2 as nw

        if self.axes != 1:
            return frame
        _, lower, upper = self.decode(keys)
        order = np.argsort(lower[:, 0])
        ranges: list[list[float]] = []
        for low, high in zip(lower[order, 0].tolist(), upper[order, 0].tolist(), strict=True):
            if ranges and low <= ranges[-1][1]:
                ranges[-1][1] = max(high, ranges[-1][1])
            else:
                ranges.append([low, high])
        if len(ranges) > _MOST_RANGES:
            ranges = [[ranges[0][0], ranges[-1][1]]]
        value = nw.col(coordinate(0))
        near = (value >= ranges[0][0]) & (value <= ranges[0][1])
        for low, high in ranges[1:]:
            near = near | ((value >= low) & (value <= high))
        return frame.filter(near)

    def divided(self, keys: IntArray, label: Any = None, n_labels: int = 0) -> Partition:
        """Divide some cells: by a finer grid, or by a label where there are too many coordinates for one."""
        offset = self.first_count if not self.divisions else self._end
        if label is None:
            finer = self._finest * _PARTS[self.axes]
            division = _Division(keys, offset, _PARTS[self.axes] ** self.axes, finer, None)
        else:
            division = _Division(keys, offset, n_labels, 0, label)
        return replace(self, divisions=(*self.divisions, division))

    def parities(self, times: int) -> tuple[Any, int]:
        """Write whether a row is in an odd or an even cell of a finer grid, along every coordinate up to a few.

        A label where there are too many coordinates for a finer grid; the grid is eight times finer each time, since
        this is asked for where rows lie close together. Returns the number of labels, too.
        """
        import narwhals.stable.v2 as nw

        label, axes = nw.lit(0), min(self.axes, _MOST_PARITIES)
        for j in range(axes):
            label = label * 2 + self._step(j, self.per_coordinate * 8**times) % 2
        return label, 2**axes

    def has_room(self, parts: int | None = None) -> bool:
        """True if keys of one more division are still whole numbers of 64 bits."""
        offset = self.first_count if not self.divisions else self._end
        return offset * (1 + (_PARTS[self.axes] ** self.axes if parts is None else parts)) < 2**62

    @property
    def grid_divides(self) -> bool:
        """True where a finer grid has few enough parts."""
        return self.axes in _PARTS

    @property
    def _end(self) -> int:
        last = self.divisions[-1]
        return last.offset + last.offset * last.parts

    @property
    def _finest(self) -> int:
        finer = [division.finer for division in self.divisions if division.finer]
        return finer[-1] if finer else self.per_coordinate

    def parents(self, keys: IntArray) -> IntArray:
        """Keys before the last division."""
        last = self.divisions[-1]
        return np.where(keys >= last.offset, (keys - last.offset) // last.parts, keys)

    def moved(self, keys: IntArray) -> NDArray[np.bool_]:
        """Cells of rows that were moved onto the space."""
        return self._first_position(self._trace(keys)[2])[0] == self._grid - 1

    def decode(self, keys: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Labels ``(cells, labels)`` and bounds of the forecasts ``(cells, d)`` of cells."""
        finest, index, first = self._trace(keys)
        position, rank = self._first_position(first)
        low, high = self.space.bounds
        lower, upper = np.tile(low, (len(keys), 1)), np.tile(high, (len(keys), 1))
        plain = position < self._grid - 1
        lower[plain, : self.axes], upper[plain, : self.axes] = self._bounds(index[plain], finest[plain])
        labels = np.zeros((len(keys), len(self.order)), dtype=np.int64)
        middle = (lower[:, 0] + upper[:, 0]) / 2
        columns = []
        for block in self.cut:
            cuts = np.array(block.cuts)
            reached = np.concatenate([[0], np.searchsorted(cuts, self._cuts, side="right")])
            columns.append(np.where(rank >= 0, reached[rank], np.searchsorted(cuts, middle, side="right")))
        if self.cut:  # parts of a cut cell end at the cuts
            ends = np.concatenate([low[:1], self._cuts, high[:1]])
            lower[:, 0] = np.where(rank >= 0, np.maximum(lower[:, 0], ends[rank]), lower[:, 0])
            upper[:, 0] = np.where(rank >= 0, np.minimum(upper[:, 0], ends[rank + 1]), upper[:, 0])
        rest = first.copy()
        own = []
        for block in reversed(self.other):
            own.append(rest % block.n_labels)
            rest //= block.n_labels
        columns += own[::-1]
        for place, column in zip(self.order, range(len(self.order)), strict=True):
            labels[:, column] = columns[place]
        return labels, lower, upper

    def _bounds(self, index: IntArray, finest: IntArray) -> tuple[FloatArray, FloatArray]:
        """Where grid cells lie; a little wider, since rows find theirs in floats."""
        low, high = (bound[: self.axes] for bound in self.space.bounds)
        width = (high - low) / finest[:, None]
        slop = 16 * np.finfo(np.float64).eps * (np.abs(low) + np.abs(high) + (high - low))
        lower = np.maximum(low, low + width * index - slop)
        return lower, np.minimum(high, low + width * (index + 1) + slop)

    def _first_position(self, first: IntArray) -> tuple[IntArray, IntArray]:
        """Grid cell and, for parts of cut cells, the number of cuts reached; -1 for whole cells."""
        position = first.copy()
        for block in self.other:
            position //= block.n_labels
        rank = np.full(len(first), -1, dtype=np.int64)
        if self.cut:
            parted = position >= self._grid
            rank[parted] = (position[parted] - self._grid) % (len(self._cuts) + 1)
            position[parted] = (position[parted] - self._grid) // (len(self._cuts) + 1)
        return position, rank

    def _trace(self, keys: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Follow keys back to the first grid: finest grid, index in it, first key."""
        n = len(keys)
        finest = np.full(n, self.per_coordinate, dtype=np.int64)
        parts_inside = np.zeros((n, self.axes), dtype=np.int64)
        multiplier = np.ones(n, dtype=np.int64)
        keys = keys.copy()
        for division in reversed(self.divisions):
            inside = keys >= division.offset
            part = (keys - division.offset) % division.parts
            keys = np.where(inside, (keys - division.offset) // division.parts, keys)
            if not division.finer:
                continue
            per = _PARTS[self.axes]
            rest = part.copy()
            for j in range(self.axes - 1, -1, -1):
                parts_inside[inside, j] += (rest % per * multiplier)[inside]
                rest //= per
            multiplier = np.where(inside, multiplier * per, multiplier)
        finest = self.per_coordinate * multiplier
        first, _ = self._first_position(keys)
        index = np.zeros((n, self.axes), dtype=np.int64)
        for j in range(self.axes - 1, -1, -1):
            index[:, j] = (first % self._steps) * multiplier + parts_inside[:, j]
            first //= self._steps
        return finest, index, keys

    def _step(self, j: int, count: int) -> nw.Expr:
        """Index of a coordinate in a grid of so many cells."""
        import narwhals.stable.v2 as nw

        low, high = (float(bound[j]) for bound in self.space.bounds)
        # A hair less than count cells, so that the upper bound is in the last of them without a comparison. On an
        # aligned grid it has a cell of its own instead, and a round number that is a cut is where it belongs.
        hair = 0.0 if self.aligned else 8 * float(np.finfo(np.float64).eps)
        scale = count * (1 - hair) / (high - low)
        distance = nw.col(coordinate(j)) - low if low else nw.col(coordinate(j))
        return (distance * scale).floor().cast(nw.Int64)

    def _part(self, division: _Division) -> nw.Expr:
        import narwhals.stable.v2 as nw

        per = _PARTS[self.axes]
        part = nw.lit(0)
        for j in range(self.axes):
            part = part * per + self._step(j, division.finer) % per
        return part


def first_partition(space: Space, tests: WrittenTests, apart: tuple[Block, ...] = ()) -> Partition:
    """Lay a grid over the space; coordinates of a simplex sum to one, so its last needs no axis.

    Cells tell the labels of the tests apart, and those of further blocks.
    """
    axes = space.dimension - 1 if isinstance(space, Simplex) else space.dimension
    first = _FIRST_CELLS_OF_ONE if axes == 1 else _FIRST_CELLS
    per_coordinate = max(2, round(first ** (1 / axes) - 1e-9)) if axes <= 12 else 1
    demands = tuple(block.demand for block in tests.blocks if block.demand is not None)
    cut = tuple(block for block in tests.labelled if block.cuts is not None)
    other = tuple(block for block in tests.labelled if block.cuts is None)
    order = tuple((*cut, *other).index(block) for block in tests.labelled)
    partition = Partition(space, axes, per_coordinate, cut, (*other, *apart), order, demands)
    count = _aligned_count(partition) if cut else None
    return partition if count is None else replace(partition, per_coordinate=count, aligned=True)


def _aligned_count(partition: Partition) -> int | None:
    """The largest number of cells, from the usual one down to half of it, whose grid meets every cut; or None.

    The cell of a row then says on which side of the cuts it is, and no row is compared with them.
    """
    low, high = (float(bound[0]) for bound in partition.space.bounds)
    counts = np.arange(partition.per_coordinate, partition.per_coordinate // 2, -1)
    steps = np.outer(counts, (partition._cuts - low) / (high - low))
    tolerance = _ALIGNED * (1 + (abs(low) + abs(high)) / (high - low))
    meets = np.flatnonzero((np.abs(steps - np.round(steps)) <= tolerance * counts[:, None]).all(axis=1))
    return int(counts[meets[0]]) if meets.size else None
