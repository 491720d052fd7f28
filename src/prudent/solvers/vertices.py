"""The tilted local game in any dimension, on the enumerated vertices of ``epi(val)``.

``phi(s) = min_j { val(p_j) + s.p_j }`` over the vertices ``p_j`` of the
epigraph of ``val`` on P, which are the same for every row (docs/theory.md, section 6).
At a vertex the maximin mixture solves one linear system in the constraints
active there, so it is affine in ``s``: a gather and a small product per row.

Where more constraints meet in a vertex than needed, the mixture is not
unique. For rows at such a vertex all bases are compared, and the one with the
highest nominal utility is played.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.compiled import compiled
from prudent.narrow import largest_in_rows
from prudent.solvers import vertex_loops
from prudent.solvers.game import Game

__all__ = ["TiedVertex", "VertexGame", "nominal_terms"]

_BLOCK_ELEMENTS = 1 << 17
_SEARCH_ROWS = 1 << 12
_SEARCH_FOR_THREADS = 1 << 24  # rows times vertices
_NEGLIGIBLE = 1e-12
_CLOSE = 1e-12  # scores this close may be ordered by rounding


@dataclass(frozen=True, eq=False)
class TiedVertex:
    """A vertex with more active constraints than needed, and all its bases."""

    slopes: FloatArray  # (bases, D, d): multipliers of the active constraints, linear in the tilt
    constants: FloatArray  # (bases, D)
    actions: IntArray  # (bases, D): action of each basis row, or m where it is a bound


@dataclass(frozen=True, eq=False)
class VertexGame:
    """A local game whose vertices and affine mixtures have been tabulated.

    All stored quantities but ``points`` are in natural units, see
    :mod:`prudent.solvers.units`.
    """

    game: Game
    unit: FloatArray  # (d,) multiplies a tilt to bring it into natural units
    heights: FloatArray  # (N,) perturbed val at the vertices
    corners: FloatArray  # (N, d) perturbed vertices
    points: FloatArray  # (N, d) true vertices, in the user's units
    slopes: FloatArray  # (N, d, m)
    constants: FloatArray  # (N, m)
    group: IntArray  # (N,) index into tied, or -1
    tied: tuple[TiedVertex, ...]

    @property
    def n_vertices(self) -> int:
        """Number of vertices of the perturbed epigraph."""
        return int(self.heights.size)

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        """Return the maximin mixture of each tilted game, shape ``(n, m)``.

        With ``forecasts``, tied mixtures are resolved by nominal utility.
        """
        result = np.empty((len(tilts), self.game.n_actions))
        for block in self._blocks(len(tilts)):
            scaled = self._scaled(tilts[block])
            vertex = self._nearest(scaled)
            mixtures = self._mixed(scaled, vertex)
            if self.tied and forecasts is not None:
                self._resolve_ties(mixtures, vertex, scaled, forecasts[block])
            _normalize(mixtures, result[block])
        return result

    def _scaled(self, tilts: FloatArray) -> FloatArray:
        """Tilts in natural units; one for all coordinates, as on the simplex, is multiplied with in one sweep."""
        return tilts * (self.unit[0] if (self.unit == self.unit[0]).all() else self.unit)

    def _blocks(self, n: int) -> list[slice]:
        """Rows whose scores fit the cache; all rows where a compiled loop takes care of that."""
        step = n if self._loop(n) is not None else max(16, _BLOCK_ELEMENTS // self.n_vertices)
        return [slice(first, min(first + step, n)) for first in range(0, n, step)]

    def _loop(self, n: int) -> Callable[..., None] | None:
        """Compiled search for the optimal vertices of some rows, if worth it."""
        return compiled(vertex_loops.least_two, n * self.n_vertices // vertex_loops.VERTICES_LIKE_A_PASS)

    def _mixed(self, scaled: FloatArray, vertex: IntArray) -> FloatArray:
        """Mixtures at the rows' vertices, before anything is rounded to zero.

        Sums run coordinate by coordinate and not as matrix products, so that a mixture does not depend, even in a
        tie, on the rows that came with it.
        """
        loop = compiled(vertex_loops.mix_rows, len(scaled), exact=True)
        if loop is not None:
            mixtures = np.empty((len(scaled), self.game.n_actions))
            loop(scaled, vertex, self.slopes, self.constants, mixtures)
            return mixtures
        mixtures = self.constants.take(vertex, axis=0)
        slopes = self.slopes.take(vertex, axis=0)
        for j in range(scaled.shape[1]):
            mixtures += slopes[:, j] * scaled[:, j, None]
        return mixtures

    def _resolve_ties(self, mixtures: FloatArray, vertex: IntArray, scaled: FloatArray, forecasts: FloatArray) -> None:
        """Where a vertex leaves a choice, take the mixture with the highest nominal utility, in place."""
        group = self.group.take(vertex)
        for number in np.unique(group[group >= 0]):
            rows = np.flatnonzero(group == number)
            nominal = _nominal(self.game, forecasts[rows])
            mixtures[rows] = _best_tied(self.tied[number], scaled[rows], nominal, mixtures[rows])

    def settled(self, tilts: FloatArray) -> bool:
        """True if at these tilts every mixture is the same whatever the forecast: no tie is left to it."""
        scaled = tilts * self.unit
        plain = self.mixtures(tilts)
        for row, mixture, group in zip(scaled, plain, self.group.take(self._nearest(scaled)), strict=True):
            if group >= 0:
                tied = self.tied[group]
                for slopes, constants, actions in zip(tied.slopes, tied.constants, tied.actions, strict=True):
                    alone = TiedVertex(slopes[None], constants[None], actions[None])
                    nothing = np.zeros((1, mixture.size))
                    candidate = _normalized(_best_tied(alone, row[None], nothing, nothing))
                    if candidate.any() and not np.array_equal(candidate[0], mixture):
                        return False
        return True

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        """Return a minimiser of ``val(p) + s.p`` for each tilt: a vertex, shape ``(n, d)``."""
        vertices = [self._nearest(self._scaled(tilts[block])) for block in self._blocks(len(tilts))]
        return self.points.take(np.concatenate(vertices), axis=0)

    def _nearest(self, scaled: FloatArray) -> IntArray:
        """Find each row's optimal vertex: fast, and where two are as close as rounding, number by number."""
        n, d = scaled.shape
        few = self.n_vertices <= vertex_loops.FEW_VERTICES
        exact = compiled(vertex_loops.first_of_least, n, exact=True) if few else None
        if exact is not None:
            first = np.empty(n, dtype=np.int64)
            exact(np.ascontiguousarray(scaled), self.corners, self.heights, first)
            return first
        loop = self._loop(n)
        if loop is not None:
            nearest, least, margin = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
            tilts = np.ascontiguousarray(scaled.T)

            def search(part: slice) -> None:
                loop(tilts[:, part].copy(), self.corners, self.heights, nearest[part], least[part], margin[part])

            over_rows(search, n, _SEARCH_ROWS, threads_from=_SEARCH_FOR_THREADS // self.heights.size)
            margin -= least
        else:
            extended = np.ones((n, d + 1))
            extended[:, :d] = scaled
            scores = extended @ self._scoring
            nearest = scores.argmin(axis=1)
            rows = np.arange(n)
            margin = -scores[rows, nearest]
            scores[rows, nearest] = np.inf
            margin += scores.min(axis=1)
        close = np.flatnonzero(margin <= _CLOSE * (1.0 + largest_in_rows(np.abs(scaled))))
        if close.size:
            nearest[close] = self._exactly_nearest(scaled[close])
        return nearest.astype(np.int64, copy=False)

    @cached_property
    def _scoring(self) -> FloatArray:
        """Matrix that turns ``(tilt, 1)`` into the scores of all vertices."""
        return np.ascontiguousarray(np.hstack([self.corners, self.heights[:, None]]).T)

    def _exactly_nearest(self, scaled: FloatArray) -> IntArray:
        scores = np.repeat(self.heights[None, :], len(scaled), axis=0)
        for j in range(scaled.shape[1]):
            scores += scaled[:, j, None] * self.corners[:, j]
        return scores.argmin(axis=1).astype(np.int64)


def _normalize(mixtures: FloatArray, result: FloatArray) -> None:
    """Write mixtures without negligible shares, with sum one."""
    loop = compiled(vertex_loops.normalize_rows, len(mixtures), exact=True)
    if loop is not None:
        loop(mixtures, _NEGLIGIBLE, result)
        return
    mixtures[mixtures < _NEGLIGIBLE] = 0.0
    total = mixtures[:, 0].copy()
    for a in range(1, mixtures.shape[1]):
        total += mixtures[:, a]
    np.divide(mixtures, total[:, None], out=result, where=total[:, None] > 0)


def _normalized(mixtures: FloatArray) -> FloatArray:
    """Normalise in place."""
    _normalize(mixtures, mixtures)
    return mixtures


def _nominal(game: Game, forecasts: FloatArray) -> FloatArray:
    """Utilities at the forecasts in natural units, up to a constant."""
    low, _ = game.space.bounds
    base, rates = nominal_terms(game)
    utilities = np.repeat(base[None], len(forecasts), axis=0)
    for j in range(game.dimension):
        utilities += (forecasts[:, j, None] - low[j]) * rates[:, j]
    return utilities - utilities[:, :1]


def nominal_terms(game: Game) -> tuple[FloatArray, FloatArray]:
    """Return utilities at the lower end of the space ``(m,)`` and their slopes ``(m, d)``, in natural units."""
    low, _ = game.space.bounds
    return (game.offsets[0] + game.rewards[0] @ low) / game.scale, game.rewards[0] / game.scale


def _best_tied(vertex: TiedVertex, scaled: FloatArray, nominal: FloatArray, fallback: FloatArray) -> FloatArray:
    """Among all bases with non-negative multipliers take the first with the highest nominal utility, up to rounding."""
    m = nominal.shape[1]
    padded = np.hstack([nominal, np.zeros((len(nominal), 1))])
    expected = np.zeros((len(vertex.slopes), len(scaled)))
    for basis, (slopes, constants, actions) in enumerate(
        zip(vertex.slopes, vertex.constants, vertex.actions, strict=True)
    ):
        multipliers = _multipliers(slopes, constants, scaled)
        for r in range(len(actions)):
            expected[basis] += multipliers[:, r] * padded[:, actions[r]]
        expected[basis, multipliers.min(axis=1) < -1e-12] = -np.inf
    most = expected.max(axis=0)
    best = (expected >= most - 1e-12).argmax(axis=0)
    played = fallback.copy()
    for basis in np.unique(best):
        rows = np.flatnonzero((best == basis) & (most > -np.inf))
        mixture = np.zeros((len(rows), m + 1))
        multipliers = _multipliers(vertex.slopes[basis], vertex.constants[basis], scaled[rows])
        np.add.at(mixture, (np.arange(len(rows))[:, None], vertex.actions[basis][None, :]), multipliers)
        played[rows] = mixture[:, :m]
    return played


def _multipliers(slopes: FloatArray, constants: FloatArray, scaled: FloatArray) -> FloatArray:
    """Compute ``constants + slopes . tilt`` for each row, coordinate by coordinate, shape ``(n, D)``."""
    multipliers = np.repeat(constants[None, :], len(scaled), axis=0)
    for j in range(scaled.shape[1]):
        multipliers += scaled[:, j, None] * slopes[:, j]
    return multipliers
