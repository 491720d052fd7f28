"""Move a world that is nearly allowed into the ambiguity set, so that its value is an upper bound."""

from __future__ import annotations

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.solvers.interior_metric import InteriorMetric
from prudent.solvers.moment_system import MomentSystem
from prudent.spaces import Simplex

__all__ = ["repair_world"]

_SMALL_MIX = 1e-7
_EPSILON = float(np.finfo(np.float64).eps)


def repair_world(
    ambiguity: Ambiguity, system: MomentSystem, beliefs: FloatArray, anchor: FloatArray | None
) -> FloatArray | None:
    """Move a nearly feasible world into the ambiguity set, or return None.

    Moments that must be exact are corrected by ``x_i = T_i B_i c``, where
    ``T_i`` vanishes at the boundary (distance to it on a box, ``diag(q) - q q^T``
    on the simplex), so that rows at a bound stay in the space. Moments with
    slack come inside by mixing with a world known to be in the middle, the
    anchor, or by correcting them as well where no such world is known.
    """
    low, high = ambiguity.space.bounds
    beliefs = np.clip(beliefs, low, high)
    boundary = np.minimum(ambiguity.forecasts - low, high - ambiguity.forecasts) / (high - low)
    best, least = anchor, 1.0
    for threshold in (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6):
        # Where every allowed world stays with a forecast at (or next to) the boundary, the iteration approaches it
        # without reaching it: put it there.
        near = np.abs(beliefs - ambiguity.forecasts) <= threshold * (high - low)
        stuck = near & (boundary <= threshold)
        world = np.where(stuck, ambiguity.forecasts, beliefs)
        if isinstance(ambiguity.space, Simplex):
            world = world / world.sum(axis=1, keepdims=True)
        moved = _come_inside(ambiguity, system, world, anchor)
        if moved is not None and moved[1] < least:
            best, least = moved
        if least <= _SMALL_MIX:
            break
    return best


def _come_inside(
    ambiguity: Ambiguity, system: MomentSystem, world: FloatArray, anchor: FloatArray | None
) -> tuple[FloatArray, float] | None:
    """Correct the exact moments, then the others; return the world and the share of the anchor in it."""
    corrected = _correct(ambiguity, system, world, system.exact)
    if corrected is None:
        return None
    missing = _missing(system, corrected - ambiguity.forecasts)
    if np.abs(missing).max(initial=0.0) <= _negligible(ambiguity):
        return corrected, 0.0
    if anchor is None:
        pinned = system.exact
        for _ in range(3):
            pinned = np.union1d(pinned, np.flatnonzero(missing))
            corrected = _correct(ambiguity, system, corrected, pinned)
            if corrected is None:
                return None
            missing = _missing(system, corrected - ambiguity.forecasts)
            if np.abs(missing).max(initial=0.0) <= _negligible(ambiguity):
                return corrected, 0.0
        return None
    offset = system.moments((corrected - ambiguity.forecasts).T) - system.center
    sizes = np.concatenate([np.abs(offset[system.interval]), np.sqrt((offset[system.balls] ** 2).sum(axis=1))])
    radii = np.concatenate([system.radius, system.ball_radius])
    outside_by = 1.0 - radii / np.maximum(sizes, 1e-300)
    share = min(1.0, max(0.0, float(outside_by.max(initial=0.0))) * (1 + 1e-9) + 4 * _EPSILON)
    return (1.0 - share) * corrected + share * anchor, share


def _correct(ambiguity: Ambiguity, system: MomentSystem, beliefs: FloatArray, chosen: IntArray) -> FloatArray | None:
    """Bring the chosen moments to their place within the space; None if there is no room for that."""
    low, high = ambiguity.space.bounds
    simplex = isinstance(ambiguity.space, Simplex)
    for _ in range(4):
        missing = _missing(system, beliefs - ambiguity.forecasts)[chosen]
        if np.abs(missing).max(initial=0.0) <= 4 * _EPSILON * float((high - low).max()):
            return beliefs
        metric = InteriorMetric(beliefs.T, ambiguity.space)
        gram = metric.gram(system)[np.ix_(chosen, chosen)]
        diagonal = np.diag(gram)
        # Moments that no row can change any more must not be blown up by the scaling.
        size = np.sqrt(np.maximum(diagonal, max(1e-20 * float(diagonal.max(initial=0.0)), 1e-300)))
        combination = np.zeros(system.size)
        combination[chosen] = np.linalg.lstsq(gram / (size[:, None] * size), missing / size, rcond=1e-13)[0] / size
        step = metric.apply(system.tilts(combination)).T
        room = np.where(step > 0, beliefs - low, np.inf if simplex else high - beliefs)
        used = np.divide(np.abs(step), room, out=np.zeros_like(step), where=step != 0)
        if used.max(initial=0.0) > 0.5:
            break
        beliefs = np.clip(beliefs - step, low, high)
    missing = _missing(system, beliefs - ambiguity.forecasts)[chosen]
    return beliefs if np.abs(missing).max(initial=0.0) <= _negligible(ambiguity) else None


def _negligible(ambiguity: Ambiguity) -> float:
    """Moments off by this much are rounding; the upper bound charges for them."""
    low, high = ambiguity.space.bounds
    return 1e-12 * float((high - low).max())


def _missing(system: MomentSystem, residuals: FloatArray) -> FloatArray:
    """How far the reduced moments are outside their slack."""
    offset = system.moments(residuals.T) - system.center
    missing = offset.copy()
    missing[system.interval] -= np.clip(offset[system.interval], -system.radius, system.radius)
    inside = offset[system.balls]
    norms = np.sqrt((inside**2).sum(axis=1))
    excess = np.maximum(0.0, 1.0 - system.ball_radius / np.maximum(norms, 1e-300))
    missing[system.balls] = inside * excess[:, None]
    return missing
