"""Certificates: bounds that hold whatever produced the multipliers and the world.

Lower: for *any* multipliers and *any* mixtures, weak duality gives
``worst(pi) >= sum_i w_i [c.pi_i + min_p p.(R^T pi_i + s_i) - s_i.v_i] - sigma_S(L)``
(docs/theory.md, section 2). Upper: any world ``q`` in the ambiguity set holds every
policy to ``E val(q)``. Both are rounded outward.

Outcomes are measured from the lower corner of the space and utilities from
their mean there, so that a far-away origin costs no digits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from typing import Any

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray
from prudent.chunks import over_rows
from prudent.compiled import compiled, rows_at_once, worth_compiling
from prudent.narrow import largest_in_rows, smallest_in_rows
from prudent.solvers import bound_loops, scalar_loops
from prudent.solvers.envelope import Envelope
from prudent.solvers.game import Game
from prudent.solvers.local import LocalGame, local_game
from prudent.spaces import Simplex, Space

__all__ = ["best_utilities", "certified_lower", "certified_upper", "certified_value"]

_ELEMENTS_AT_ONCE = 1 << 21
_NARROW = 16  # tests; with more of them it pays to go through the rows once for each
_EPSILON = float(np.finfo(np.float64).eps)
_NEARLY_ALLOWED = 1e-9  # how far moments may be off by rounding, as a share of what the space lets them be


def certified_lower(game: Game, ambiguity: Ambiguity, multipliers: FloatArray, local: LocalGame) -> float:
    """Compute the dual value ``G(L)`` with the mixtures that will be played, rounded down."""
    low, high = game.space.bounds
    width = high - low
    offsets, common = game.at_corner
    moved = Game(game.rewards, offsets, game.space, game.shared)
    loop = compiled(scalar_loops.guarantee_blocks, ambiguity.n_rows) if isinstance(local, Envelope) else None

    def guaranteed(part: slice) -> tuple[float, float]:
        if loop is not None and isinstance(local, Envelope):
            tests, forecasts, weights = _columns(ambiguity, part)
            heights, chords = offsets[0][local.actions], local.chords
            sums = loop(
                tests, multipliers, forecasts, weights, local.slopes, heights, chords, float(low[0]), float(width[0])
            ).sum(axis=1)
            return float(sums[0]), float(sums[1] * width[0])
        rows = ambiguity.take(part)
        if isinstance(local, Envelope):
            tilts = rows.tests.tilts(multipliers)
            constant, direction = local.mixed(tilts[:, 0], offsets[0])
            worst = constant + _least(game.space, direction[:, None])
            worst -= tilts[:, 0] * (rows.forecasts[:, 0] - low[0])
        elif game.n_actions == 1:  # there is nothing to mix
            worst = _worst_of_actions(moved.take(part), rows, multipliers)
        else:
            tilts = rows.tests.tilts(multipliers)
            mixtures = (local if game.shared else local_game(game.take(part))).mixtures(tilts, rows.forecasts)
            worst = _worst_of_mixtures(moved.take(part), mixtures, tilts, _from_corner(rows.forecasts, low))
        return float((rows.weights * worst).sum()), rows.tests.reach(multipliers, rows.weights, width)

    parts = over_rows(guaranteed, ambiguity.n_rows, _rows_at_once(ambiguity, loop))
    total, reach = fsum(part[0] for part in parts), fsum(part[1] for part in parts)
    penalty = ambiguity.slack.support(multipliers)
    # Everything that was added up: each operation errs by at most epsilon of it. Tilts may cancel, so what they
    # are made of counts at full size.
    margin = _rounding(ambiguity, game, loop is not None) * (game.largest_utility + 2 * reach + abs(penalty))
    return total - penalty - margin + common - 2 * _EPSILON * abs(common)


def certified_upper(game: Game, ambiguity: Ambiguity, beliefs: FloatArray, multipliers: FloatArray) -> float:
    """Compute ``E val(q)`` for a world in the ambiguity set, rounded up.

    Moments that miss the set by rounding are charged at the price of the
    multipliers, which is what the optimum changes by to first order. A world
    that misses it by more proves nothing, and a bound that needs no proof
    stands in for it.
    """
    low, high = game.space.bounds
    offsets, common = game.at_corner
    moved = Game(game.rewards, offsets, game.space, game.shared)
    scalar = game.shared and game.dimension == 1
    loop = compiled(scalar_loops.hold_blocks, ambiguity.n_rows) if scalar else None

    def held_to(part: slice) -> tuple[float, FloatArray]:
        if loop is not None:
            tests, forecasts, weights = _columns(ambiguity, part)
            world, slopes = np.ascontiguousarray(beliefs[part, 0]), np.ascontiguousarray(game.rewards[0, :, 0])
            sums = loop(tests, forecasts, world, weights, slopes, offsets[0], float(low[0])).sum(axis=1)
            return float(sums[0]), sums[1:]
        rows = ambiguity.take(part)
        best, sums = _held_rows(moved.take(part), rows, beliefs[part])
        return float((rows.weights * best).sum()), sums

    parts = over_rows(held_to, ambiguity.n_rows, _rows_at_once(ambiguity, loop))
    value, moments = fsum(part[0] for part in parts), np.sum([part[1] for part in parts], axis=0)
    missed = moments - ambiguity.slack.project(moments)
    if missed.any() and (np.abs(missed) > _NEARLY_ALLOWED * ambiguity.tests.moment_sizes(high - low)).any():
        if ambiguity.slack.zero_centered:  # the forecasts themselves are allowed
            return certified_value(game, ambiguity)[1]
        return common + game.largest_utility * (1 + _rounding(ambiguity, game, looped=False))
    margin = _rounding(ambiguity, game, loop is not None) * game.largest_utility
    return value + abs(float(multipliers @ missed)) + margin + common + 2 * _EPSILON * abs(common)


def certified_value(game: Game, ambiguity: Ambiguity) -> tuple[float, float]:
    """Compute ``E val(v)``, the value where the forecasts are the only world, rounded down and up."""
    offsets, common = game.at_corner
    moved = Game(game.rewards, offsets, game.space, game.shared)
    distances = ambiguity.forecasts - game.space.bounds[0]
    value = fsum(ambiguity.weights * largest_in_rows(moved.utilities(distances))) + common
    margin = _rounding(ambiguity, game, looped=False) * game.largest_utility + 2 * _EPSILON * abs(common)
    return value - margin, value + margin


def _from_corner(points: FloatArray, low: FloatArray) -> FloatArray:
    """Measure points from the lower corner of the space, which often is the origin."""
    return points - low if low.any() else points


def _columns(ambiguity: Ambiguity, part: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Tests ``(k, rows)``, forecasts and weights of some rows, each number next to that of the following row."""
    values = ambiguity.tests.values[part]
    tests = np.ascontiguousarray(values.reshape(len(values), -1).T)
    return tests, np.ascontiguousarray(ambiguity.forecasts[part, 0]), scalar_loops.loop_weights(ambiguity.weights[part])


def _rows_at_once(ambiguity: Ambiguity, loop: Callable[..., Any] | None) -> int | None:
    """Rows for one call: loops that write a number per row leave few temporaries, beside tests and mixtures."""
    if loop is not None or not worth_compiling(ambiguity.n_rows):
        return rows_at_once(loop)
    return int(np.clip(_ELEMENTS_AT_ONCE // max(1, ambiguity.tests.table.shape[1]), 1 << 15, 1 << 17))


def _held_rows(game: Game, rows: Ambiguity, beliefs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute ``val`` at every belief of a world, and the world's moments."""
    low, tests = game.space.bounds[0], rows.tests
    factors = tests.factors(np.zeros(tests.n_moments)) if game.dimension > 1 else None
    few = factors is not None and len(factors) <= _NARROW
    loop = compiled(bound_loops.hold_rows, beliefs.size) if few else None
    if loop is None:
        return best_utilities(game, beliefs - low), rows.moments(beliefs)
    best, residuals = np.empty(rows.n_rows), np.empty((game.dimension, rows.n_rows))
    given = (np.ascontiguousarray(array) for array in (rows.weights, game.rewards, game.offsets))
    loop(rows.forecasts, np.ascontiguousarray(beliefs), low, *given, best, residuals)
    return best, tests.combined(tests.table.T @ residuals.T)


def _worst_of_actions(game: Game, rows: Ambiguity, multipliers: FloatArray) -> FloatArray:
    """Compute what each row's only action gets at worst, see below."""
    low, high = game.space.bounds
    factors = rows.tests.factors(multipliers)
    few = factors is not None and len(factors) <= _NARROW
    loop = compiled(bound_loops.worst_of_actions, rows.forecasts.size) if few else None
    if loop is None:
        mixtures = np.ones((rows.n_rows, 1))
        return _worst_of_mixtures(game, mixtures, rows.tests.tilts(multipliers), rows.forecasts - low)
    worst, simplex = np.empty(rows.n_rows), isinstance(game.space, Simplex)
    given = np.ascontiguousarray(game.rewards), np.ascontiguousarray(game.offsets), high - low, simplex
    loop(rows.tests.table, np.ascontiguousarray(factors), rows.forecasts, low, *given, worst)
    return worst


def _worst_of_mixtures(game: Game, mixtures: FloatArray, tilts: FloatArray, distances: FloatArray) -> FloatArray:
    """Compute ``c.pi + min_p p.(R^T pi + s) - s.v`` of every row, outcomes measured from the space's lower corner."""
    loop = compiled(bound_loops.worst_of_mixtures, tilts.size)
    if loop is not None:
        low, high = game.space.bounds
        worst = np.empty(len(tilts))
        given = np.ascontiguousarray(game.rewards), np.ascontiguousarray(game.offsets), high - low
        loop(tilts, distances, mixtures, *given, isinstance(game.space, Simplex), worst)
        return worst
    worst = np.einsum("nm,nm->n", np.broadcast_to(game.offsets, mixtures.shape), mixtures)
    worst += _least(game.space, game.mixed_rewards(mixtures) + tilts)
    worst -= np.einsum("nd,nd->n", tilts, distances)
    return worst


def _least(space: Space, directions: FloatArray) -> FloatArray:
    """Compute ``min_p p.x`` for each direction ``x``, points measured from the space's lower corner."""
    if isinstance(space, Simplex):
        return smallest_in_rows(directions)
    low, high = space.bounds
    return np.einsum("nd,d->n", np.minimum(directions, 0.0), high - low)


def best_utilities(game: Game, points: FloatArray) -> FloatArray:
    """Compute ``val`` at each point; action by action where there is one coordinate, without a table of all."""
    if game.dimension > 1 or not game.shared:
        loop = compiled(bound_loops.best_of_rows, points.size)
        if loop is None:
            return largest_in_rows(game.utilities(points))
        best = np.empty(len(points))
        loop(points, np.ascontiguousarray(game.rewards), np.ascontiguousarray(game.offsets), best)
        return best
    coordinate = points[:, 0]
    best = np.full(coordinate.size, -np.inf)
    for slope, offset in zip(game.rewards[0, :, 0], game.offsets[0], strict=True):
        np.maximum(best, coordinate * slope + offset, out=best)
    return best


def _rounding(ambiguity: Ambiguity, game: Game, looped: bool) -> float:
    """Relative rounding of what is added up.

    NumPy sums blocks of 128 numbers in eight strands and the blocks pairwise, so a chunk of rows errs by at most
    ``16 + log2(rows)`` epsilon; chunks are then added exactly. Compiled loops add up a block of rows in any order
    first, which errs by at most its length. Short dot products err by their length.
    """
    depth = np.log2(ambiguity.n_rows + 1) + game.n_actions + game.dimension + ambiguity.tests.n_tests + 24
    return float(depth + scalar_loops.BLOCK * looped) * _EPSILON
