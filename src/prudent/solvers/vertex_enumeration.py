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
    matrix, bounds = _constraints(rewards, offsets, simplex)
    shifted = bounds - _PERTURBATION * _generic(bounds.size, m)
    corner = shifted[m : m + d].copy()
    active = np.arange(m, m + d)
    if simplex:
        shifted[-1] = 1.0
        corner[0] = 1.0 - corner[1:].sum()
        active = np.append(active[1:], bounds.size - 1)
    best = int(np.argmax(rewards @ corner + shifted[:m]))
    bases = _walk(matrix, shifted, np.append(best, active), d + 1 - simplex, limit)
    if bases is None:
        return None
    inverses = _invert(matrix[bases])
    corners, points = (np.einsum("nij,nj->ni", inverses, right[bases]) for right in (shifted, bounds))
    owners = np.minimum(bases[:, : d + 1 - simplex], m)
    multipliers = inverses.transpose(0, 2, 1)[:, : owners.shape[1]]  # y = A^-T (s, 1), without the equality's
    slopes = np.zeros((len(bases), m + 1, d))
    constants = np.zeros((len(bases), m + 1))
    rows = np.arange(len(bases))[:, None]
    slopes[rows, owners] = multipliers[:, :, :d]
    constants[rows, owners] = multipliers[:, :, d]
    group, tied = _tied_vertices(matrix, bounds, points, m, simplex)
    return VertexGame(
        game,
        game.space.widths / game.scale,
        corners[:, d],
        corners[:, :d],
        np.clip(low + game.space.widths * points[:, :d], low, high),
        np.ascontiguousarray(slopes[:, :m].transpose(0, 2, 1)),
        constants[:, :m],
        group,
        tied,
    )


def _constraints(rewards: FloatArray, offsets: FloatArray, simplex: bool) -> tuple[FloatArray, FloatArray]:
    """Write ``epi(val)`` as ``matrix @ (p, t) >= bounds``; the simplex's equality comes last and is in every basis."""
    m, d = rewards.shape
    blocks = [np.hstack([-rewards, np.ones((m, 1))]), np.hstack([np.eye(d), np.zeros((d, 1))])]
    last = np.ones((1, d)) if simplex else -np.eye(d)
    blocks.append(np.hstack([last, np.zeros((len(last), 1))]))
    return np.vstack(blocks), np.concatenate([offsets, np.zeros(d), [1.0] if simplex else -np.ones(d)])


def _generic(size: int, m: int) -> FloatArray:
    """Return fixed numbers without relations among them; those of actions increase, so ties go to the first."""
    golden = np.mod(np.arange(1, size + 1, dtype=np.float64) * 0.6180339887498949, 1.0)
    golden[:m] = (np.arange(m) + 0.5 * golden[:m]) / m
    return golden + 0.1


def _invert(systems: FloatArray) -> FloatArray:
    return np.linalg.inv(systems).astype(np.float64, copy=False)


def _walk(matrix: FloatArray, bounds: FloatArray, start: IntArray, count: int, limit: int) -> IntArray | None:
    """Visit all vertices of a simple polyhedron along its bounded edges, a whole frontier at a time.

    Dropping one of the first ``count`` active constraints leaves an edge; the first constraint met along it gives the
    neighbour. The bounded edges connect all vertices.
    """
    seen = {start.tobytes()}
    frontier = start[None]
    found = [frontier]
    while frontier.size:
        inverses = _invert(matrix[frontier])
        slack = np.einsum("nij,nj->ni", inverses, bounds[frontier]) @ matrix.T - bounds
        rates = inverses.transpose(0, 2, 1)[:, :count] @ matrix.T  # along each edge
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
    matrix: FloatArray, bounds: FloatArray, points: FloatArray, m: int, simplex: bool
) -> tuple[IntArray, tuple[TiedVertex, ...]]:
    """Find vertices where more constraints meet than needed, with all their bases if these are not too many."""
    d = matrix.shape[1] - 1
    needed, always = d + 1 - simplex, ([bounds.size - 1] if simplex else [])
    active = np.abs(points @ matrix.T - bounds) <= _ACTIVE
    active[:, always] = False
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
            subsets = np.array([[*some, *always] for some in combinations(members.tolist(), needed)])
            systems = matrix[subsets]
            regular = np.linalg.cond(systems) < 1e10
            multipliers = _invert(systems[regular]).transpose(0, 2, 1)[:, :needed]
            owners = np.minimum(subsets[regular, :needed], m)
            known[key] = len(tied)
            tied.append(TiedVertex(multipliers[:, :, :d], multipliers[:, :, d], owners))
        group[position] = known[key]
    return group, tuple(tied)
