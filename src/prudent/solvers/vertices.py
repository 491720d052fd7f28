"""The tilted local game in any dimension, on the enumerated vertices of ``epi(val)``.

``phi(s) = min_j { val(p_j) + s.p_j }`` over the vertices ``p_j`` of the
epigraph of ``val`` on P, which are the same for every row (docs/theory.md, section 6).
At a vertex the maximin mixture solves one linear system in the constraints
active there, so it is affine in ``s``: a gather and a small product per row.

Where more constraints meet in a vertex than needed, the mixture is not
unique. For rows at such a vertex all bases are compared, and the one with the
highest nominal utility is played.
"""

from functools import cached_property, reduce
from itertools import product

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen, largest_in_rows, smallest_in_rows
from prudent.arrays.chunks import over_rows
from prudent.solvers.game import Game, upper_envelope
from prudent.spaces import Space

_BLOCK_ELEMENTS = 1 << 17
_NEGLIGIBLE = 1e-12
_CLOSE = 1e-12  # scores this close may be ordered by rounding
_MOST_CHOICES = 3
_MOST_CORNERS = 10  # dimensions up to which all corners of a box are listed
_CHUNK_ELEMENTS = 1 << 22
_CHUNK_ROWS = 1 << 15


@frozen
class TiedVertex:
    """A vertex with more active constraints than needed, and all its bases."""

    slopes: FloatArray  # (bases, D, d): multipliers of the active constraints, linear in the tilt
    constants: FloatArray  # (bases, D)
    actions: IntArray  # (bases, D): action of each basis row, or m where it is a bound


@frozen
class VertexGame:
    """A local game whose vertices and affine mixtures have been tabulated.

    All stored quantities but ``points`` are in natural units, see
    :mod:`prudent.solvers.game`.
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
            # Before anything is rounded to zero.
            mixtures = _affine(self.constants.take(vertex, axis=0), self.slopes.take(vertex, axis=0), scaled)
            if self.tied and forecasts is not None:
                self._resolve_ties(mixtures, vertex, scaled, forecasts[block])
            result[block] = _normalized(mixtures)
        return result

    def _scaled(self, tilts: FloatArray) -> FloatArray:
        """Tilts in natural units; one for all coordinates, as on the simplex, is multiplied with in one sweep."""
        return tilts * (self.unit[0] if (self.unit == self.unit[0]).all() else self.unit)

    def _blocks(self, n: int) -> list[slice]:
        """Rows whose scores fit the cache."""
        step = max(16, _BLOCK_ELEMENTS // self.n_vertices)
        return [slice(first, min(first + step, n)) for first in range(0, n, step)]

    def _resolve_ties(self, mixtures: FloatArray, vertex: IntArray, scaled: FloatArray, forecasts: FloatArray) -> None:
        """Where a vertex leaves a choice, take the mixture with the highest nominal utility, in place."""
        group = self.group.take(vertex)
        for number in np.unique(group[group >= 0]):
            rows = np.flatnonzero(group == number)
            nominal = _nominal(self.game, forecasts[rows])
            mixtures[rows] = _best_tied(self.tied[number], scaled[rows], nominal, mixtures[rows])

    def settled(self, tilts: FloatArray) -> bool:
        """True if at these tilts no mixture depends on the forecast: none is played at a vertex with a choice."""
        return bool((self.group.take(self._nearest(self._scaled(tilts))) < 0).all())

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        """Return a minimiser of ``val(p) + s.p`` for each tilt: a vertex, shape ``(n, d)``."""
        vertices = [self._nearest(self._scaled(tilts[block])) for block in self._blocks(len(tilts))]
        return self.points.take(np.concatenate(vertices), axis=0)

    def _nearest(self, scaled: FloatArray) -> IntArray:
        """Find each row's optimal vertex: fast, and where two are as close as rounding, number by number."""
        n, d = scaled.shape
        extended = np.ones((n, d + 1))
        extended[:, :d] = scaled
        scores = extended @ self._scoring
        nearest = scores.argmin(axis=1)
        rows = np.arange(n)
        margin = -scores[rows, nearest]
        scores[rows, nearest] = np.inf
        margin += smallest_in_rows(scores)
        close = np.flatnonzero(margin <= _CLOSE * (1.0 + largest_in_rows(np.abs(scaled))))
        if close.size:
            nearest[close] = _affine(self.heights, self.corners.T, scaled[close]).argmin(axis=1)
        return nearest.astype(np.int64, copy=False)

    @cached_property
    def _scoring(self) -> FloatArray:
        """Matrix that turns ``(tilt, 1)`` into the scores of all vertices."""
        return np.ascontiguousarray(np.hstack([self.corners, self.heights[:, None]]).T)


def _affine(base: FloatArray, rates: FloatArray, points: FloatArray) -> FloatArray:
    """Compute ``base + points . rates`` for bases ``(c,)`` and rates ``(d, c)``, or one of each per row.

    Sums run coordinate by coordinate and not as matrix products, so that a result does not depend, even in a tie, on
    the rows that came with it.
    """
    result = np.array(np.broadcast_to(base, (len(points), base.shape[-1])))
    for j in range(points.shape[1]):
        result += rates[..., j, :] * points[:, j, None]
    return result


def _normalized(mixtures: FloatArray) -> FloatArray:
    """Leave out negligible shares and divide by the sum, in place."""
    mixtures[mixtures < _NEGLIGIBLE] = 0.0
    total = reduce(np.add, mixtures.T)[:, None]
    return np.divide(mixtures, total, out=mixtures, where=total > 0)


def _nominal(game: Game, forecasts: FloatArray) -> FloatArray:
    """Utilities at the forecasts in natural units, up to a constant."""
    base, rates = nominal_terms(game)
    utilities = _affine(base, rates.T, forecasts - game.space.bounds[0])
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
        multipliers = _affine(constants, slopes.T, scaled)
        for r in range(len(actions)):
            expected[basis] += multipliers[:, r] * padded[:, actions[r]]
        expected[basis, multipliers.min(axis=1) < -1e-12] = -np.inf
    most = expected.max(axis=0)
    best = (expected >= most - 1e-12).argmax(axis=0)
    played = fallback.copy()
    for basis in np.unique(best):
        rows = np.flatnonzero((best == basis) & (most > -np.inf))
        mixture = np.zeros((len(rows), m + 1))
        multipliers = _affine(vertex.constants[basis], vertex.slopes[basis].T, scaled[rows])
        np.add.at(mixture, (np.arange(len(rows))[:, None], vertex.actions[basis][None, :]), multipliers)
        played[rows] = mixture[:, :m]
    return played


@frozen
class VertexTable:
    """Vertices of ``epi(val)`` in natural units: ``phi(s) = min_j { heights_j + s.corners_j }``."""

    corners: FloatArray  # (N, d)
    heights: FloatArray  # (N,)

    def least(self, tilts: FloatArray) -> FloatArray:
        """Compute ``phi`` for tilts ``(d, n)``."""
        result = np.empty(tilts.shape[1])

        def fill(part: slice) -> None:
            if tilts.shape[0] == 1:  # one coordinate: vertex by vertex, without a table of all
                lines = zip(self.heights, self.corners[:, 0], strict=True)
                result[part] = reduce(np.minimum, (tilts[0, part] * corner + height for height, corner in lines))
            else:
                result[part] = smallest_in_rows(self.scores(tilts[:, part]))

        over_rows(fill, result.size, max(1, min(_CHUNK_ROWS, _CHUNK_ELEMENTS // self.heights.size)))
        return result

    def scores(self, tilts: FloatArray) -> FloatArray:
        """Value of every vertex for tilts ``(d, n)``, shape ``(n, N)``."""
        scores = tilts.T @ self.corners.T
        scores += self.heights
        return scores

    def labels(self, tilts: FloatArray, least: FloatArray, clusters: IntArray, tolerance: float) -> IntArray:
        """Give every row a vertex that is optimal for it up to a tolerance, with few different ones per cluster.

        Greedy: the vertex that suits most rows of a cluster, then the one that suits most of those left. ``clusters``
        is sorted.
        """
        result = np.empty(clusters.size, dtype=np.int64)
        limits = least + tolerance
        most = max(1, _CHUNK_ELEMENTS // self.heights.size)
        for first in range(0, clusters.size, most):
            part = slice(first, first + most)
            near = self.scores(tilts[:, part]) <= limits[part, None]
            result[part] = _few_choices(near, clusters[part])
        return result


def vertex_table(game: Game, local: object) -> VertexTable | None:
    """Tabulate a game in natural units, given its local game; None where there are too many vertices."""
    if game.n_actions == 1:
        corners = space_corners(game.space)
        return None if corners is None else VertexTable(corners, np.zeros(len(corners)))
    if not game.shared:
        return None
    if game.dimension == 1:
        points = upper_envelope(game).points
        return VertexTable(points[:, None], game.utilities(points[:, None]).max(axis=1))
    return VertexTable(local.corners, local.heights) if isinstance(local, VertexGame) else None


def space_corners(space: Space) -> FloatArray | None:
    """List the corners of a space in natural units; None where there are too many."""
    d = space.dimension
    if space.is_simplex:
        return np.eye(d)
    return None if d > _MOST_CORNERS else np.array(list(product((0.0, 1.0), repeat=d)))


def _few_choices(near: BoolArray, clusters: IntArray) -> IntArray:
    """Cover the rows of every cluster by few vertices that are near-optimal for them."""
    choice = np.empty(clusters.size, dtype=np.int64)
    left = np.arange(clusters.size)
    for _ in range(_MOST_CHOICES):
        starts = np.flatnonzero(np.diff(clusters[left], prepend=-1))  # clusters are sorted
        suited = np.add.reduceat(near[left], starts, axis=0, dtype=np.int32).argmax(axis=1)
        picked = np.repeat(suited, np.diff(np.append(starts, left.size)))
        served = near[left, picked]
        choice[left[served]] = picked[served]
        left = left[~served]
        if left.size == 0:
            return choice
    choice[left] = near.shape[1]  # the rest stays together until the next round
    return choice
