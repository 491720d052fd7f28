"""The dual's concave part on all rows: ``sum w phi(s(v))`` by cell, computed in the engine."""

from __future__ import annotations

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

__all__ = ["dual_sums", "tilt_expressions", "vertex_label"]


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
    corners: FloatArray,
    heights: FloatArray,
    keys: IntArray | None,
) -> tuple[IntArray, FloatArray]:
    """Return cells and their ``sum w min_j { heights_j + s . corners_j }``; of some cells, or of all."""
    import narwhals.stable.v2 as nw

    d = rows.space.dimension
    frame = partition.with_key(rows, keys)
    tilts = tilt_expressions(tests, multipliers, d)
    frame = frame.with_columns(*(tilt.alias(f"s{j}") for j, tilt in enumerate(tilts)))
    least = nw.min_horizontal(*_scores(corners, heights)) if len(heights) > 1 else _scores(corners, heights)[0]
    frame = frame.select(nw.col("key"), weighted(rows, least).alias("phi"))
    found = collect(frame.group_by("key").agg(nw.col("phi").sum()), "certifying on all rows")
    found_keys = np.asarray(found["key"], dtype=np.int64)
    inside = np.flatnonzero(found_keys >= 0)
    inside = inside[np.argsort(found_keys[inside])]
    return found_keys[inside], numbers(found["phi"])[inside]


def vertex_label(tests: WrittenTests, multipliers: FloatArray, corners: FloatArray, heights: FloatArray) -> nw.Expr:
    """Write which vertex is least for a row, the first of equals."""
    import narwhals.stable.v2 as nw

    d = corners.shape[1]
    tilts = tilt_expressions(tests, multipliers, d)
    scores = _scores(corners, heights, tilts)
    least = nw.min_horizontal(*scores)
    label = nw.lit(len(scores) - 1)
    for j in range(len(scores) - 2, -1, -1):
        label = nw.when(scores[j] <= least).then(nw.lit(j)).otherwise(label)
    return label


def _scores(corners: FloatArray, heights: FloatArray, tilts: list[nw.Expr] | None = None) -> list[nw.Expr]:
    import narwhals.stable.v2 as nw

    columns = [nw.col(f"s{j}") for j in range(corners.shape[1])] if tilts is None else tilts
    scores = []
    for corner, height in zip(corners.tolist(), heights.tolist(), strict=True):
        score = nw.lit(height)
        for column, factor in zip(columns, corner, strict=True):
            if factor:
                score = score + column * factor
        scores.append(score)
    return scores


def corner_tests(tests: WrittenTests, labels: IntArray, points: FloatArray) -> EvaluatedTests:
    """Evaluate tests whose numbers are all coordinates, at chosen forecasts."""
    return tests.assemble(labels, {name: points[:, int(name[1:])] for name in tests.numbers})
