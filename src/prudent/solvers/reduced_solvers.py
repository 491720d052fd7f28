"""Any tests, any dimension, any slack: one reduction with its way back, and the algorithms that run inside it.

Natural units → reduced moments → an algorithm's proposal → an allowed world → the user's units.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.arrays import EPSILON, FloatArray, frozen
from prudent.cases.memory_rows import Ambiguity
from prudent.errors import InfeasibleError
from prudent.solvers.game import Game, LocalGame, normalize, normalize_game
from prudent.solvers.interior_point import interior_point
from prudent.solvers.moment_system import EMPTY, MomentSystem, reduce_moments, upper_triangles
from prudent.solvers.row_clusters import solve_on_clusters
from prudent.solvers.smoothed_dual import smoothed
from prudent.solvers.solution import Found, SolverOptions
from prudent.solvers.vertices import VertexTable, vertex_table

_TINY = 1e-5
_MOST_ENTRIES = 1_000_000


@frozen
class _Reduced:
    """A game in natural units with reduced moments."""

    game: Game
    rows: Ambiguity
    system: MomentSystem


def _solve_reduced(
    game: Game, ambiguity: Ambiguity, propose: Callable[[_Reduced], Found | None], coarse: bool = False
) -> Found | None:
    """Reduce, let an algorithm propose reduced multipliers and an allowed world, and translate both back."""
    normal, rows, price = normalize(game, ambiguity)
    reduced = _Reduced(normal, rows, reduce_moments(rows, coarse))
    found = propose(reduced)
    if found is None:
        return None
    multipliers, world = found
    low, high = game.space.bounds
    outcomes = np.clip(low + game.space.widths * world, low, high)  # never past a bound
    return reduced.system.back @ multipliers * price, outcomes


def by_interior_point(game: Game, ambiguity: Ambiguity, coarse: bool = False) -> Found | None:
    """Solve all rows together; ``coarse`` without tests that are nearly combinations of others."""

    def propose(reduced: _Reduced) -> Found:
        proposal = interior_point(reduced.game, reduced.system, reduced.rows.forecasts)
        world = _allowed(reduced, proposal.beliefs)
        return proposal.multipliers, _any_world(reduced) if world is None else world

    return _solve_reduced(game, ambiguity, propose, coarse)


def by_smoothing(game: Game, ambiguity: Ambiguity, local: LocalGame, options: SolverOptions) -> Found | None:
    """Solve many rows with a soft minimum over many vertices; None where that does not apply or help."""
    # A row that outweighs many others makes the dual as rough as few rows do.
    rows_that_count = 1.0 / float(ambiguity.weights @ ambiguity.weights)
    least = max(options.many_rows, options.smooth_rows_per_moment * ambiguity.tests.n_moments)
    table = None if game.dimension == 1 or game.n_actions == 1 else _vertices(game, local)
    if rows_that_count < least or table is None or table.heights.size <= options.many_vertices:
        return None

    def propose(reduced: _Reduced) -> Found | None:
        return _moved(reduced, smoothed(reduced.game, reduced.system, reduced.rows.forecasts, table))

    return _solve_reduced(game, ambiguity, propose)


def by_clusters(game: Game, ambiguity: Ambiguity, local: LocalGame, options: SolverOptions) -> Found | None:
    """Solve many rows on clusters; None where that does not apply or help."""
    if ambiguity.n_rows < max(options.many_rows, options.rows_per_moment * ambiguity.tests.n_moments):
        return None
    table = _vertices(game, local)
    if table is None:
        return None
    if table.heights.size > options.many_vertices and ambiguity.n_rows < options.rows_for_any_vertices:
        return None

    def propose(reduced: _Reduced) -> Found | None:
        found = solve_on_clusters(reduced.game, reduced.system, reduced.rows, table, options)
        if found is None:
            return None
        proposal, clusters = found
        rows = replace(reduced.rows, forecasts=clusters.forecasts, weights=clusters.weights, member=None, cache=None)
        world = repair_world(rows, clusters.system, proposal.beliefs)
        return None if world is None else (proposal.multipliers, world.take(clusters.index, axis=0))

    return _solve_reduced(game, ambiguity, propose)


def _vertices(game: Game, local: LocalGame) -> VertexTable | None:
    """Tabulate a game in natural units; rows with one action each share the corners of the space."""
    return vertex_table(normalize_game(game) if game.shared else game, local)


def by_linear_program(game: Game, ambiguity: Ambiguity) -> Found | None:
    """Ask a simplex solver, where the slack is polyhedral and the program small; None where it gives up.

    Extreme scales (weights over twelve orders, tests of size 1e8 beside slack of 0.02) are where vertices are found
    and centres are not.
    """

    def propose(reduced: _Reduced) -> Found | None:
        system = reduced.system
        entries = ambiguity.n_rows * game.dimension * (game.n_actions + system.size)
        if system.radius.size < (~system.exact).sum() or entries > _MOST_ENTRIES:
            return None
        return _moved(reduced, _linear_program(reduced.game, system, reduced.rows.forecasts))

    return _solve_reduced(game, ambiguity, propose)


def by_simpler_program(game: Game, ambiguity: Ambiguity) -> Found | None:
    """Leave out tests that are nearly combinations of others, and make slack exact where it is tiny beside its test.

    Such tests ask for multipliers that are large and cancel, so that floats may prove more without them. Tiny slack is
    hard for an interior point and nearly worthless to the adversary: worlds of the exact set are allowed, and its
    multipliers lose no more than their penalty.
    """
    slack = ambiguity.slack
    tiny = slack.radius < _TINY * slack.norms(ambiguity.tests.moment_sizes(ambiguity.space.widths))
    exact = replace(slack, radius=np.where(tiny, 0.0, slack.radius))
    try:
        return by_interior_point(game, replace(ambiguity, slack=exact), coarse=True)
    except InfeasibleError:  # the centre itself may be out of reach
        return None


def _moved(reduced: _Reduced, found: Found | None) -> Found | None:
    """Move the world of a proposal into the set, if there are both."""
    world = None if found is None else _allowed(reduced, found[1])
    return None if found is None or world is None else (found[0], world)


def _allowed(reduced: _Reduced, beliefs: FloatArray) -> FloatArray | None:
    """Move a nearly allowed world into the set, or else take a world known to be in it."""
    rows = reduced.rows
    world = repair_world(rows, reduced.system, beliefs)
    if world is None:
        return rows.forecasts if rows.slack.contains_zero else rows.member
    return world


def _any_world(reduced: _Reduced) -> FloatArray:
    """Find some allowed world, for a game in which nothing is to be had, or raise."""
    rows = reduced.rows
    nothing = Game(np.zeros((1, 1, reduced.game.dimension)), np.zeros((1, 1)), rows.space, shared=True)
    world = _allowed(reduced, interior_point(nothing, reduced.system, rows.forecasts, patience=60).beliefs)
    if world is None:
        raise InfeasibleError(EMPTY)
    return world


def _linear_program(game: Game, system: MomentSystem, forecasts: FloatArray) -> Found | None:
    """Return reduced multipliers and a world in natural units, or None where the solver gives up."""
    from scipy import sparse
    from scipy.optimize import linprog

    n, d = forecasts.shape
    m = game.n_actions
    rewards = np.broadcast_to(game.rewards, (n, m, d))
    offsets = np.broadcast_to(game.offsets, (n, m))
    heights = sparse.kron(sparse.eye(n), np.ones((m, 1)))
    epigraph = sparse.hstack([sparse.block_diag(list(rewards)), -heights], format="csr")
    tests = np.tensordot(system.flat_parts.reshape(system.size, -1, d), system.values, axes=(1, 0))
    weighted = (system.weights * tests).transpose(0, 2, 1).reshape(-1, n * d)
    moments = sparse.hstack([sparse.csr_matrix(weighted), sparse.csr_matrix((len(weighted), n))], format="csr")
    right = weighted @ forecasts.reshape(-1) + system.center
    fixed = system.exact
    loose = ~fixed
    upper = sparse.vstack([epigraph, moments[loose], -moments[loose]], format="csr")
    limits = np.concatenate([-offsets.reshape(-1), right[loose] + system.radius, system.radius - right[loose]])
    equality, targets = moments[fixed], right[fixed]
    if game.space.is_simplex:
        sums = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, d))), sparse.csr_matrix((n, n))])
        equality, targets = sparse.vstack([equality, sums], format="csr"), np.concatenate([targets, np.ones(n)])
    cost = np.concatenate([np.zeros(n * d), system.weights])
    bounds = [(0.0, 1.0)] * (n * d) + [(None, None)] * n
    solver: Any = linprog  # its stubs do not know sparse matrices
    result = solver(cost, upper, limits, equality, targets, bounds, method="highs-ds")
    if result.status != 0:
        return None
    multipliers = np.zeros(system.size)
    multipliers[fixed] = -result.eqlin.marginals[: fixed.sum()]
    prices = -result.ineqlin.marginals[n * m :]
    multipliers[loose] = prices[: system.radius.size] - prices[system.radius.size :]
    return multipliers, result.x[: n * d].reshape(n, d)


_MOST_STEPS = 8
_NEGLIGIBLE = 1e-12  # moments off by this much are rounding


def repair_world(ambiguity: Ambiguity, system: MomentSystem, beliefs: FloatArray) -> FloatArray | None:
    """Move a nearly feasible world into the ambiguity set, or return None."""
    beliefs = np.clip(beliefs, 0.0, 1.0)
    for threshold in (1e-10, 1e-9, 1e-8, 1e-7, 1e-6):
        # Where every allowed world stays with a forecast, iterations approach it without reaching it: put it there.
        near = np.abs(beliefs - ambiguity.forecasts) <= threshold
        world = np.where(near, ambiguity.forecasts, beliefs)
        if ambiguity.space.is_simplex:
            free = np.where(near, 0.0, world)
            rest = 1.0 - (world - free).sum(axis=1, keepdims=True)
            total = free.sum(axis=1, keepdims=True)
            scaled = free * np.divide(rest, total, out=np.zeros_like(total), where=(total > 0) & (rest > 0))
            world = np.where(near, world, scaled)
        moved = _correct(ambiguity, system, world)
        if moved is not None:
            return moved
    return None


def _correct(ambiguity: Ambiguity, system: MomentSystem, beliefs: FloatArray) -> FloatArray | None:
    """Bring moments to the nearest point of their slack, within the space; None if there is no room for that.

    Moments that are exact, or that were outside once, are moved by ``x_i = D_i B_i c``, where ``D_i`` vanishes at the
    boundary so that rows at a bound stay in the space.
    """
    simplex, forecasts = ambiguity.space.is_simplex, ambiguity.forecasts
    pinned = system.exact
    missing = _missing(system, beliefs - forecasts)
    for _ in range(_MOST_STEPS):
        if np.abs(missing).max(initial=0.0) <= 4 * EPSILON:
            return beliefs
        pinned = pinned | (missing != 0)
        chosen = np.flatnonzero(pinned)
        room = np.where(beliefs != forecasts, beliefs if simplex else np.minimum(beliefs, 1.0 - beliefs), 0.0)
        gram = system.gram(_movements(room.T, simplex))[np.ix_(chosen, chosen)]
        diagonal = np.diag(gram)
        # Moments that no row can change any more must not be blown up by the scaling.
        size = np.sqrt(np.maximum(diagonal, max(1e-20 * float(diagonal.max(initial=0.0)), 1e-300)))
        combination = np.zeros(system.size)
        goal = missing[chosen] / size
        combination[chosen] = np.linalg.lstsq(gram / (size[:, None] * size), goal, rcond=1e-13)[0] / size
        step = system.tilts(combination).T
        if simplex:
            shares = room / np.maximum(room.sum(axis=1, keepdims=True), 1e-300)
            step = step - (shares * step).sum(axis=1, keepdims=True)
        step = room * step
        left = np.where(step > 0, beliefs, np.inf if simplex else 1.0 - beliefs)
        if np.divide(np.abs(step), left, out=np.zeros_like(step), where=step != 0).max(initial=0.0) > 0.5:
            break
        beliefs = np.clip(beliefs - step, 0.0, 1.0)
        missing = _missing(system, beliefs - forecasts)
    return beliefs if np.abs(missing).max(initial=0.0) <= _NEGLIGIBLE else None


def _movements(room: FloatArray, simplex: bool) -> FloatArray:
    """Write ``D_i`` as upper triangles ``(d (d + 1) / 2, n)``."""
    own = np.eye(len(room))[:, :, None]
    if not simplex:
        return upper_triangles(own * room)
    shares = room / np.maximum(room.sum(axis=0), 1e-300)
    others = (1.0 - np.eye(len(room))) @ shares
    return upper_triangles((own * others - (1.0 - own) * shares[:, None]) * room)


def _missing(system: MomentSystem, residuals: FloatArray) -> FloatArray:
    """How far the reduced moments are outside their slack."""
    offset = system.moments(residuals.T) - system.center
    return offset - system.nearest_inside(offset)
