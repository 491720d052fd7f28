"""Where a policy plays something else, seen from one forecast.

With one coordinate the search is exact for built-in guarantees: between bin
edges, region borders and turning points of the tilt, the tilt is monotone, and
so is what is played; bisection over doubles then finds the change, up to the
rounding of the tilt. In more coordinates, and for tests that are functions, changes are found
on a grid along directions and bisected: there is one at the stated distance,
and there may be a nearer one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial as Series
from numpy.typing import NDArray

from prudent.arrays import FloatArray
from prudent.guarantees import (
    And,
    Binned,
    Classwise,
    DecisionCalibrated,
    Guarantee,
    LogOdds,
    Nothing,
    Polynomial,
    SelfOrthogonal,
    Temperature,
    Unbiased,
    UtilityCalibrated,
)
from prudent.policies.base import Policy
from prudent.policies.floats import first_among, neighbours
from prudent.policies.reference import SafetyPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Game
from prudent.solvers.envelope import upper_envelope
from prudent.spaces import Box, Label

__all__ = ["NextAction", "accepted_points", "monotone_path", "next_actions", "turning_points"]

_STEPS = 400
_ROUNDING_ULPS = 64


@dataclass(frozen=True)
class NextAction:
    """A forecast near another at which other actions are played.

    Attributes
    ----------
    direction : str
        Where to go: "up", "down", "y[1] up", "towards y[b]".
    distance : float
        Of the forecasts, in outcome units; along a direction of several coordinates the largest single change.
    forecast : tuple of float
        The first forecast in this direction, up to rounding, where other actions are possible.
    played : tuple
        The actions with positive probability there.
    exact : bool
        True if nothing nearer in this direction plays otherwise; else ``distance`` is an upper bound.
    """

    direction: str
    distance: float
    forecast: tuple[float, ...]
    played: tuple[Label, ...]
    exact: bool


def next_actions(policy: Policy, forecast: FloatArray) -> tuple[NextAction, ...]:
    """Find the nearest change in every direction; nearest first."""
    if isinstance(policy, SafetyPolicy):
        return ()
    space = policy._problem.space
    directions: list[tuple[str, FloatArray]] = []
    if isinstance(space, Box):
        low, high = space.bounds
        for j, name in enumerate(space.coordinate_names):
            prefix = "" if space.dimension == 1 else f"{name} "
            for word, end in (("up", high[j]), ("down", low[j])):
                target = forecast.copy()
                target[j] = end
                directions.append((prefix + word, target))
    else:
        corners = np.eye(space.dimension)
        directions += [
            (f"towards {name}", corner) for name, corner in zip(space.coordinate_names, corners, strict=True)
        ]
    knots = turning_points(policy) if space.dimension == 1 else None
    found = [_first_change(policy, forecast, target, word, knots) for word, target in directions]
    return tuple(sorted((change for change in found if change is not None), key=lambda change: change.distance))


def _first_change(
    policy: Policy, forecast: FloatArray, target: FloatArray, direction: str, knots: FloatArray | None
) -> NextAction | None:
    """Walk from a forecast to a target, and bisect where what is played changes."""

    def at(shares: FloatArray) -> FloatArray:
        way = forecast + shares[:, None] * (target - forecast)
        return np.where(shares[:, None] < 1, way, target)

    played = _supports(policy, forecast[None])

    def differ(points: FloatArray) -> NDArray[np.bool_]:
        return np.asarray((_supports(policy, points) != played).any(axis=1))

    if knots is not None:
        start, end = float(forecast[0]), float(target[0])
        way = np.array(monotone_path(start, end, knots))
        path = way[accepted_points(policy, way[:, None])]
        hits = np.flatnonzero(differ(path[:, None])) if path.size else path
        if hits.size == 0:
            return None
        before = float(path[hits[0] - 1]) if hits[0] else start
        # Mirrored where the way leads down, since the bisection goes up.
        sign = 1.0 if end > start else -1.0
        first = first_among(lambda v: differ(sign * v[:, None]), sign * before, sign * float(path[hits[0]]))
        point = np.array([sign * first])
    else:
        shares = np.linspace(0, 1, _STEPS + 1)[1:]
        points = at(shares)
        inside = np.flatnonzero(accepted_points(policy, points))
        hits = inside[differ(points[inside])] if inside.size else inside
        if hits.size == 0:
            return None
        before = float(shares[hits[0] - 1]) if hits[0] else 0.0
        point = at(np.array([first_among(lambda v: differ(at(v)), before, float(shares[hits[0]]))]))[0]
    actions = np.flatnonzero(_supports(policy, point[None])[0])
    return NextAction(
        direction,
        float(np.abs(point - forecast).max()),
        tuple(point.tolist()),
        tuple(policy._problem.actions[a] for a in actions),
        exact=knots is not None,
    )


def monotone_path(start: float, end: float, knots: FloatArray) -> list[float]:
    """Points from start to end between which a rule is monotone: every knot with its neighbours by rounding."""
    around = neighbours(np.concatenate([knots, [start]]), _ROUNDING_ULPS)
    low, high = min(start, end), max(start, end)
    inside = np.unique(np.append(around[(around >= low) & (around <= high) & (around != start)], end))
    return inside.tolist() if end > start else inside[::-1].tolist()


def _supports(policy: Policy, points: FloatArray) -> NDArray[np.bool_]:
    return policy._mixtures(points) > 0


def accepted_points(policy: Policy, points: FloatArray) -> NDArray[np.bool_]:
    """Mark points that the guarantee takes: logarithms exclude the boundary, bins what lies outside all of them."""
    accepted = np.ones(len(points), dtype=bool)
    low, high = policy._problem.space.bounds
    if getattr(policy, "multipliers_", None) is None:
        return accepted
    for part in _parts(policy.guarantee_):
        if isinstance(part, (LogOdds, Temperature)):
            accepted &= ((points > low) & (points < high)).all(axis=1)
        elif isinstance(part, Binned):
            accepted &= (points[:, 0] >= part.edges[0]) & (points[:, 0] <= part.edges[-1])
    return accepted


def turning_points(policy: Policy) -> FloatArray | None:
    """Where a one-dimensional rule may turn; None if its tests are unknown functions."""
    problem = policy._problem
    low, high = (float(bound[0]) for bound in problem.space.bounds)
    multipliers = getattr(policy, "multipliers_", None)
    if multipliers is None:
        return _switches(problem)
    knots: list[float] = []
    curve, logarithm = Series([0.0]), 0.0
    taken = 0
    flat = multipliers.reshape(-1)
    for part in _parts(policy.guarantee_):
        size = part.evaluate(np.array([[(low + high) / 2]]), problem.space).n_moments
        values = flat[taken : taken + size]
        taken += size
        if isinstance(part, (Unbiased, SelfOrthogonal, Nothing)):
            slope = values[-1] if isinstance(part, SelfOrthogonal) else 0.0
            curve += Series([0.0, slope * (high - low)])
        elif isinstance(part, Polynomial):
            curve += Series(values)
        elif isinstance(part, (LogOdds, Temperature)):
            logarithm += values[-1]
        elif isinstance(part, Binned):
            knots += part.edges
        elif isinstance(part, Classwise):
            knots += np.linspace(low, high, part.n_bins + 1).tolist()
        elif isinstance(part, (DecisionCalibrated, UtilityCalibrated)):
            knots += [knot for member in part.problems for knot in _switches(member).tolist()]
        else:
            return None
    # In z = (v - lo) / (hi - lo) the derivative is curve'(z) + logarithm / (z (1 - z)).
    turning = curve.deriv() * Series([0.0, 1.0, -1.0]) + logarithm
    roots = turning.trim().roots()
    real = roots[np.abs(roots.imag) < 1e-9].real if roots.size else np.zeros(0)
    inside = real[(real > 0) & (real < 1)]
    knots += (low + (high - low) * inside).tolist()
    # Ends too: where logarithms exclude them, their neighbours stand for them.
    return np.array([*knots, low, high])


def _switches(problem: DecisionProblem) -> FloatArray:
    return upper_envelope(Game.of_problem(problem)).points


def _parts(guarantee: Guarantee) -> list[Guarantee]:
    if isinstance(guarantee, And):
        return [inner for part in guarantee.parts for inner in _parts(part)]
    return [guarantee]
