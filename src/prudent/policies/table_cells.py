"""Cells of a lazy table: worlds that are constant on them, and what the tests are there (docs/theory.md, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
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
        sums, tests = self.sums, self.tests.assemble(self.labels, self.sums.mean_numbers(self.tests))
        total = sums.total_weight
        # What the moments of all rows have beside those of the means; where tests or forecasts are constant on a cell
        # the two sums are one, and differ by the rounding of its rows only.
        means = self.means
        shifts = self._linear_terms - tests.row_moments(sums.weights[:, None] * (means - sums.corner))
        plain = tests if tests.scalar else tests.as_vector()
        sizes = replace(plain, values=np.abs(plain.values)).row_moments(sums.distances)
        shifts[np.abs(shifts) <= (sums.counts + 64)[:, None] * _EPSILON * sizes] = 0.0
        moved = SlackSet(slack.center + shifts.sum(axis=0) / total, slack.radius, slack.groups, slack.ball)
        return Ambiguity(
            self.rows.space,
            means,
            sums.weights / total,
            tests,
            moved,
            plug_in_multipliers=plug_in,
            allowance=allowance,
        )

    @property
    def means(self) -> FloatArray:
        """Mean forecasts, ``(cells, d)``."""
        means = self.sums.corner + self.sums.distances / self.sums.weights[:, None]
        return np.clip(means, *self.rows.space.bounds)

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
        """``E[B_j(v) . (v - corner)]`` over all rows, for every moment; the corner is the lower one of the space."""
        term: FloatArray = self._linear_terms.sum(axis=0) / self.sums.total_weight
        return term

    @cached_property
    def _linear_terms(self) -> FloatArray:
        return self.sums.linear_terms(self.tests, self.labels)

    def finer(self, times: int) -> TableCells | None:
        """Divide all cells of several rows by a finer grid, for the ``times``-th time; None where keys have no room."""
        several = self.sums.keys[self.sums.counts > 1]
        if not several.size:
            return None
        if self.partition.grid_divides:
            return self.divided(several) if self.partition.has_room() else None
        label, count = self.partition.parities(times)
        return self.divided(several, label, count) if self.partition.has_room(count) else None

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
