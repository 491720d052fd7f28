"""Cells of a lazy table: worlds that are constant on them, and what the tests are there (docs/theory.md, section 6).

Worlds that are constant on cells have the same moments on all rows as on the cells; the linear term ``sum w B . v`` is
summed up row by row in the engine, so nothing is lost there. Forecasts are measured from the lower corner of the space,
so that a far-away origin costs no digits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import fsum, prod
from typing import Any

import numpy as np

from prudent.arrays import EPSILON, Expr, FloatArray, Frame, IntArray, frozen, nw, where
from prudent.cases.engine_rows import SNAPPED, Rows, kinds_of, require_total, sums_by_key
from prudent.cases.memory_rows import Ambiguity
from prudent.guarantees import Guarantee
from prudent.guarantees.engine_tests import EngineLabel, EngineTests, coordinate, engine_tests, joined, split
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import Slack, SlackSet
from prudent.spaces import Space

_FIRST_CELLS = 4096
_FIRST_CELLS_OF_ONE = 2048  # along one coordinate: enough for the tolerance, and their sums stay in the fastest memory
_PARTS = 64  # of a cell that is divided; at least two per coordinate
_MOST_DIVIDED = 8  # coordinates along which cells are divided
_LARGEST_KEY = 2**62


@frozen
class Partition:
    """A rule that numbers cells; rows it does not know about never leave their engine.

    Attributes
    ----------
    space : Box or Simplex
    tests : EngineTests
    labels : tuple of EngineLabel
        What the cells must tell apart: the labels of the tests, then further ones.
    divisions : tuple of arrays
        Keys of cells that are divided, each time by the next finer grid.
    """

    space: Space
    tests: EngineTests
    labels: tuple[EngineLabel, ...]
    divisions: tuple[IntArray, ...] = ()

    @property
    def axes(self) -> int:
        """Coordinates along which the first grid has cells: those of a simplex sum to one, so its last needs none."""
        return self.space.free_dimension

    @property
    def per_coordinate(self) -> int:
        """Cells of the first grid along each of them."""
        first = _FIRST_CELLS_OF_ONE if self.axes == 1 else _FIRST_CELLS
        return max(2, round(first ** (1 / self.axes) - 1e-9)) if self.axes <= 12 else 1

    @property
    def _counts(self) -> list[int]:
        return [self.per_coordinate] * self.axes + [label.n_labels for label in self.labels]

    @property
    def _parts(self) -> list[int]:
        """Parts of a cell that is divided, along each of the first coordinates."""
        return [max(2, int(_PARTS ** (1 / self.axes) + 1e-9))] * min(self.axes, _MOST_DIVIDED)

    def _end(self, divisions: int) -> int:
        """All keys are below this number after so many divisions, and those of further parts are not."""
        return prod(self._counts) * (1 + prod(self._parts)) ** divisions

    def with_key(self, rows: Rows, keys: IntArray | None = None, *, divided_last: bool = False) -> Frame:
        """Add the column ``key``; of all rows, of those of some cells, or of those in cells that were divided last."""
        frame, column = rows.frame, nw.col("key")
        digits = [self._step(j, self.per_coordinate) for j in range(self.axes)]
        key = joined([*digits, *(label.expression for label in self.labels)], self._counts)
        frame = frame.with_columns(kinds_of(self.tests, key).cast(nw.Int64).alias("key"))
        for number, divided in enumerate(self.divisions):
            inside = column.is_in(divided.tolist())
            if divided_last and number == len(self.divisions) - 1:
                frame = frame.filter(inside)
            per, parts = self._parts[0], self._parts
            finer = self.per_coordinate * per ** (number + 1)
            part = joined([self._step(j, finer) % per for j in range(len(parts))], parts)
            moved = column * prod(parts) + part + self._end(number)
            frame = frame.with_columns(where(inside, moved, column).cast(nw.Int64).alias("key"))
        return frame if keys is None else frame.filter(column.is_in(keys.tolist()))

    def divided(self, keys: IntArray) -> Partition | None:
        """Divide some cells by a finer grid; None where keys would leave whole numbers of 64 bits."""
        if self._end(len(self.divisions) + 1) >= _LARGEST_KEY:
            return None
        return replace(self, divisions=(*self.divisions, keys))

    def decode(self, keys: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Labels of the tests ``(cells, labels)`` and bounds of the forecasts ``(cells, d)`` of cells."""
        inside, parts = [], self._parts
        for number in reversed(range(len(self.divisions))):
            end = self._end(number)
            before, part = np.divmod(keys - end, prod(parts))
            inside.append((keys >= end, part))
            keys = np.where(keys >= end, before, keys)
        digits, (low, high) = split(keys, self._counts), self.space.bounds
        # Coordinates without cells are one cell from bound to bound.
        index, count = np.zeros((len(keys), low.size), dtype=np.int64), np.ones((len(keys), low.size), dtype=np.int64)
        index[:, : self.axes], labels = digits[:, : self.axes], digits[:, self.axes :]
        count[:, : self.axes] = self.per_coordinate
        divided = slice(len(parts))
        for own, part in reversed(inside):
            index[own, divided] = index[own, divided] * parts[0] + split(part[own], parts)
            count[own, divided] *= parts[0]
        width = (high - low) / count
        # A little wider, since rows find their cells in floats.
        slop = 16 * EPSILON * (np.abs(low) + np.abs(high) + (high - low))
        lower, upper = np.maximum(low, low + width * index - slop), np.minimum(high, low + width * (index + 1) + slop)
        for place, label in enumerate(self.labels):
            if label.cuts is not None:
                edges = np.array([-np.inf, *label.cuts, np.inf])
                lower[:, 0] = np.maximum(lower[:, 0], edges[labels[:, place]])
                upper[:, 0] = np.minimum(upper[:, 0], edges[labels[:, place] + 1])
        return labels[:, : len(self.tests.labels)], lower, upper

    def _step(self, j: int, count: int) -> Expr:
        """Index of a coordinate in a grid of so many cells."""
        low, high = (float(bound[j]) for bound in self.space.bounds)
        # A hair less than count cells, so that the upper bound is in the last of them without a comparison.
        scale = count * (1 - 8 * EPSILON) / (high - low)
        return (self.distance(j) * scale).floor().cast(nw.Int64)

    def distance(self, j: int) -> Expr:
        """Write a coordinate from the lower corner of the space."""
        low = float(self.space.bounds[0][j])
        return nw.col(coordinate(j)) - low if low else nw.col(coordinate(j))


@frozen
class TableCells:
    """Cells of a table with sums over their rows.

    Attributes
    ----------
    rows : Rows
        As they had to be read.
    tests : EngineTests
    partition : Partition
    keys, counts : arrays of shape (cells,)
    sums : dict of str to array of shape (cells,)
        Of the weights ``w``, of ``w x`` by coordinate, where ``x = v - corner``, of ``w f`` for every other number
        ``f`` of the tests, of products of ``x`` with both, and of the probabilities that policies play.
    """

    rows: Rows
    tests: EngineTests
    partition: Partition
    keys: IntArray
    counts: IntArray
    sums: dict[str, FloatArray]

    def ambiguity(self, slack: SlackSet, allowance: Slack, plug_in: FloatArray | None) -> Ambiguity:
        """The set of worlds that are constant on cells, with moments exact over all rows."""
        tests, means, total = self.mean_tests, self.means, self.total_weight
        # What the moments of all rows have beside those of the means; where tests or forecasts are constant on a cell
        # the two sums are one, and differ by the rounding of its rows only.
        shifts = self._linear_terms - tests.row_moments(self.weights[:, None] * (means - self._corner))
        sizes = tests.with_rows(np.abs(tests.table)).row_moments(self._distances)
        shifts[np.abs(shifts) <= (self.counts + 64)[:, None] * EPSILON * sizes] = 0.0
        moved = SlackSet(slack.center + shifts.sum(axis=0) / total, slack.radius, slack.groups)
        return Ambiguity(
            self.rows.space,
            means,
            self.weights / total,
            tests,
            moved,
            plug_in_multipliers=plug_in,
            allowance=allowance,
            merged=2 * int(self.counts.max()),  # in the mean forecasts, and in the centre
        )

    @property
    def weights(self) -> FloatArray:
        """Sums of weights."""
        return self.sums["w"]

    @property
    def total_weight(self) -> float:
        """Sum of all weights."""
        return fsum(self.weights)

    @property
    def means(self) -> FloatArray:
        """Mean forecasts, ``(cells, d)``."""
        return np.clip(self._means, *self.rows.space.bounds)

    @property
    def mean_tests(self) -> EvaluatedTests:
        """Means of the tests."""
        found = {name: self.sums[name] / self.weights for name in self.tests.numbers}
        return self.tests.assemble(self.labels, found | dict(zip(self.rows.coordinates, self._means.T, strict=True)))

    def mixtures(self, columns: list[str]) -> FloatArray:
        """Mean probabilities that a policy plays, ``(cells, m)``; its columns of the rows are named."""
        played = np.stack([self.sums[name] for name in columns], axis=1)
        return played / played.sum(axis=1, keepdims=True)

    @property
    def labels(self) -> IntArray:
        """Labels of the tests, ``(cells, labels)``."""
        return self.partition.decode(self.keys)[0]

    @property
    def n_snapped(self) -> int:
        """Rows that were moved onto the space."""
        return int(self.sums["snapped"].sum()) if self.rows.careful else 0

    @property
    def linear_term(self) -> FloatArray:
        """``E[B_j(v) . (v - corner)]`` over all rows, for every moment; the corner is the lower one of the space."""
        return self._linear_terms.sum(axis=0) / self.total_weight

    @property
    def _corner(self) -> FloatArray:
        return self.rows.space.bounds[0]

    @property
    def _distances(self) -> FloatArray:
        return np.stack([self.sums[name] for name in self.rows.coordinates], axis=1)

    @property
    def _means(self) -> FloatArray:
        return self._corner + self._distances / self.weights[:, None]

    @cached_property
    def _linear_terms(self) -> FloatArray:
        """``sum w B_j(v) . (v - corner)`` over the rows of every cell, for every moment, ``(cells, moments)``."""
        names, distances = self.rows.coordinates, self._distances
        total = np.zeros((len(self.keys), self.tests.stated.layout.n_moments))
        for j, name in enumerate(names):
            # Given the labels tests are affine in the numbers, of which these are means with the distances as weights.
            own = distances * (np.arange(len(names)) == j)
            weights = np.where(distances[:, j] > 0, distances[:, j], 1.0)
            means = {number: self.sums[_product(number, name)] / weights for number in self.tests.numbers}
            for i in range(len(names)):  # a coordinate is its distance plus the corner
                if names[i] in means:
                    means[names[i]] = means[names[i]] + self._corner[i]
            total += self.tests.assemble(self.labels, means).row_moments(own)
        return total

    def finer(self) -> TableCells | None:
        """Divide all cells of several rows by a finer grid; None where there are none, or keys have no room."""
        several = self.keys[self.counts > 1]
        return self.divided(several) if several.size else None

    def divided(self, keys: IntArray) -> TableCells | None:
        """Divide some cells by a finer grid, by one query over their rows; None where keys have no room."""
        partition = self.partition.divided(keys)
        if partition is None:
            return None
        parts, kept = _gathered(self.rows, partition), ~np.isin(self.keys, keys)

        def beside(mine: Any, theirs: Any) -> Any:
            return np.concatenate([mine[kept], theirs])

        sums = {name: beside(self.sums[name], column) for name, column in parts.sums.items()}
        return replace(parts, keys=beside(self.keys, parts.keys), counts=beside(self.counts, parts.counts), sums=sums)


def gather_table(rows: Rows, guarantee: Guarantee, apart: tuple[EngineLabel, ...] = ()) -> TableCells:
    """Gather the rows of a table into cells for a resolved guarantee, in one pass.

    Cells tell the labels of its tests apart, and further ones.
    """
    tests = engine_tests(guarantee, rows.space)
    cells = _gathered(rows, Partition(rows.space, tests, (*tests.labels, *apart)))
    require_total(cells.total_weight)
    return cells


def _product(one: str, other: str) -> str:
    """Name the sum of a product; of two coordinates it is the same both ways."""
    return "_".join(sorted((one, other)))


def _gathered(rows: Rows, partition: Partition) -> TableCells:
    """Sum up cells in one query: all, or the parts of those that the partition divided last."""
    tests, divided = partition.tests, bool(partition.divisions)
    factors = {name: partition.distance(j) for j, name in enumerate(rows.coordinates)}
    factors |= {name: number for name, number in tests.numbers.items() if name not in factors}
    sums = {name: nw.col(f"f_{name}") for name in factors} | {name: nw.col(name) for name in rows.played}
    for name in tests.numbers:
        sums |= {_product(name, other): sums[name] * sums[other] for other in rows.coordinates}
    sums = {name: rows.weigh(number).sum() for name, number in sums.items()}

    def query(rows: Rows) -> tuple[Frame, dict[str, Expr]]:
        frame = partition.with_key(rows, divided_last=divided)
        frame = frame.with_columns(*(factor.alias(f"f_{name}") for name, factor in factors.items()))
        snapped = {"snapped": where(nw.col("state") == SNAPPED, 1.0, 0.0).sum()} if rows.careful else {}
        return frame, sums | snapped

    found = sums_by_key(rows, tests, query, "dividing cells" if divided else "gathering rows into cells")
    return TableCells(found.rows, tests, partition, found.keys, found.counts, found.sums)
