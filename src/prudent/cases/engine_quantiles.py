"""Quantile bins of a table: exactly those that the same rows have in memory."""

from math import fsum

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.arrays.lazy_narwhals import nw, where
from prudent.cases.engine import collect, numbers
from prudent.cases.engine_rows import Rows
from prudent.guarantees import Bins
from prudent.guarantees.base import And, Guarantee, symbolic_tests

_PARTS = 4096


def resolve_in_table(guarantee: Guarantee, rows: Rows) -> Guarantee:
    """Fix everything that depends on the sample, by queries."""
    if isinstance(guarantee, And):
        return And(tuple(resolve_in_table(part, rows) for part in guarantee.parts))
    if isinstance(guarantee, Bins) and guarantee.of_sample:
        values, weights = _around_quantiles(rows, guarantee)
        return guarantee.resolve(values[:, None], weights, rows.space)
    symbolic_tests(guarantee, rows.space)  # refuses what an engine cannot evaluate
    return guarantee.resolve(np.zeros((0, rows.space.dimension)), np.zeros(0), rows.space)


def _around_quantiles(rows: Rows, bins: Bins) -> tuple[FloatArray, FloatArray]:
    """Distinct forecasts near the quantiles with their weights; all others are lumped together in between.

    Zooms into the parts of a grid that hold a quantile until they have few rows, then reads their distinct values.
    """
    bins.resolve(np.zeros((1, rows.space.dimension)), np.ones(1), rows.space)  # refuses more than one coordinate
    low, high = rows.space.interval
    value = nw.col("v0")
    used = rows.carefully().used
    parts = _PARTS
    open_parts: list[int] | None = None
    lumps = np.zeros((2, 0))  # positions and weights of rows that are in no open part
    while True:
        index = ((value - low) * (parts / (high - low))).floor()
        index = where(index < parts, index, float(parts - 1)).cast(nw.Int64)
        frame = used if open_parts is None else used.filter((index // _PARTS).is_in(open_parts))
        frame = frame.select(index.alias("part"), rows.weigh(nw.lit(1.0)).alias("w"), value.alias("v"))
        found = collect(
            frame.group_by("part").agg(nw.len().alias("rows"), nw.col("w").sum(), nw.col("v").min()),
            "finding quantiles",
        )
        order = np.argsort(found["part"])
        part, counts = np.asarray(found["part"], dtype=np.int64)[order], np.asarray(found["rows"])[order]
        weights, first = numbers(found["w"])[order], numbers(found["v"])[order]
        cumulative, position = _cumulative(lumps, np.stack([first, weights]))
        levels = bins.levels(cumulative[-1])
        around = np.concatenate([levels * (1 - 1e-12), levels * (1 + 1e-12)])
        wanted = np.isin(position, np.minimum(np.searchsorted(cumulative, around), len(cumulative) - 1))
        lumps = np.concatenate([lumps, [first[~wanted], weights[~wanted]]], axis=1)
        open_parts = part[wanted].tolist()
        if counts[wanted].sum() <= 200_000 or parts > 2**48:
            break
        parts *= _PARTS
    frame = used.filter(index.is_in(open_parts)).select(value.alias("v"), rows.weigh(nw.lit(1.0)).alias("w"))
    found = collect(frame.group_by("v").agg(nw.col("w").sum()), "reading values at quantiles")
    values, weights = np.concatenate([lumps, [numbers(found["v"]), numbers(found["w"])]], axis=1)
    return values, weights


def _cumulative(lumps: FloatArray, parts: FloatArray) -> tuple[FloatArray, IntArray]:
    """Cumulative weights of lumps and parts together, by position, and where each part stands among them."""
    where, sizes = np.concatenate([lumps, parts], axis=1)
    order = np.argsort(where, kind="stable")
    cumulative = np.cumsum(sizes[order])
    return cumulative * (fsum(sizes) / cumulative[-1]), np.argsort(order)[lumps.shape[1] :]
