"""Any tests, any dimension, any slack: natural units, interior point, repaired world."""

from __future__ import annotations

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray
from prudent.errors import InfeasibleError
from prudent.solvers.bounds import certified_lower, repair_world
from prudent.solvers.game import Game
from prudent.solvers.interior_point import interior_point
from prudent.solvers.local import local_game
from prudent.solvers.moment_system import EMPTY, MomentSystem, reduce_moments
from prudent.solvers.units import normalize

__all__ = ["general"]


def general(game: Game, ambiguity: Ambiguity) -> tuple[FloatArray, FloatArray, int]:
    """Return multipliers, a world and the number of iterations; the world is NaN where none was found."""
    normal, rows, units = normalize(game, ambiguity)
    system = reduce_moments(rows)
    proposal = interior_point(normal, system, rows.forecasts)
    world = repair_world(rows, system, proposal.beliefs)
    if world is None:
        _refuse_if_empty(normal, rows, system, proposal.last)
        world = np.full_like(rows.forecasts, np.nan)
    return units.multipliers(system.back @ proposal.multipliers), units.outcomes(world), proposal.iterations


def _refuse_if_empty(game: Game, rows: Ambiguity, system: MomentSystem, multipliers: FloatArray) -> None:
    """Raise if some multipliers prove that no world is allowed (Farkas).

    With utilities all zero the dual is homogeneous: a positive value anywhere
    means that it is unbounded, and the iteration runs off in such a direction.
    """
    nothing = Game(np.zeros((1, 1, game.dimension)), np.zeros((1, 1)), game.space)
    for last in (multipliers, interior_point(nothing, system, rows.forecasts, patience=60).last):
        size = np.abs(last).max(initial=0.0)
        if not np.isfinite(size) or size == 0:
            continue
        if certified_lower(nothing, rows, system.back @ (last / size), local_game(nothing)) > 0:
            raise InfeasibleError(EMPTY)
