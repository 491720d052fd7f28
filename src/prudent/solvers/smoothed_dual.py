"""Many rows and thousands of vertices: Newton's method on a smoothed dual (docs/theory.md, section 6).

With so many vertices hardly two rows share a linear piece of ``phi``, so clusters of rows do not help; but the dual of
many rows is then nearly smooth. The minimum over the vertices is replaced by a soft minimum,
``phi_mu(s) = -mu log sum_j exp(-(heights_j + s.corners_j) / mu)``, which is smooth, concave and at most ``mu log N``
below ``phi``. Its derivative is a belief, the vertices' mean with shares ``exp(-score / mu)``; its second derivative is
their covariance over ``-mu``. Newton's method needs a handful of passes over the rows, and no row can shorten the step
of the others. ``mu`` falls while Newton's steps stay within its reach. The warm start comes from a sample of the rows,
solved by interior point, by way of larger samples.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.arrays.chunks import over_rows
from prudent.progress import tell
from prudent.solvers.game import Game
from prudent.solvers.interior_point import interior_point
from prudent.solvers.moment_system import DefiniteSystem, MomentSystem
from prudent.solvers.solution import Found
from prudent.solvers.vertices import VertexTable

# What the smoothing may lose, as a share of the utility range; half of what is called optimal.
_GOAL = 5e-7
_FIRST_ROWS_PER_MOMENT = 50
_FIRST_TARGET = 3e-6
_GROWTH = 4  # of the samples, from one to the next
_FIRST_MU = 1e-4
_HARDENING = 5.0
_WITHIN_REACH = 0.5  # Newton's model is good while the Newton decrement is below this share of mu
_FOUND = 1e-2  # less than this share of mu is left to gain
_SETTLED = 1e-9  # so little is left that the moments are right
_MOST_PASSES = 60
_SHORTEST_STEP = 0.05
_PART_ROWS = 1 << 11
_WORK_FOR_THREADS = 1 << 20
_SCORES_AT_ONCE = 1 << 17  # as many as stay in the cache between the product that writes them and the one that reads
_NEGLIGIBLE = 20.0  # shares below exp(-20), 2e-9, are none
_ROUNDING = 1e-6  # of scores in single precision, generously; listing too many vertices does no harm


def smoothed(game: Game, system: MomentSystem, forecasts: FloatArray, table: VertexTable) -> Found | None:
    """Find reduced multipliers and a nearly allowed world that lose below 1e-6 of the utility range.

    None where the dual is too rough for that.
    """
    order = np.random.default_rng(0).permutation(len(forecasts))
    first, *sizes = sample_sizes(len(forecasts), system.size)
    sample, others = order[:first], order[first : 2 * first]
    proposal = interior_point(game, system.sample(sample), forecasts[sample], target=_FIRST_TARGET)
    if proposal.merit > 10 * _FIRST_TARGET:
        return None
    # What rows that it has not seen say of it tells which ``mu`` to begin with, and whether this is a way at all.
    begin = _within_reach(
        SmoothedDual(system.sample(others), forecasts[others], table), proposal.multipliers, _FIRST_MU
    )
    if begin is None:
        return None
    multipliers, mu = begin.multipliers, begin.mu
    for size, following in pairwise(sizes):
        rows = np.sort(order[:size])
        dual = SmoothedDual(system.sample(rows), forecasts[rows], table)
        begin = _within_reach(dual, multipliers, mu)
        # A sample is good for no more than what it will be off for the next.
        enough = 0.0 if begin is None else 2 * begin.decrement * size / following
        point = _climb(dual, begin, enough)
        if point is None:
            return None
        multipliers, mu = point.multipliers, max(point.mu, enough)
    dual = SmoothedDual(system, forecasts, table)
    top = _climb(dual, _within_reach(dual, multipliers, mu))
    settled = _settle(dual, top)
    if top is None or settled is None:
        return None
    return top.multipliers, settled.beliefs


def sample_sizes(n: int, moments: int) -> list[int]:
    """Sizes of samples that lead to all rows, which come last; the first is at most half of them."""
    sizes = [min(n // 2, _FIRST_ROWS_PER_MOMENT * moments)]
    while sizes[-1] * 2 * _GROWTH < n:
        sizes.append(sizes[-1] * _GROWTH)
    return [*sizes, n]


def _within_reach(dual: SmoothedDual, multipliers: FloatArray, mu: float) -> _Point | None:
    """Raise ``mu`` until Newton's model is worth a step.

    None where smoothing hardly helps: the top is an edge then, on which most rows tie, and no smooth hill.
    """
    point = dual.at(multipliers, mu)
    while point.decrement > 2 * point.mu:
        softer = dual.at(multipliers, 4 * point.mu)
        if softer.decrement > 2 * point.decrement:
            return None
        point = softer
    return point


def _climb(dual: SmoothedDual, point: _Point | None, enough: float = 0.0) -> _Point | None:
    """Take Newton steps and harden the minimum, until the loss is small or ``mu`` has come to what is enough."""
    while point is not None and not (point.loss <= _GOAL and point.decrement <= _FOUND * point.mu):
        near = point.decrement <= _WITHIN_REACH * point.mu
        if near and point.mu <= enough:
            return point
        if dual.passes >= _MOST_PASSES:
            return None
        if near and point.loss > _GOAL:  # the step is as good for a harder minimum
            hardening = max(1 / _HARDENING, (0.9 * _GOAL / point.loss) ** 0.6)
            point = dual.at(point.multipliers + point.step, hardening * point.mu)
        else:
            point = _newton_step(dual, point)
    return point


def _settle(dual: SmoothedDual, point: _Point | None) -> _Point | None:
    """Bring the moments in order with the vertices that each row has at hand.

    Which vertices are near changes with every step in the few directions that few rows care for. It makes hardly a
    difference to the dual, but would keep the moments from converging.
    """
    while point is not None and point.decrement > _SETTLED * point.mu:
        point = _newton_step(dual, point, look=False)
    return point


def _newton_step(dual: SmoothedDual, point: _Point, look: bool = True) -> _Point | None:
    """Go as far along Newton's step as the dual rises enough; None if it does not, or if it takes too long."""
    length = 1.0
    while length >= _SHORTEST_STEP and dual.passes < _MOST_PASSES:
        ahead = dual.at(point.multipliers + length * point.step, point.mu, look)
        if ahead.value >= point.value + 0.1 * length * point.decrement:
            return ahead.after(point)
        length *= 0.5
    return None


@frozen
class _Point:
    """The smoothed dual at some multipliers.

    Attributes
    ----------
    value : float
    gradient : array of shape (K,)
    curvature : array of shape (K, K)
        Minus the second derivative.
    loss : float
        What the smoothing loses: the gap between the dual and the world, once the moments are right.
    beliefs : array of shape (n, d)
    """

    multipliers: FloatArray
    mu: float
    value: float
    gradient: FloatArray
    curvature: FloatArray
    loss: float
    beliefs: FloatArray

    def after(self, former: _Point) -> _Point:
        """Let the curvature that the last step crossed count in the next one: bends between the two would be missed."""
        moved, turned = self.multipliers - former.multipliers, former.gradient - self.gradient
        if turned @ moved <= 0:  # nothing but rounding
            return self
        along = self.curvature @ moved
        curvature = (
            self.curvature + np.outer(turned, turned) / (turned @ moved) - np.outer(along, along) / (along @ moved)
        )
        return replace(self, curvature=curvature)

    @cached_property
    def step(self) -> FloatArray:
        """Newton's step."""
        return DefiniteSystem(self.curvature).solve(self.gradient)

    @cached_property
    def decrement(self) -> float:
        """The squared Newton decrement: twice what the model promises to gain."""
        return float(self.gradient @ self.step)


class SmoothedDual:
    """The dual of some rows smoothed; counts the passes over the rows."""

    def __init__(self, system: MomentSystem, forecasts: FloatArray, table: VertexTable) -> None:
        self.system, self.table = system, table
        self.reached = system.moments(forecasts.T)
        self.passes = 0
        self._near: dict[int, NearVertices] = {}

    def at(self, multipliers: FloatArray, mu: float, look: bool = True) -> _Point:
        """Compare every row with all vertices, and add up value, derivatives and loss.

        Without a ``look``, take the vertices that were near each row when it was last compared with all.
        """
        system = self.system
        self.passes += 1
        tell(f"pass {self.passes} over {system.weights.size:,} rows, smoothed with mu {mu:.0e} of the utility range")
        beliefs = np.empty((system.weights.size, system.dimension))

        def of_part(part: slice) -> tuple[float, float, FloatArray, FloatArray]:
            own = system.take(part)
            tilts = own.tilts(multipliers)
            if look:
                self._near[part.start] = NearVertices(self.table, tilts, mu)
            value, excess, beliefs[part], spread = self._near[part.start].smooth(tilts, mu)
            gram = own.gram(np.ascontiguousarray(spread.T))
            return float(own.weights @ value), float(own.weights @ excess), own.moments(beliefs[part].T), gram

        threads_from = _WORK_FOR_THREADS // self.table.heights.size
        parts = over_rows(of_part, system.weights.size, _PART_ROWS, threads_from)
        value, loss, moments, gram = (np.sum(terms, axis=0) for terms in zip(*parts, strict=True))
        penalty = smoothed_penalty(system, multipliers, mu)
        return _Point(
            multipliers,
            mu,
            float(value - multipliers @ self.reached - penalty.value),
            moments - self.reached - penalty.gradient,
            gram / mu + penalty.curvature,
            float(loss) + penalty.loss,
            beliefs,
        )


class NearVertices:
    """For every row the vertices whose scores are near its least, at given tilts ``(d, n)`` and ``mu``.

    Of thousands of vertices few have a share. Single precision tells which ones.
    """

    def __init__(self, table: VertexTable, tilts: FloatArray, mu: float) -> None:
        n, reach = tilts.shape[1], np.float32(_NEGLIGIBLE * mu + _ROUNDING)
        at_once = max(1, _SCORES_AT_ONCE // table.heights.size)
        scores = np.empty((at_once, table.heights.size), dtype=np.float32)
        # Heights are one more coordinate of the vertices, with tilt one.
        tilted = np.column_stack([tilts.T, np.ones(n)]).astype(np.float32)
        lifted = np.vstack([table.corners.T, table.heights]).astype(np.float32)
        counts, vertices = [], []
        for first in range(0, n, at_once):
            block = scores[: min(at_once, n - first)]
            np.matmul(tilted[first : first + at_once], lifted, out=block)
            near = block <= block.min(axis=1, keepdims=True) + reach
            counts.append(np.count_nonzero(near, axis=1))
            vertices.append((np.flatnonzero(near) % table.heights.size).astype(np.int32))
        self._counts, self._vertices, self._table = np.concatenate(counts), np.concatenate(vertices), table

    def smooth(self, tilts: FloatArray, mu: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Smooth the games of the rows, by shares among the listed vertices.

        Returns ``phi_mu (n,)``, how much the shares' mean score exceeds the least ``(n,)``, the vertices' mean
        ``(n, d)`` and the upper triangle of their covariance ``(n, d (d + 1) / 2)``.
        """
        begin = np.concatenate([[0], np.cumsum(self._counts)[:-1]])
        row = np.repeat(np.arange(self._counts.size), self._counts)
        corners = self._table.corners[self._vertices]
        scores = self._table.heights[self._vertices] + np.einsum("vd,vd->v", tilts.T[row], corners)
        least = np.minimum.reduceat(scores, begin)
        above = scores - least[row]
        shares = np.exp(-above / mu)
        total = np.add.reduceat(shares, begin)
        shares /= total[row]
        beliefs = np.add.reduceat(shares[:, None] * corners, begin, axis=0)
        centered = corners - beliefs[row]
        first, second = np.triu_indices(corners.shape[1])
        spread = np.add.reduceat(shares[:, None] * centered[:, first] * centered[:, second], begin, axis=0)
        return least - mu * np.log(total), np.add.reduceat(shares * above, begin), beliefs, spread


@frozen
class _Penalty:
    value: float
    gradient: FloatArray
    curvature: FloatArray
    loss: float


def smoothed_penalty(system: MomentSystem, multipliers: FloatArray, mu: float) -> _Penalty:
    """Smooth the support function of the slack: ``radius |L|`` becomes ``radius sqrt(|L|^2 + t^2)``.

    Its gradient, which the moments come to, then lies strictly inside the slack; all kinds of slack together lose at
    most about ``mu``.
    """
    radius, size = system.radius, system.lengths(multipliers)
    length = np.hypot(size, mu / (radius.size * radius))
    pull, bend = system.of_moments(radius / length), system.of_moments(radius / length**3)
    together = np.outer(multipliers, multipliers) * (system.groups[:, None] == system.groups)
    return _Penalty(
        float(system.center @ multipliers + radius @ length),
        system.center + pull * multipliers,
        np.diag(pull) - bend[:, None] * together,
        float(radius @ (size - size**2 / length)),
    )
