"""Many rows: solve on clusters of rows, split clusters that lose, certify on all rows (docs/theory.md, section 6).

A world that is constant on clusters has the same moments on all rows as on the clusters, so its value is an upper
bound for all rows. The dual of the clusters is never below the dual of the rows (``phi`` is concave), and equal to it
where all rows of a cluster share a linear piece of ``phi``. The interior point is warm-started on the split clusters
and only ever driven as far as the clusters are worth, so most of the work is done on a small part of the rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.arrays.chunks import over_rows
from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.memory_rows import Ambiguity
from prudent.solvers.game import Game
from prudent.solvers.interior_point import InteriorPoint, interior_point
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.solution import SolverOptions
from prudent.solvers.vertices import VertexTable

# What clusters and interior point may lose together, as a share of the utility range; less than what is called optimal.
_GOAL = 7e-7
_FIRST_TARGET = 2e-3
_MOST_ROUNDS = 14
_DIVIDED_LOSS = 0.99  # parts with this share of the loss are divided
_SUITED = 0.25  # a vertex suits a row if it loses at most this share of the mean loss
_LEAST_RESTART = 5e-5
_SAMPLED_PER_CLUSTER = 16
_BUCKETS = 1 << 16
_WORK_FOR_THREADS = 1 << 18


def parts_that_lose(loss: FloatArray) -> IntArray:
    """Parts of the rows that together have nearly all of the loss, those that lose most first."""
    order = np.argsort(-loss)
    return order[: int(np.searchsorted(np.cumsum(loss[order]), _DIVIDED_LOSS * float(loss.sum()))) + 1]


def solve_on_clusters(
    game: Game, system: MomentSystem, rows: Ambiguity, table: VertexTable, options: SolverOptions
) -> tuple[InteriorPoint, RowClusters] | None:
    """Find clusters and a solution on them that lose well below 1e-6 of the utility range on all rows, if it helps."""
    clusters = RowClusters.of_close_forecasts(game, system, rows, options)
    target, start = _FIRST_TARGET, None
    for _ in range(_MOST_ROUNDS):
        part, parts_system = clusters.game, clusters.system
        proposal = interior_point(part, parts_system, clusters.forecasts, target=target, start=start)
        stuck = proposal.merit > 10 * target or (proposal.merit > target and proposal.best is start)
        if stuck and start is not None:  # the warm start misled it
            proposal = interior_point(part, parts_system, clusters.forecasts, target=target)
        if proposal.merit > 10 * target:
            return None
        tilts, cluster_tilts = system.tilts(proposal.multipliers), parts_system.tilts(proposal.multipliers)
        if game.n_actions == 1:  # its rewards act like a tilt; with several, the table knows them
            tilts, cluster_tilts = tilts + game.rewards[:, 0].T, cluster_tilts + part.rewards[:, 0].T
        least = table.least(tilts)
        of_rows = np.bincount(clusters.index, weights=system.weights * least, minlength=clusters.count)
        loss: FloatArray = clusters.weights * table.least(cluster_tilts) - of_rows
        total, start = float(loss.sum()), proposal.best
        if total + proposal.merit <= _GOAL:
            return proposal, clusters
        # The interior point goes as far as the clusters are worth.
        target = float(np.clip(total, 0.2 * _GOAL, 0.5 * target))
        if total <= 0.5 * _GOAL:  # clusters are good enough: go on from where it stopped
            continue
        before, losing = clusters.count, clusters.rows_of(parts_that_lose(loss))
        inside = clusters.index[losing]
        clusters.split(losing, table.labels(tilts[:, losing], least[losing], inside, _SUITED * total))
        if 2 * clusters.count > rows.n_rows:
            return None
        if clusters.count > before:
            start = start.warm_start(clusters.game, clusters.system, clusters.forecasts, max(total, _LEAST_RESTART))
    return None


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
