"""Which cell a row of a table belongs to: a grid of the forecast, the labels of the tests, finer where asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.written import WrittenTests, coordinate
from prudent.spaces import Simplex, Space
from prudent.tables.rows import BAD, SNAPPED, UNUSED

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["LEFT_OUT", "REFUSED", "Partition", "first_partition"]

#: Keys of rows that are in no cell.
LEFT_OUT, REFUSED = -1, -2

_FIRST_CELLS = 4096
_PARTS = {1: 64, 2: 8, 3: 4}  # per coordinate, when a cell is divided


@dataclass(frozen=True, eq=False)
class _Division:
    """Cells that are divided: their keys, into how many parts, and which part a row belongs to."""

    keys: IntArray
    offset: int
    parts: int
    finer: int | None  # cells per coordinate of the grid after the division; None if labels divide
    label: Any


@dataclass(frozen=True, eq=False)
class Partition:
    """A rule that numbers cells; rows it does not know about never leave their engine.

    Attributes
    ----------
    space : Box or Simplex
    per_coordinate : int
        Cells of the first grid along each of ``axes`` coordinates.
    labels : list of (expression, number of values)
    """

    space: Space
    axes: int
    per_coordinate: int
    labels: list[tuple[Any, int]]
    demands: list[Any] = field(default_factory=list)
    divisions: tuple[_Division, ...] = ()

    @property
    def _grid(self) -> int:
        """Number of grid cells, and one more for rows that were moved onto the space."""
        return int(self.per_coordinate**self.axes) + 1

    @property
    def first_count(self) -> int:
        """Number of possible keys before any division."""
        return self._grid * int(np.prod([count for _, count in self.labels], dtype=np.int64))

    def with_key(self, frame: nw.LazyFrame[Any], restrict: IntArray | None = None) -> nw.LazyFrame[Any]:
        """Add the column ``key``; ``restrict`` keeps the rows of some cells, by their key before the last division."""
        import narwhals.stable.v2 as nw

        position = nw.lit(0)
        for j in range(self.axes):
            position = position * self.per_coordinate + self._step(j, self.per_coordinate)
        # Moved rows are a cell of their own, which counts them.
        key = nw.when(nw.col("state") == SNAPPED).then(nw.lit(self._grid - 1)).otherwise(position)
        for label, count in self.labels:
            key = key * count + label
        for demand in self.demands:
            key = nw.when(demand).then(key).otherwise(nw.lit(REFUSED))
        key = nw.when(nw.col("state") == UNUSED).then(nw.lit(LEFT_OUT)).otherwise(key)
        key = nw.when(nw.col("state") == BAD).then(nw.lit(REFUSED)).otherwise(key)
        frame = frame.with_columns(key.cast(nw.Int64).alias("key"))
        for number, division in enumerate(self.divisions):
            if number == len(self.divisions) - 1 and restrict is not None:
                frame = frame.filter(nw.col("key").is_in(restrict.tolist()))
            part = division.label if division.label is not None else self._part(division)
            divided = nw.col("key") * division.parts + part + division.offset
            chosen = nw.col("key").is_in(division.keys.tolist())
            frame = frame.with_columns(
                nw.when(chosen).then(divided).otherwise(nw.col("key")).cast(nw.Int64).alias("key")
            )
        if not self.divisions and restrict is not None:
            frame = frame.filter(nw.col("key").is_in(restrict.tolist()))
        return frame

    def only(self, frame: nw.LazyFrame[Any], keys: IntArray) -> nw.LazyFrame[Any]:
        """Keep the rows of some cells."""
        import narwhals.stable.v2 as nw

        return self.with_key(frame).filter(nw.col("key").is_in(keys.tolist()))

    def divided(self, keys: IntArray, label: Any = None, n_labels: int = 0) -> Partition:
        """Divide some cells: by a finer grid, or by a label where there are too many coordinates for one."""
        offset = self.first_count if not self.divisions else self._end
        if label is None:
            finer = self._finest * _PARTS[self.axes]
            division = _Division(keys, offset, _PARTS[self.axes] ** self.axes, finer, None)
        else:
            division = _Division(keys, offset, n_labels, None, label)
        return replace(self, divisions=(*self.divisions, division))

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
        finer = [division.finer for division in self.divisions if division.finer is not None]
        return finer[-1] if finer else self.per_coordinate

    def parents(self, keys: IntArray) -> IntArray:
        """Keys before the last division."""
        last = self.divisions[-1]
        return np.where(keys >= last.offset, (keys - last.offset) // last.parts, keys)

    def moved(self, keys: IntArray) -> NDArray[np.bool_]:
        """Cells of rows that were moved onto the space."""
        first = self._trace(keys)[2]
        for _, count in self.labels:
            first = first // count
        return first == self._grid - 1

    def decode(self, keys: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Labels ``(cells, labels)`` and bounds of the forecasts ``(cells, d)`` of cells."""
        low, high = self.space.bounds
        lower, upper = np.tile(low, (len(keys), 1)), np.tile(high, (len(keys), 1))
        finest, index, keys = self._trace(keys)
        labels = np.zeros((len(keys), len(self.labels)), dtype=np.int64)
        rest = keys.copy()
        for position in range(len(self.labels) - 1, -1, -1):
            labels[:, position] = rest % self.labels[position][1]
            rest //= self.labels[position][1]
        plain = rest < self._grid - 1
        for j in range(self.axes - 1, -1, -1):
            first = rest % self.per_coordinate
            rest //= self.per_coordinate
            width = (high[j] - low[j]) / finest
            where = np.where(finest == self.per_coordinate, first, index[:, j])
            # The grid index was computed in floats: widen by what that can be off.
            slop = 8 * np.finfo(np.float64).eps * (abs(low[j]) + abs(high[j]) + (high[j] - low[j]))
            lower[plain, j] = np.maximum(low[j], low[j] + width * where - slop)[plain]
            upper[plain, j] = np.minimum(high[j], low[j] + width * (where + 1) + slop)[plain]
        return labels, lower, upper

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
            if division.finer is None:
                continue
            per = _PARTS[self.axes]
            rest = part.copy()
            for j in range(self.axes - 1, -1, -1):
                parts_inside[inside, j] += (rest % per * multiplier)[inside]
                rest //= per
            multiplier = np.where(inside, multiplier * per, multiplier)
        finest = self.per_coordinate * multiplier
        first = keys.copy()
        for _, count in reversed(self.labels):
            first //= count
        index = np.zeros((n, self.axes), dtype=np.int64)
        for j in range(self.axes - 1, -1, -1):
            index[:, j] = (first % self.per_coordinate) * multiplier + parts_inside[:, j]
            first //= self.per_coordinate
        return finest, index, keys

    def _step(self, j: int, count: int) -> nw.Expr:
        """Index of a coordinate in a grid of so many cells."""
        import narwhals.stable.v2 as nw

        low, high = (float(bound[j]) for bound in self.space.bounds)
        index = ((nw.col(coordinate(j)) - low) * (count / (high - low))).floor()
        return nw.when(index < count).then(index).otherwise(nw.lit(float(count - 1))).cast(nw.Int64)

    def _part(self, division: _Division) -> nw.Expr:
        import narwhals.stable.v2 as nw

        assert division.finer is not None
        per = _PARTS[self.axes]
        part = nw.lit(0)
        for j in range(self.axes):
            part = part * per + self._step(j, division.finer) % per
        return part


def first_partition(space: Space, tests: WrittenTests) -> Partition:
    """Lay a grid over the space; coordinates of a simplex sum to one, so its last needs no axis."""
    axes = space.dimension - 1 if isinstance(space, Simplex) else space.dimension
    per_coordinate = max(2, int(round(_FIRST_CELLS ** (1 / axes) - 1e-9))) if axes <= 12 else 1
    demands = [block.demand for block in tests.blocks if block.demand is not None]
    return Partition(space, axes, per_coordinate, tests.labels, demands)
