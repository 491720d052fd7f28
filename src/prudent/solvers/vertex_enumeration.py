"""Find the vertices of ``epi(val)``, on which the tilted local game is played (docs/theory.md, section 6).

The enumeration runs on slightly perturbed right-hand sides, which cuts a
vertex where more constraints meet than needed into simple ones; the linear
systems do not contain the right-hand sides and stay exact.
"""

from itertools import combinations
from math import comb

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.solvers.game import Game, normalize_game
from prudent.solvers.vertices import TiedVertex, VertexGame

_PERTURBATION = 1e-8
_ACTIVE = 1e-9
_MOST_TIED_BASES = 500


def enumerate_vertices(game: Game, limit: int) -> VertexGame | None:
    """Tabulate a shared game, or return None if it has more than ``limit`` vertices."""
    d, m = game.dimension, game.n_actions
    simplex = game.space.is_simplex
    low, high = game.space.bounds
    if not simplex and 2.0**d > limit:
        return None  # every corner of a box is a vertex
    normal = normalize_game(game)
    rewards, offsets = normal.rewards[0], normal.offsets[0]
    matrix, bounds, equality = _constraints(rewards, offsets, simplex)
    shifted = bounds - _PERTURBATION * _generic(matrix.shape[0], m)
    corner = shifted[m : m + d].copy()
    if simplex:
        corner[0] = 1.0 - corner[1:].sum()
    best = int(np.argmax(rewards @ corner + shifted[:m]))
    start = np.sort(np.concatenate([m + np.arange(simplex, d), [best]]))
    bases = _walk(matrix, shifted, equality, start, limit)
    if bases is None:
        return None
    inverses = _invert(_systems(matrix, equality, bases))
    corners = _solve(inverses, shifted, bases, simplex)
    points = _solve(inverses, bounds, bases, simplex)
    owners = np.where(bases < m, bases, m)
    multipliers = inverses.transpose(0, 2, 1)[:, : bases.shape[1]]  # y = A^-T (s, 1), without the equality's
    slopes = np.zeros((len(bases), m + 1, d))
    constants = np.zeros((len(bases), m + 1))
    rows = np.arange(len(bases))[:, None]
    slopes[rows, owners] = multipliers[:, :, :d]
    constants[rows, owners] = multipliers[:, :, d]
    group, tied = _tied_vertices(matrix, bounds, equality, points, m)
    return VertexGame(
        game,
        (high - low) / game.scale,
        corners[:, d],
        corners[:, :d],
        np.clip(low + (high - low) * points[:, :d], low, high),
        np.ascontiguousarray(slopes[:, :m].transpose(0, 2, 1)),
        constants[:, :m],
        group,
        tied,
    )


def _constraints(rewards: FloatArray, offsets: FloatArray, simplex: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Write ``epi(val)`` as ``matrix @ (p, t) >= bounds``, with the simplex's equality apart."""
    m, d = rewards.shape
    blocks = [np.hstack([-rewards, np.ones((m, 1))]), np.hstack([np.eye(d), np.zeros((d, 1))])]
    bounds = [offsets, np.zeros(d)]
    if not simplex:
        blocks.append(np.hstack([-np.eye(d), np.zeros((d, 1))]))
        bounds.append(-np.ones(d))
    equality = np.concatenate([np.ones(d), [0.0]])[None] if simplex else np.zeros((0, d + 1))
    return np.vstack(blocks), np.concatenate(bounds), equality


def _generic(size: int, m: int) -> FloatArray:
    """Return fixed numbers without relations among them; those of actions increase, so ties go to the first."""
    golden = np.mod(np.arange(1, size + 1, dtype=np.float64) * 0.6180339887498949, 1.0)
    golden[:m] = (np.arange(m) + 0.5 * golden[:m]) / m
    return golden + 0.1


def _systems(matrix: FloatArray, equality: FloatArray, bases: IntArray) -> FloatArray:
    fixed = np.broadcast_to(equality, (len(bases), *equality.shape))
    return np.concatenate([matrix[bases], fixed], axis=1)


def _invert(systems: FloatArray) -> FloatArray:
    return np.linalg.inv(systems).astype(np.float64, copy=False)


def _solve(inverses: FloatArray, bounds: FloatArray, bases: IntArray, simplex: bool) -> FloatArray:
    right = bounds[bases]
    if simplex:
        right = np.hstack([right, np.ones((len(bases), 1))])
    return np.einsum("nij,nj->ni", inverses, right)


def _walk(matrix: FloatArray, bounds: FloatArray, equality: FloatArray, start: IntArray, limit: int) -> IntArray | None:
    """Visit all vertices of a simple polyhedron along its bounded edges, a whole frontier at a time.

    Dropping one active constraint leaves an edge; the first constraint met
    along it gives the neighbour. The bounded edges connect all vertices.
    """
    simplex = bool(equality.shape[0])
    seen = {start.tobytes()}
    frontier = start[None]
    found = [frontier]
    while frontier.size:
        inverses = _invert(_systems(matrix, equality, frontier))
        corners = _solve(inverses, bounds, frontier, simplex)
        slack = corners @ matrix.T - bounds
        edges = inverses.transpose(0, 2, 1)[:, : frontier.shape[1]]  # (F, active, d + 1)
        rates = edges @ matrix.T
        np.put_along_axis(slack, frontier, np.inf, axis=1)
        with np.errstate(divide="ignore"):
            steps = np.where(rates < -1e-11, slack[:, None, :] / -np.minimum(rates, -1e-300), np.inf)
        entering = steps.argmin(axis=2)
        bounded = np.isfinite(np.take_along_axis(steps, entering[:, :, None], axis=2)[:, :, 0])
        source, leaving = np.nonzero(bounded)
        neighbours = frontier[source].copy()
        neighbours[np.arange(len(source)), leaving] = entering[source, leaving]
        neighbours.sort(axis=1)
        fresh = []
        text, width = neighbours.tobytes(), start.nbytes
        for number in range(len(neighbours)):
            key = text[number * width : (number + 1) * width]
            if key not in seen:
                seen.add(key)
                fresh.append(number)
        if len(seen) > limit:
            return None
        frontier = neighbours[fresh]
        frontier = frontier[np.lexsort(frontier.T[::-1])]  # an order that does not depend on the way
        found.append(frontier)
    return np.concatenate(found)


def _tied_vertices(
    matrix: FloatArray, bounds: FloatArray, equality: FloatArray, points: FloatArray, m: int
) -> tuple[IntArray, tuple[TiedVertex, ...]]:
    """Find vertices where more constraints meet than needed, with all their bases if these are not too many."""
    needed = matrix.shape[1] - equality.shape[0]
    d = matrix.shape[1] - 1
    active = np.abs(points @ matrix.T - bounds) <= _ACTIVE
    group = np.full(len(points), -1)
    tied: list[TiedVertex] = []
    known: dict[bytes, int] = {}
    for position in np.flatnonzero(active.sum(axis=1) > needed):
        key = active[position].tobytes()
        if key not in known:
            members = np.flatnonzero(active[position])
            if comb(len(members), needed) > _MOST_TIED_BASES:
                known[key] = -1
                continue
            subsets = np.array(list(combinations(members.tolist(), needed)), dtype=np.int64)
            systems = _systems(matrix, equality, subsets)
            regular = np.linalg.cond(systems) < 1e10
            multipliers = _invert(systems[regular]).transpose(0, 2, 1)[:, :needed]
            owners = np.minimum(subsets[regular], m)
            known[key] = len(tied)
            tied.append(TiedVertex(multipliers[:, :, :d], multipliers[:, :, d], owners))
        group[position] = known[key]
    return group, tuple(tied)
