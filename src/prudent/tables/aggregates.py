"""Cells of a table: weights, mean forecasts, mean tests and the exact linear term, from sums in the engine.

Worlds that are constant on cells have the same moments on all rows as on the
cells (docs/theory.md, section 6, aggregation); the linear term ``sum w B . v``
is summed up row by row, so nothing is lost there. Forecasts are measured from
the lower corner of the space, so that a far-away origin costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.guarantees.written import WrittenTests, coordinate
from prudent.tables.engine import collect, numbers
from prudent.tables.partition import LEFT_OUT, REFUSED, UNCLEAR, Partition
from prudent.tables.rows import Rows, require_total

__all__ = ["CellSums", "gather_cells", "weighted"]


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over the rows of every cell, not yet divided by the total weight.

    Attributes
    ----------
    keys : array of shape (cells,)
    counts : array of shape (cells,)
    weights : array of shape (cells,)
    distances : array of shape (cells, d)
        Sums of ``w x``, where ``x = v - corner``.
    corner : array of shape (d,)
        The lower corner of the space.
    values : dict
        Sums of ``w f`` for every number ``f`` of the tests that is not a coordinate.
    products : dict
        Sums of ``w f x``, shape ``(cells, d)``, for every number of the tests; of a coordinate, its own distance.
    played : dict
        Sums of ``w pi_a`` for every column of probabilities that the rows have.
    n_left_out, n_refused : int
        Rows in no cell.
    rows : Rows
        As they had to be read.
    ranges : array of shape (cells, 2) or None
        Least and largest forecast, where the grid is aligned with cuts.
    """

    keys: IntArray
    counts: IntArray
    weights: FloatArray
    distances: FloatArray
    corner: FloatArray
    values: dict[str, FloatArray] = field(default_factory=dict)
    products: dict[str, FloatArray] = field(default_factory=dict)
    played: dict[str, FloatArray] = field(default_factory=dict)
    n_left_out: int = 0
    n_refused: int = 0
    rows: Rows | None = None
    ranges: FloatArray | None = None

    def with_parts(self, parts: CellSums, parents: IntArray) -> CellSums:
        """Replace cells by their parts."""
        kept = ~np.isin(self.keys, parents)

        def joined(mine: Any, theirs: Any) -> Any:
            return np.concatenate([mine[kept], theirs])

        return CellSums(
            joined(self.keys, parts.keys),
            joined(self.counts, parts.counts),
            joined(self.weights, parts.weights),
            joined(self.distances, parts.distances),
            self.corner,
            {name: joined(column, parts.values[name]) for name, column in self.values.items()},
            {name: joined(column, parts.products[name]) for name, column in self.products.items()},
            {name: joined(column, parts.played[name]) for name, column in self.played.items()},
            self.n_left_out,
            self.n_refused,
            self.rows,
        )

    def mean_numbers(self, tests: WrittenTests, part: slice = slice(None)) -> dict[str, FloatArray]:
        """Means over each cell (or some) of the numbers that tests are made of."""
        means = self.corner + self.distances / self.weights[:, None]
        found = {coordinate(j): mean for j, mean in enumerate(means.T)}
        found |= {name: sums / self.weights for name, sums in self.values.items()}
        return {name: found[name][part] for name in tests.numbers}

    def linear_terms(self, tests: WrittenTests, labels: IntArray) -> FloatArray:
        """``sum w B_j(v) . (v - corner)`` over the rows of every cell, for every moment, ``(cells, moments)``."""
        n = len(self.keys)
        zero = {name: np.zeros(n) for name in tests.numbers}
        constant = tests.assemble(labels, zero)
        total = constant.row_moments(self.distances)
        for name in tests.numbers:
            unit = tests.assemble(labels, {**zero, name: np.ones(n)})
            product = self.products[name]
            if name in self._corners:  # a coordinate is its distance plus the corner
                product = product + self._corners[name] * self.distances
            total += unit.row_moments(product) - constant.row_moments(product)
        return total

    @property
    def _corners(self) -> dict[str, float]:
        return {coordinate(j): low for j, low in enumerate(self.corner.tolist())}

    @property
    def total_weight(self) -> float:
        """Sum of all weights."""
        return fsum(self.weights)


def weighted(rows: Rows, expression: Any) -> Any:
    """Multiply by the weight, if there is one."""
    import narwhals.stable.v2 as nw

    return expression * nw.col("w") if rows.weighted else expression


def gather_cells(
    rows: Rows,
    tests: WrittenTests,
    partition: Partition,
    restrict: IntArray | None = None,
    doing: str = "gathering",
    *,
    whole: bool = True,
) -> CellSums:
    """Sum up cells in one query; with ``restrict`` only some: parts of these, or, not ``whole``, just these."""
    import narwhals.stable.v2 as nw

    d = rows.space.dimension
    extra = {name: number for name, number in tests.numbers.items() if name not in rows.coordinates}
    frame = partition.with_key(rows, restrict, whole=whole)
    if extra:
        frame = frame.with_columns(*(number.alias(f"f_{name}") for name, number in extra.items()))
    corner = rows.space.bounds[0]
    distance = {
        coordinate(j): nw.col(coordinate(j)) - low if low else nw.col(coordinate(j))
        for j, low in enumerate(corner.tolist())
    }
    sums = {}
    if rows.weighted:
        sums["w"] = nw.col("w")
    for name, expression in distance.items():
        sums[name] = weighted(rows, expression)
    for name in extra:
        sums[f"s_{name}"] = weighted(rows, nw.col(f"f_{name}"))
    for name in rows.played:
        sums[f"a_{name}"] = weighted(rows, nw.col(name))
    pairs: dict[tuple[str, int], str] = {}
    for name in tests.numbers:
        factor = nw.col(f"f_{name}") if name in extra else distance[name]
        for j in range(d):
            same = (coordinate(j), rows.coordinates.index(name)) if name in rows.coordinates else None
            if same in pairs:
                pairs[name, j] = pairs[same]
                continue
            pairs[name, j] = f"p_{name}_{j}"
            sums[pairs[name, j]] = weighted(rows, factor * distance[coordinate(j)])
    totals = [nw.col(f"t_{name}").sum() for name in sums]
    ranged = [nw.col(coordinate(0)).alias("x")] if partition.aligned and restrict is None else []
    if ranged:
        totals += [nw.col("x").min().alias("least"), nw.col("x").max().alias("most")]
    frame = frame.select(nw.col("key"), *ranged, *(product.alias(f"t_{name}") for name, product in sums.items()))
    found = collect(frame.group_by("key").agg(nw.len().alias("rows"), *totals), doing)
    keys = np.asarray(found["key"], dtype=np.int64)
    counts = np.asarray(found["rows"], dtype=np.int64)
    if (keys == UNCLEAR).any():
        return gather_cells(rows.carefully(), tests, partition, restrict, doing, whole=whole)
    refused, left_out = int(counts[keys == REFUSED].sum()), int(counts[keys == LEFT_OUT].sum())
    if refused:
        rows.refuse(tests)
    inside = np.flatnonzero(keys >= 0)
    inside = inside[np.argsort(keys[inside])]
    column = {name: numbers(found[f"t_{name}"])[inside] for name in sums}
    weights = column["w"] if rows.weighted else counts[inside].astype(np.float64)
    if restrict is None and not inside.size:
        raise InputError("the table has no row that takes part: it is empty, or all weights are zero or missing.")
    if restrict is None:
        require_total(fsum(weights))
    return CellSums(
        keys[inside],
        counts[inside],
        weights,
        np.stack([column[name] for name in distance], axis=1),
        corner,
        {name: column[f"s_{name}"] for name in extra},
        {name: np.stack([column[pairs[name, j]] for j in range(d)], axis=1) for name in tests.numbers},
        {name: column[f"a_{name}"] for name in rows.played},
        left_out,
        refused,
        rows,
        np.stack([numbers(found[name])[inside] for name in ("least", "most")], axis=1) if ranged else None,
    )
