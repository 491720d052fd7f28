"""Move a world in natural units that is nearly allowed into the ambiguity set."""

import numpy as np

from prudent.arrays import EPSILON, FloatArray
from prudent.arrays.chunks import over_rows
from prudent.cases.ambiguity import Ambiguity
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.orthonormal_tests import SummedTests

_ROWS_AT_ONCE = 1 << 13
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
    boundary (see :meth:`SummedTests.gram`), so that rows at a bound stay in the space.
    """
    simplex, forecasts = ambiguity.space.is_simplex, ambiguity.forecasts
    pinned = np.zeros(system.size, dtype=bool)
    pinned[system.exact] = True
    missing = _missing(system, beliefs - forecasts)
    for _ in range(_MOST_STEPS):
        if np.abs(missing).max(initial=0.0) <= 4 * EPSILON:
            return beliefs
        pinned |= missing != 0
        chosen = np.flatnonzero(pinned)
        room = np.where(beliefs != forecasts, beliefs if simplex else np.minimum(beliefs, 1.0 - beliefs), 0.0)
        gram = _gram(system, room, simplex)[np.ix_(chosen, chosen)]
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


def _gram(system: MomentSystem, room: FloatArray, simplex: bool) -> FloatArray:
    """Sum up ``w_i B_i^T D_i B_i``."""
    coordinates = np.arange(system.dimension) if system.values.ndim == 2 else None
    tests = SummedTests(lambda part: np.moveaxis(system.values[..., part], -1, 0), coordinates)

    def inner_products(part: slice) -> FloatArray:
        return tests.gram(part, system.weights[part], room[part], simplex)

    return np.asarray(np.sum(over_rows(inner_products, len(room), _ROWS_AT_ONCE), axis=0))


def _missing(system: MomentSystem, residuals: FloatArray) -> FloatArray:
    """How far the reduced moments are outside their slack."""
    offset = system.moments(residuals.T) - system.center
    return offset - system.nearest_inside(offset)
