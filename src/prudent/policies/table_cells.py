"""Cells of a lazy table: worlds that are constant on them, and what the tests are there (docs/theory.md, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.ambiguity import Ambiguity, Slack, SlackSet
from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.written import Block, WrittenTests
from prudent.tables.aggregates import CellSums, gather_cells
from prudent.tables.partition import Partition, first_partition
from prudent.tables.rows import Rows

__all__ = ["TableCells", "gather_table"]

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class TableCells:
    """Cells of a table with what they are made of."""

    rows: Rows
    tests: WrittenTests
    partition: Partition
    sums: CellSums

    def ambiguity(self, slack: SlackSet, allowance: Slack, plug_in: FloatArray | None) -> Ambiguity:
        """The set of worlds that are constant on cells, with moments exact over all rows."""
        sums, space = self.sums, self.rows.space
        total = sums.total_weight
        weights = sums.weights / total
        forecasts = self.means
        tests = self.tests.assemble(self.labels, sums.mean_numbers(self.tests))
        shift = self.linear_term - tests.moments(forecasts, weights)
        # Where tests are constant on cells the two sums are one, and differ by rounding only.
        reach = (np.abs(tests.as_vector().values) @ np.abs(space.bounds).max(axis=0)).max(axis=0, initial=0.0)
        shift[np.abs(shift) <= 64 * _EPSILON * np.log2(sums.counts.sum() + 2) * reach] = 0.0
        moved = SlackSet(slack.center + shift, slack.radius, slack.groups, slack.ball)
        return Ambiguity(space, forecasts, weights, tests, moved, plug_in_multipliers=plug_in, allowance=allowance)

    @property
    def means(self) -> FloatArray:
        """Mean forecasts, ``(cells, d)``."""
        return np.clip(self.sums.forecasts / self.sums.weights[:, None], *self.rows.space.bounds)

    @property
    def names(self) -> EvaluatedTests:
        """Names, scales and bounds of the tests, without rows."""
        return self.tests.assemble(self.labels[:1], self.sums.mean_numbers(self.tests, slice(1))).without_rows()

    def mixtures(self, columns: list[str]) -> FloatArray:
        """Mean probabilities that a policy plays, ``(cells, m)``; its columns of the rows are named."""
        played = np.stack([self.sums.played[name] for name in columns], axis=1)
        return played / played.sum(axis=1, keepdims=True)

    @property
    def labels(self) -> IntArray:
        """Labels of the tests, ``(cells, labels)``."""
        return self.partition.decode(self.sums.keys)[0]

    @property
    def n_snapped(self) -> int:
        """Rows that were moved onto the space."""
        return int(self.sums.counts[self.partition.moved(self.sums.keys)].sum())

    @property
    def linear_term(self) -> FloatArray:
        """``E[B_j(v) . v]`` over all rows, for every moment."""
        return self.sums.linear_term(self.tests, self.labels) / self.sums.total_weight

    def divided(self, keys: IntArray, label: Any = None, n_labels: int = 0) -> TableCells:
        """Divide some cells, by one query over their rows."""
        partition = self.partition.divided(keys, label, n_labels)
        parts = gather_cells(self.rows, self.tests, partition, keys, "dividing cells")
        return replace(self, partition=partition, sums=self.sums.with_parts(parts, keys))


def gather_table(rows: Rows, guarantee: Guarantee, apart: tuple[Block, ...] = ()) -> TableCells:
    """Gather the rows of a table into cells for a resolved guarantee: one pass, or one more where rows touch a cut.

    Cells tell the labels of its tests apart, and those of further blocks.
    """
    tests = guarantee.write(rows.space)
    partition = first_partition(rows.space, tests, apart)
    sums = gather_cells(rows, tests, partition, doing="gathering rows into cells")
    rows = sums.rows or rows
    if sums.ranges is not None:
        crossing = partition.crossing(sums.keys, *sums.ranges.T)
        if crossing.size:
            partition, keys = partition.parted(crossing)
            parts = gather_cells(rows, tests, partition, keys, "telling cuts apart", whole=False)
            sums = sums.with_parts(parts, crossing)
    return TableCells(rows, tests, partition, sums)
