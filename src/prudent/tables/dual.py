"""The dual's concave part on all rows: ``sum w phi(s(v))`` by cell, computed in the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.written import WrittenTests, lookup
from prudent.tables.aggregates import weighted
from prudent.tables.engine import collect, numbers
from prudent.tables.partition import Partition
from prudent.tables.rows import Rows

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = [
    "corner_tests",
    "dual_sums",
    "first_least",
    "least_point",
    "least_score",
    "point_label",
    "tilt_expressions",
    "vertex_label",
]


def tilt_expressions(tests: WrittenTests, multipliers: FloatArray, dimension: int) -> list[nw.Expr]:
    """Write the tilt ``s(v)``, one expression per coordinate."""
    import narwhals.stable.v2 as nw

    tilts: list[nw.Expr | None] = [None] * dimension
    position = 0
    for block in tests.blocks:
        constant, added = block.coefficients()
        own = multipliers[position : position + constant.n_moments]
        position += constant.n_moments
        start = constant.tilts(own)
        slopes = [part.tilts(own) - start for part in added]
        for j in range(dimension):
            terms = [(start[:, j], None), *zip((slope[:, j] for slope in slopes), block.numbers.values(), strict=True)]
            for table, number in terms:
                if not table.any():
                    continue
                term = lookup(block.label, table)
                term = term if number is None else term * number
                tilts[j] = term if tilts[j] is None else tilts[j] + term
    return [nw.lit(0.0) if tilt is None else tilt for tilt in tilts]


def dual_sums(
    rows: Rows,
    tests: WrittenTests,
    partition: Partition,
    multipliers: FloatArray,
    phi: Callable[[list[nw.Expr]], nw.Expr],
    keys: IntArray | None,
) -> tuple[IntArray, FloatArray]:
    """Return cells and their ``sum w phi(s)``; of some cells, or of all. ``phi`` writes itself at a tilt."""
    import narwhals.stable.v2 as nw

    d = rows.space.dimension
    added, named = tests.as_columns()
    frame = partition.with_key(rows, keys)
    frame = frame.with_columns(*added) if added else frame
    tilts = tilt_expressions(named, multipliers, d)
    frame = frame.with_columns(*(tilt.alias(f"s{j}") for j, tilt in enumerate(tilts)))
    least = phi([nw.col(f"s{j}") for j in range(d)])
    frame = frame.select(nw.col("key"), weighted(rows, least).alias("phi"))
    found = collect(frame.group_by("key").agg(nw.col("phi").sum()), "certifying on all rows")
    found_keys = np.asarray(found["key"], dtype=np.int64)
    inside = np.flatnonzero(found_keys >= 0)
    inside = inside[np.argsort(found_keys[inside])]
    return found_keys[inside], numbers(found["phi"])[inside]


def least_score(tilts: list[nw.Expr], points: FloatArray, heights: FloatArray) -> nw.Expr:
    """Write ``min_j { heights_j + s . points_j }``."""
    import narwhals.stable.v2 as nw

    scores = _scores(tilts, points, heights)
    return nw.min_horizontal(*scores) if len(scores) > 1 else scores[0]


def vertex_label(tilts: list[nw.Expr], points: FloatArray, heights: FloatArray) -> nw.Expr:
    """Write which of several points is least for a row, the first of equals."""
    return first_least(_scores(tilts, points, heights))


def least_point(directions: list[nw.Expr], width: FloatArray | None) -> nw.Expr:
    """Write ``min_p p . x`` over a box of some width from the origin, or over the simplex where there is none."""
    import narwhals.stable.v2 as nw

    if width is None:
        return nw.min_horizontal(*directions)
    total: nw.Expr | None = None
    for direction, size in zip(directions, width.tolist(), strict=True):
        term = nw.min_horizontal(direction, nw.lit(0.0)) * size
        total = term if total is None else total + term
    return nw.lit(0.0) if total is None else total


def point_label(directions: list[nw.Expr], width: FloatArray | None, most_signs: int) -> tuple[nw.Expr, int]:
    """Write at which vertex of the space ``p . x`` is least, and say how many there are.

    In a box that is the sign of every coordinate; past ``most_signs`` coordinates the others are not looked at.
    """
    import narwhals.stable.v2 as nw

    if width is None:
        return first_least(directions), len(directions)
    label = nw.lit(0)
    for direction in directions[:most_signs]:
        label = label * 2 + nw.when(direction < 0.0).then(nw.lit(1)).otherwise(nw.lit(0))
    return label, 2 ** min(len(directions), most_signs)


def first_least(scores: list[nw.Expr]) -> nw.Expr:
    """Write which of several scores is least, the first of equals."""
    import narwhals.stable.v2 as nw

    least = nw.min_horizontal(*scores)
    label = nw.lit(len(scores) - 1)
    for j in range(len(scores) - 2, -1, -1):
        label = nw.when(scores[j] <= least).then(nw.lit(j)).otherwise(label)
    return label


def _scores(tilts: list[nw.Expr], points: FloatArray, heights: FloatArray) -> list[nw.Expr]:
    import narwhals.stable.v2 as nw

    scores = []
    for point, height in zip(points.tolist(), heights.tolist(), strict=True):
        score = nw.lit(height)
        for tilt, factor in zip(tilts, point, strict=True):
            if factor:
                score = score + tilt * factor
        scores.append(score)
    return scores


def corner_tests(tests: WrittenTests, labels: IntArray, points: FloatArray) -> EvaluatedTests:
    """Evaluate tests whose numbers are all coordinates, at chosen forecasts."""
    return tests.assemble(labels, {name: points[:, int(name[1:])] for name in tests.numbers})
