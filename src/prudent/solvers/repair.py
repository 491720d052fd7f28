"""Move a world in natural units that is nearly allowed into the ambiguity set."""

import numpy as np

from prudent.arrays import EPSILON, BoolArray, FloatArray, IntArray
from prudent.arrays.chunks import over_rows
from prudent.cases.ambiguity import Ambiguity
from prudent.solvers.moment_system import MomentSystem
from prudent.spaces import Space

_ROWS_AT_ONCE = 1 << 13
_SMALL_MIX = 1e-7
_NEGLIGIBLE = 1e-12  # moments off by this much are rounding
_INSIDE = 1e-11  # share of the anchor that puts moments inside their slack for sure


class InteriorMetric:
    """Directions in which worlds may move: ``D(q) s`` vanishes where ``q`` meets the boundary, so no row leaves it.

    ``D`` is the distance to the nearer bound on a box and ``diag(m) - m m^T / sum m`` on the simplex, with the part
    ``m`` of ``q`` that is ``free`` to move. It is never written out for all rows: in ten dimensions it has a hundred
    numbers a row. Points have shape ``(d, n)``.
    """

    def __init__(self, points: FloatArray, free: BoolArray, space: Space) -> None:
        self._simplex = space.is_simplex
        self._room = np.where(free, points if self._simplex else np.minimum(points, 1.0 - points), 0.0)
        self._shares = self._room / np.maximum(self._room.sum(axis=0), 1e-300) if self._simplex else self._room

    def gram(self, system: MomentSystem) -> FloatArray:
        """Inner products of tests, ``sum_i w_i B_i^T D_i B_i``."""
        first, second = np.triu_indices(len(self._room))

        def inner_products(part: slice) -> FloatArray:
            room, shares = self._room[:, part], self._shares[:, part]
            upper = -shares[first] * room[second] if self._simplex else np.zeros((first.size, room.shape[1]))
            upper[first == second] += room
            return system.part(part).gram(upper)

        gram: FloatArray = np.sum(over_rows(inner_products, self._room.shape[1], _ROWS_AT_ONCE), axis=0)
        return gram

    def apply(self, tilts: FloatArray) -> FloatArray:
        """Compute ``D_i s_i`` for tilts ``(d, n)``."""
        if self._simplex:
            tilts = tilts - np.einsum("dn,dn->n", self._shares, tilts)
        return self._room * tilts


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
    beliefs = np.clip(beliefs, 0.0, 1.0)
    best, least = anchor, 1.0
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
    if np.abs(missing).max(initial=0.0) <= _NEGLIGIBLE:
        return corrected, 0.0
    if anchor is None:
        pinned = system.exact
        for _ in range(3):
            pinned = np.union1d(pinned, np.flatnonzero(missing))
            corrected = _correct(ambiguity, system, corrected, pinned)
            if corrected is None:
                return None
            missing = _missing(system, corrected - ambiguity.forecasts)
            if np.abs(missing).max(initial=0.0) <= _NEGLIGIBLE:
                return corrected, 0.0
        return None
    outside, inside = _sizes(system, corrected - ambiguity.forecasts), _sizes(system, anchor - ambiguity.forecasts)
    radii = np.concatenate([system.radius, system.ball_radius])
    excess = np.where(outside > radii, outside - radii, 0.0) / np.maximum(outside - np.minimum(inside, radii), 1e-300)
    share = min(1.0, float(excess.max(initial=0.0)) * (1 + 1e-9) + _INSIDE)
    return (1.0 - share) * corrected + share * anchor, share


def _sizes(system: MomentSystem, residuals: FloatArray) -> FloatArray:
    """How far reduced moments with slack are from its centre."""
    offset = system.moments(residuals.T) - system.center
    return np.concatenate([np.abs(offset[system.interval]), np.sqrt((offset[system.balls] ** 2).sum(axis=1))])


def _correct(ambiguity: Ambiguity, system: MomentSystem, beliefs: FloatArray, chosen: IntArray) -> FloatArray | None:
    """Bring the chosen moments to their place within the space; None if there is no room for that."""
    for _ in range(4):
        missing = _missing(system, beliefs - ambiguity.forecasts)[chosen]
        if np.abs(missing).max(initial=0.0) <= 4 * EPSILON:
            return beliefs
        metric = InteriorMetric(beliefs.T, (beliefs != ambiguity.forecasts).T, ambiguity.space)
        gram = metric.gram(system)[np.ix_(chosen, chosen)]
        diagonal = np.diag(gram)
        # Moments that no row can change any more must not be blown up by the scaling.
        size = np.sqrt(np.maximum(diagonal, max(1e-20 * float(diagonal.max(initial=0.0)), 1e-300)))
        combination = np.zeros(system.size)
        combination[chosen] = np.linalg.lstsq(gram / (size[:, None] * size), missing / size, rcond=1e-13)[0] / size
        step = metric.apply(system.tilts(combination)).T
        room = np.where(step > 0, beliefs, np.inf if ambiguity.space.is_simplex else 1.0 - beliefs)
        used = np.divide(np.abs(step), room, out=np.zeros_like(step), where=step != 0)
        if used.max(initial=0.0) > 0.5:
            break
        beliefs = np.clip(beliefs - step, 0.0, 1.0)
    missing = _missing(system, beliefs - ambiguity.forecasts)[chosen]
    return beliefs if np.abs(missing).max(initial=0.0) <= _NEGLIGIBLE else None


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
