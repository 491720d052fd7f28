"""Many rows: solve on clusters of rows, split clusters that lose, certify on all rows (docs/theory.md, section 6).

A world that is constant on clusters has the same moments on all rows as on the clusters, so its value is an upper
bound for all rows. The dual of the clusters is never below the dual of the rows (``phi`` is concave), and equal to it
where all rows of a cluster share a linear piece of ``phi``. The interior point is warm-started on the split clusters
and only ever driven as far as the clusters are worth, so most of the work is done on a small part of the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.arrays.chunks import over_rows
from prudent.cases.ambiguity import Ambiguity
from prudent.cases.bounded_cache import BoundedCache
from prudent.solvers.game import Game
from prudent.solvers.interior_point import InteriorPoint, Iterate, interior_point
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.solution import SolverOptions
from prudent.solvers.vertices import VertexTable

# What clusters and interior point may lose together, as a share of the utility range; less than what is called optimal.
_GOAL = 7e-7
_FIRST_TARGET = 2e-3
_DIVIDED_LOSS = 0.99  # parts with this share of the loss are divided
_SUITED = 0.25  # a vertex suits a row if it loses at most this share of the mean loss
_LEAST_RESTART = 5e-5
_SAMPLED_PER_CLUSTER = 16
_BUCKETS = 1 << 16
_WORK_FOR_THREADS = 1 << 18


class Refinement(Protocol):
    """Rows in parts, in memory or in an engine, that are solved on their parts."""

    def solve(self) -> FloatArray | None:
        """Solve on the parts; return what each loses against its rows, or None where nothing is left to do."""
        ...

    def divide(self, parts: IntArray) -> bool:
        """Divide some parts; False where that would not help."""
        ...


def refine(refinement: Refinement, most_rounds: int) -> None:
    """Solve on parts of the rows and divide those that together lose nearly all, until little is lost."""
    for left in reversed(range(most_rounds)):
        loss = refinement.solve()
        if loss is None or left == 0:
            return
        order = np.argsort(-loss)
        some = int(np.searchsorted(np.cumsum(loss[order]), _DIVIDED_LOSS * float(loss.sum()))) + 1
        if not refinement.divide(order[:some]):
            return


class ClusteredSolutions:
    """Solutions on clusters of rows in memory, from one round to the next.

    Attributes
    ----------
    clusters : RowClusters
    found : InteriorPoint or None
        A solution that loses well below 1e-6 of the utility range on all rows.
    """

    def __init__(
        self, game: Game, system: MomentSystem, rows: Ambiguity, table: VertexTable, options: SolverOptions
    ) -> None:
        self._game, self._system, self._table = game, system, table
        self.clusters = RowClusters.of_close_forecasts(game, system, rows, options)
        self.found: InteriorPoint | None = None
        self._start: Iterate | None = None
        self._target = _FIRST_TARGET

    def solve(self) -> FloatArray | None:
        """Solve as far as the clusters are worth; None once that is enough, and where clusters do not help."""
        game, system, target, start = self.clusters.game, self.clusters.system, self._target, self._start
        proposal = interior_point(game, system, self.clusters.forecasts, target=target, start=start)
        stuck = proposal.merit > 10 * target or (proposal.merit > target and proposal.best is start)
        if stuck and start is not None:  # the warm start misled it
            proposal = interior_point(game, system, self.clusters.forecasts, target=target)
        if proposal.merit > 10 * target:
            return None
        tilts, cluster_tilts = self._system.tilts(proposal.multipliers), system.tilts(proposal.multipliers)
        if game.n_actions == 1:  # its rewards act like a tilt; with several, the table knows them
            tilts, cluster_tilts = tilts + self._game.rewards[:, 0].T, cluster_tilts + game.rewards[:, 0].T
        least = self._table.least(tilts)
        of_rows = np.bincount(self.clusters.index, weights=self._system.weights * least, minlength=self.clusters.count)
        loss: FloatArray = system.weights * self._table.least(cluster_tilts) - of_rows
        self._total, self._start, self._at_rows = float(loss.sum()), proposal.best, (tilts, least)
        if self._total + proposal.merit <= _GOAL:
            self.found = proposal
            return None
        # The interior point goes as far as the clusters are worth.
        self._target = float(np.clip(self._total, 0.2 * _GOAL, 0.5 * target))
        return loss

    def divide(self, parts: IntArray) -> bool:
        """Split clusters by the vertices that suit their rows; False where they become too many."""
        clusters, before, (tilts, least) = self.clusters, self.clusters.count, self._at_rows
        if self._total <= 0.5 * _GOAL:  # clusters are good enough: go on from where it stopped
            return True
        losing = clusters.rows_of(parts)
        labels = self._table.labels(tilts[:, losing], least[losing], clusters.index[losing], _SUITED * self._total)
        clusters.split(losing, labels)
        if clusters.count > before and self._start is not None:
            mu = max(self._total, _LEAST_RESTART)
            self._start = self._start.warm_start(clusters.game, clusters.system, clusters.forecasts, mu)
        return 2 * clusters.count <= clusters.index.size


class RowClusters:
    """A partition of the rows of a game and its moment system.

    Attributes
    ----------
    index : array of shape (n,)
        The cluster of each row.
    weights : array of shape (count,)
    """

    def __init__(self, game: Game, system: MomentSystem, forecasts: FloatArray, index: IntArray, count: int) -> None:
        self._game, self._system, self.index = game, system, index
        own = [] if game.shared else [*game.rewards[:, 0].T, *game.offsets.T]
        self._columns = [*system.values, *forecasts.T, *own]
        self._moments = system.moments(forecasts.T)
        self.weights, self._means = self._averages(slice(None), index, count)

    @classmethod
    def of_close_forecasts(
        cls, game: Game, system: MomentSystem, rows: Ambiguity, options: SolverOptions
    ) -> RowClusters:
        """Gather rows with close forecasts: they have close tests, whatever the tests are."""
        forecasts = rows.forecasts
        if game.dimension == 1:
            wanted = int(np.clip(128 * system.size, *options.intervals))
            return cls(game, system, forecasts, *neighbouring(forecasts[:, 0], wanted))
        # Fewer clusters than exact moments ask for would allow no world at all.
        wanted = max(int(np.clip(rows.n_rows // 200, *options.clusters)), 4 * system.size // game.dimension)
        # Clusters are split in a copy of the index, so all solves on the same rows can start from the same one.
        cache = BoundedCache(1, 0) if rows.cache is None else rows.cache
        first = cache.get(("first clusters", wanted), lambda: bisected(forecasts.T, wanted))
        return cls(game, system, forecasts, *first)

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.weights.size)

    def rows_of(self, clusters: IntArray) -> IntArray:
        """Rows of some clusters, cluster by cluster."""
        marked = np.zeros(self.count, dtype=bool)
        marked[clusters] = True
        rows = np.flatnonzero(marked[self.index])
        inside = self.index[rows]
        # A stable sort of 16-bit integers is a radix sort.
        short = inside.astype(np.uint16) if self.count <= 1 << 16 else inside
        by_cluster: IntArray = rows[np.argsort(short, kind="stable")]
        return by_cluster

    def split(self, rows: IntArray, labels: IntArray) -> None:
        """Part clusters by the labels of their rows, all of which are given."""
        span = int(labels.max()) + 1
        combined = self.index[rows] * span + labels
        occurs = np.bincount(combined) > 0  # numbers are small: counting them is faster than sorting
        position = (np.cumsum(occurs) - 1).take(combined)
        numbers = np.flatnonzero(occurs) // span
        # One part keeps the number of its cluster, the others get new ones.
        fresh = np.concatenate([[False], numbers[1:] == numbers[:-1]])
        grown = int(fresh.sum())
        numbers[fresh] = self.count + np.arange(grown)
        self.index = self.index.copy()
        self.index[rows] = numbers[position]
        self.weights = np.concatenate([self.weights, np.zeros(grown)])
        self._means = np.concatenate([self._means, np.zeros((len(self._means), grown))], axis=1)
        self.weights[numbers], self._means[:, numbers] = self._averages(rows, position, numbers.size)

    def _averages(self, rows: IntArray | slice, index: IntArray, count: int) -> tuple[FloatArray, FloatArray]:
        """Weights of clusters and means ``(columns, clusters)`` of everything; zero where there is no weight."""
        weights = self._system.weights[rows]
        totals = np.bincount(index, weights=weights, minlength=count).astype(np.float64, copy=False)
        divisor = np.where(totals > 0, totals, 1.0)
        means = np.empty((len(self._columns), count))

        def average(part: slice) -> None:
            column = self._columns[part.start][rows]
            means[part.start] = np.bincount(index, weights=weights * column, minlength=count) / divisor

        over_rows(average, len(means), 1, threads_from=_WORK_FOR_THREADS // max(1, index.size))
        return totals, means

    @property
    def system(self) -> MomentSystem:
        """The moments of worlds that are constant on clusters, such that all rows' moments are right."""
        parts = replace(self._system, values=self._means[: len(self._system.values)], weights=self.weights)
        # What the clusters' moments must reach so that those of all rows are right.
        return replace(parts, center=self._system.center + self._moments - parts.moments(self.forecasts.T))

    @property
    def forecasts(self) -> FloatArray:
        """Mean forecasts, shape ``(count, d)``."""
        first = len(self._system.values)
        return np.clip(self._means[first : first + self._game.dimension].T, 0.0, 1.0)

    @property
    def game(self) -> Game:
        """The game on clusters: shared, or mean rewards where every row has one action of its own."""
        if self._game.shared:
            return self._game
        rewards, offsets = self._means[-self._game.dimension - 1 : -1].T, self._means[-1]
        return Game(np.ascontiguousarray(rewards)[:, None], offsets[:, None], self._game.space, shared=False)


def bisected(values: FloatArray, count: int) -> tuple[IntArray, int]:
    """Halve the rows of ``values (k, n)`` again and again along their widest direction, at medians of a sample."""
    n = values.shape[1]
    step = max(1, n // (_SAMPLED_PER_CLUSTER * count))
    some, rows, node, nodes = values[:, ::step], np.arange(n), np.zeros(n, dtype=np.int64), 1
    while nodes < min(count, n):
        own = node[::step]
        order = np.argsort(own, kind="stable")
        ends = np.searchsorted(own[order], np.arange(nodes + 1)).tolist()
        direction, median = np.zeros(nodes, dtype=np.int64), np.full(nodes, np.inf)
        for k in range(nodes):
            part = some[:, order[ends[k] : ends[k + 1]]]
            if part.shape[1] > 1:
                widest = direction[k] = np.ptp(part, axis=1).argmax()
                median[k] = np.partition(part[widest], part.shape[1] // 2)[part.shape[1] // 2]
        node = 2 * node + (values[direction[node], rows] >= median[node])
        nodes *= 2
    used = np.bincount(node, minlength=nodes) > 0
    return (np.cumsum(used) - 1)[node], int(used.sum())


def neighbouring(position: FloatArray, count: int) -> tuple[IntArray, int]:
    """Cut rows along one coordinate into parts of about equal numbers, by counting into fine buckets."""
    low = float(position.min())
    scale = _BUCKETS / max(float(position.max()) - low, 1e-300)
    bucket = ((position - low) * scale).astype(np.int64)
    np.minimum(bucket, _BUCKETS - 1, out=bucket)
    filled = np.cumsum(np.bincount(bucket, minlength=_BUCKETS))
    part = (filled - 1) * count // position.size
    numbers = np.cumsum(np.concatenate([[0], np.diff(part) > 0]))  # no cluster without rows
    return numbers[bucket], int(numbers[-1]) + 1
