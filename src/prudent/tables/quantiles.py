"""Quantile bins of a table: exactly those that the same rows have in memory."""

from __future__ import annotations

from math import fsum

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.base import And, Guarantee
from prudent.guarantees.cells import QuantileBins, UniformBins
from prudent.tables.aggregates import weighted
from prudent.tables.engine import collect, numbers
from prudent.tables.rows import Rows

__all__ = ["resolve_in_table"]

_PARTS = 4096
_FEW = 200_000


def resolve_in_table(guarantee: Guarantee, rows: Rows) -> Guarantee:
    """Fix everything that depends on the sample, by queries."""
    if isinstance(guarantee, And):
        return And(tuple(resolve_in_table(part, rows) for part in guarantee.parts))
    if isinstance(guarantee, QuantileBins):
        values, weights = _around_quantiles(rows, guarantee)
        return guarantee.resolve(values[:, None], weights, rows.space)
    if isinstance(guarantee, UniformBins):
        return guarantee.resolve(np.zeros((0, rows.space.dimension)), np.zeros(0), rows.space)
    guarantee.write(rows.space)  # refuses what an engine cannot evaluate
    return guarantee


def _around_quantiles(rows: Rows, bins: QuantileBins) -> tuple[FloatArray, FloatArray]:
    """Distinct forecasts near the quantiles with their weights; all others are lumped together in between.

    Zooms into the parts of a grid that hold a quantile until they have few rows, then reads their distinct values.
    """
    import narwhals.stable.v2 as nw

    bins.resolve(np.zeros((1, rows.space.dimension)), np.ones(1), rows.space)  # refuses more than one coordinate
    low, high = (float(bound[0]) for bound in rows.space.bounds)
    value = nw.col("v0")
    used = rows.carefully().used
    parts = _PARTS
    open_parts: list[int] | None = None
    lumps: list[tuple[float, float]] = []  # (position, weight) of rows that are in no open part
    while True:
        index = ((value - low) * (parts / (high - low))).floor()
        index = nw.when(index < parts).then(index).otherwise(nw.lit(float(parts - 1))).cast(nw.Int64)
        frame = used if open_parts is None else used.filter((index // _PARTS).is_in(open_parts))
        frame = frame.select(index.alias("part"), weighted(rows, nw.lit(1.0)).alias("w"), value.alias("v"))
        found = collect(
            frame.group_by("part").agg(nw.len().alias("rows"), nw.col("w").sum(), nw.col("v").min()),
            "finding quantiles",
        )
        order = np.argsort(found["part"])
        part, counts = np.asarray(found["part"], dtype=np.int64)[order], np.asarray(found["rows"])[order]
        weights, first = numbers(found["w"])[order], numbers(found["v"])[order]
        cumulative, position = _cumulative(lumps, first, weights)
        levels = cumulative[-1] * np.arange(1, bins.n_bins) / bins.n_bins
        hit = np.unique(np.minimum(np.searchsorted(cumulative, levels * (1 - 1e-12)), len(cumulative) - 1))
        also = np.unique(np.minimum(np.searchsorted(cumulative, levels * (1 + 1e-12)), len(cumulative) - 1))
        wanted = np.isin(position, np.concatenate([hit, also]))
        lumps += list(zip(first[~wanted].tolist(), weights[~wanted].tolist(), strict=True))
        open_parts = part[wanted].tolist()
        if counts[wanted].sum() <= _FEW or parts > 2**48:
            break
        parts *= _PARTS
    frame = used.filter(index.is_in(open_parts)).select(value.alias("v"), weighted(rows, nw.lit(1.0)).alias("w"))
    found = collect(frame.group_by("v").agg(nw.col("w").sum()), "reading values at quantiles")
    values = np.concatenate([np.array([lump[0] for lump in lumps]), numbers(found["v"])])
    return values, np.concatenate([np.array([lump[1] for lump in lumps]), numbers(found["w"])])


def _cumulative(
    lumps: list[tuple[float, float]], first: FloatArray, weights: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Cumulative weights of lumps and parts together, by position, and where each part stands among them."""
    where = np.concatenate([np.array([lump[0] for lump in lumps]), first])
    sizes = np.concatenate([np.array([lump[1] for lump in lumps]), weights])
    order = np.argsort(where, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    total = fsum(sizes)
    cumulative = np.cumsum(sizes[order])
    return cumulative * (total / cumulative[-1]), place[len(lumps) :]
