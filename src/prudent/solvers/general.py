"""Any tests, any dimension, any slack: natural units, interior point on rows or cells, repaired world."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from prudent.ambiguity import Ambiguity, SlackSet
from prudent.arrays import FloatArray
from prudent.chunks import one_blas_thread
from prudent.compiled import worth_compiling
from prudent.errors import InfeasibleError
from prudent.solvers.bounds import certified_lower
from prudent.solvers.game import Game
from prudent.solvers.interior_point import interior_point
from prudent.solvers.linear_program import linear_program, linear_program_applies
from prudent.solvers.local import LocalGame, local_game
from prudent.solvers.moment_reduction import EMPTY, reduce_moments
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.refinement import refined
from prudent.solvers.repair import repair_world
from prudent.solvers.softened_dual import softened
from prudent.solvers.units import normalize
from prudent.solvers.vertex_table import vertex_table

__all__ = ["general", "second_opinion", "through_cells", "through_softening", "without_small_slack"]

_TINY = 1e-5
_ROWS_FOR_THREADS = 1_000
_MANY_ROWS = 4_000
# Cells must be far fewer than rows to pay, and there are more of them the more moments and vertices there are.
_ROWS_PER_MOMENT = 150
_MOST_VERTICES = 1_000
_ROWS_FOR_ANY_VERTICES = 100_000
_ROWS_FOR_A_SMOOTH_DUAL = 300  # per moment


def general(game: Game, ambiguity: Ambiguity, stand_for: int = 0) -> tuple[FloatArray, FloatArray, int]:
    """Return multipliers, a world and the number of iterations; rows may stand for more that were merged."""
    normal, rows, units = normalize(game, ambiguity)
    system = reduce_moments(rows)
    with _one_thread(rows.n_rows):
        many, long = (worth_compiling(n * game.dimension) for n in (rows.n_rows, stand_for))
        proposal = interior_point(normal, system, rows.forecasts, many=many, long=long)
    world = repair_world(rows, system, proposal.beliefs, _anchor(rows))
    if world is None:
        world = _any_world(normal, rows, system, proposal.last.multipliers)
    return units.multipliers(system.back @ proposal.multipliers), units.outcomes(world), proposal.iterations


def _one_thread(n_rows: int) -> AbstractContextManager[object]:
    """Keep products with few columns on one thread; for few rows even asking for it takes too long."""
    return one_blas_thread() if n_rows >= _ROWS_FOR_THREADS else nullcontext()


def through_softening(game: Game, ambiguity: Ambiguity, local: LocalGame) -> tuple[FloatArray, FloatArray, int] | None:
    """Solve many rows with a soft minimum over many vertices; None where that does not apply or help."""
    if game.dimension == 1 or game.n_actions == 1:
        return None
    # A row that outweighs many others makes the dual as rough as few rows do.
    rows_that_count = 1.0 / float(ambiguity.weights @ ambiguity.weights)
    if rows_that_count < max(_MANY_ROWS, _ROWS_FOR_A_SMOOTH_DUAL * ambiguity.tests.n_moments):
        return None
    normal, rows, units = normalize(game, ambiguity)
    table = vertex_table(normal, local)
    if table is None or table.heights.size <= _MOST_VERTICES:
        return None
    system = reduce_moments(rows)
    with _one_thread(rows.n_rows):
        found = softened(normal, system, rows.forecasts, table)
    if found is None:
        return None
    world = repair_world(rows, system, found.beliefs, _anchor(rows))
    if world is None:
        return None
    return units.multipliers(system.back @ found.multipliers), units.outcomes(world), found.iterations


def through_cells(game: Game, ambiguity: Ambiguity, local: LocalGame) -> tuple[FloatArray, FloatArray, int] | None:
    """Solve many rows on cells that are refined where it matters; None where that does not apply or help."""
    if ambiguity.n_rows < max(_MANY_ROWS, _ROWS_PER_MOMENT * ambiguity.tests.n_moments):
        return None
    normal, rows, units = normalize(game, ambiguity)
    table = vertex_table(normal, local)
    if table is None or (table.heights.size > _MOST_VERTICES and rows.n_rows < _ROWS_FOR_ANY_VERTICES):
        return None
    system = reduce_moments(rows)
    with _one_thread(rows.n_rows):
        found = refined(normal, system, rows.forecasts, table)
    if found is None:
        return None
    cells = found.cells
    parts = replace(rows, forecasts=cells.forecasts, weights=cells.weights, member=None)
    world = repair_world(parts, cells.system, found.beliefs, anchor=None)
    if world is None:
        return None
    beliefs = units.outcomes(world).take(cells.index, axis=0)
    return units.multipliers(system.back @ found.multipliers), beliefs, found.iterations


def second_opinion(game: Game, ambiguity: Ambiguity) -> tuple[FloatArray, FloatArray] | None:
    """Ask a simplex solver for multipliers and a world; None where it does not apply or gives up."""
    normal, rows, units = normalize(game, ambiguity)
    system = reduce_moments(rows)
    if not linear_program_applies(normal, system, rows.n_rows):
        return None
    answer = linear_program(normal, system, rows.forecasts)
    if answer is None:
        return None
    world = repair_world(rows, system, answer[1], _anchor(rows))
    if world is None:
        return None
    return units.multipliers(system.back @ answer[0]), units.outcomes(world)


def without_small_slack(ambiguity: Ambiguity) -> Ambiguity | None:
    """Make slack exact where it is tiny beside its test; None if there is no such slack.

    Tiny slack is hard for an interior point and nearly worthless to the
    adversary: worlds of the exact set are allowed, and its multipliers lose
    no more than their penalty.
    """
    tests, slack = ambiguity.tests, ambiguity.slack
    low, high = ambiguity.space.bounds
    reach = (np.abs(tests.as_vector().values).max(axis=0) * (high - low)).sum(axis=1)
    if slack.ball:
        largest = np.zeros(slack.radius.size)
        np.maximum.at(largest, slack.groups, reach)
        reach = largest
    small = (slack.radius > 0) & (slack.radius < _TINY * reach)
    if not small.any():
        return None
    radius = np.where(small, 0.0, slack.radius)
    return replace(ambiguity, slack=SlackSet(slack.center, radius, slack.groups, slack.ball))


def _anchor(rows: Ambiguity) -> FloatArray | None:
    """Return a world known to be in the middle of the slack."""
    return rows.forecasts if rows.slack.zero_centered else rows.member


def _any_world(game: Game, rows: Ambiguity, system: MomentSystem, multipliers: FloatArray) -> FloatArray:
    """Find some allowed world, or raise; multipliers may prove that there is none (Farkas).

    With utilities all zero the dual is homogeneous: a positive value anywhere
    means that it is unbounded, and the iteration runs off in such a direction.
    """
    nothing = Game(np.zeros((1, 1, game.dimension)), np.zeros((1, 1)), game.space, shared=True)
    central = interior_point(nothing, system, rows.forecasts, patience=60)
    for last in (multipliers, central.last.multipliers):
        size = np.abs(last).max(initial=0.0)
        if not np.isfinite(size) or size == 0:
            continue
        if certified_lower(nothing, rows, system.back @ (last / size), local_game(nothing)) > 0:
            raise InfeasibleError(EMPTY)
    world = repair_world(rows, system, central.beliefs, _anchor(rows))
    if world is None:  # not proven empty, yet too thin to hold a world in floats
        raise InfeasibleError(EMPTY)
    return world
