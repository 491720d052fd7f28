"""A policy on one coordinate as a table of thresholds: which actions are played between which forecasts.

For built-in guarantees the search is exact: between bin edges, region borders and turning points of the tilt, the tilt
is monotone, and so is what is played; bisection over doubles then finds the change, up to the rounding of the tilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev as Series
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, frozen
from prudent.errors import InputError
from prudent.guarantees.base import symbolic_tests
from prudent.guarantees.expressions import Arrays, BackEnd, BestResponse, Bin, Coordinate, Label
from prudent.policies.base import Policy
from prudent.policies.float_bisection import first_among, neighbours
from prudent.problem import DecisionProblem
from prudent.solvers import Game
from prudent.solvers.local_games import upper_envelope
from prudent.spaces import Label as ActionLabel

_ROUNDING_ULPS = 64


@frozen
class Band:
    """A range of forecasts in which the same actions are played.

    Attributes
    ----------
    first, last : float
        The smallest and the largest forecast of the band, to the last digit.
    actions : tuple of labels
        Those with positive probability, in declared order.
    at_first, at_last : array of shape (m,)
        The mixture at both ends.
    """

    first: float
    last: float
    actions: tuple[ActionLabel, ...]
    at_first: FloatArray
    at_last: FloatArray

    def __str__(self) -> str:
        if len(self.actions) == 1:
            return str(self.actions[0])
        ends = zip(self.at_first, self.at_last, strict=True)
        shares = [f"{a:.0%}" if abs(a - b) < 0.005 else f"{a:.0%} to {b:.0%}" for a, b in ends if a > 0 or b > 0]
        return ", ".join(f"{action} {share}" for action, share in zip(self.actions, shares, strict=True))


def action_bands(policy: Policy) -> tuple[Band, ...]:
    """Find the bands of a policy for forecasts of one coordinate.

    For built-in guarantees all of them: between the points where the tilt may
    turn, actions follow each other in order, so bisection over doubles finds
    every threshold. For tests that are functions, bands that fit between two
    of 4,097 evenly spaced forecasts are not seen.

    Examples
    --------
    >>> import prudent
    >>> policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.25], actions=["wait", "act"]))
    >>> [(band.first, str(band)) for band in action_bands(policy)]
    [(0.0, 'wait'), (0.25000000000000006, 'act')]
    """
    problem = policy._problem
    check_is_fitted(policy)
    if problem.dimension != 1:
        raise InputError(
            f"bands exist for forecasts of one coordinate; this policy's have {problem.dimension}. "
            f"predict_proba shows what it plays at any forecast."
        )
    low, high = problem.space.interval
    knots = turning_points(policy)
    if knots is None:
        points = np.linspace(low, high, 4_097)
    else:  # every knot with its neighbours by rounding
        around = neighbours(knots, _ROUNDING_ULPS)
        points = around[(around >= low) & (around <= high)]
    points = points[accepted_points(policy, points[:, None])]
    firsts = [float(points[0]), *_changes(policy, points)]
    lasts = [*(float(np.nextafter(first, low)) for first in firsts[1:]), float(points[-1])]
    at_firsts, at_lasts = (policy._mixtures(np.array(ends)[:, None]) for ends in (firsts, lasts))
    return tuple(
        Band(
            first,
            last,
            tuple(action for action, share in zip(problem.actions, at_first + at_last, strict=True) if share > 0),
            at_first,
            at_last,
        )
        for first, last, at_first, at_last in zip(firsts, lasts, at_firsts, at_lasts, strict=True)
    )


def _changes(policy: Policy, points: FloatArray) -> list[float]:
    """Return every forecast that is the first to play other actions than the one before it."""
    support = _played(policy, points)
    found = []
    for place in np.flatnonzero((support[1:] != support[:-1]).any(axis=1)):
        left, right = float(points[place]), float(points[place + 1])
        now = support[place]
        while (now != support[place + 1]).any():
            left = first_among(lambda points, now=now: (_played(policy, points) != now).any(axis=1), left, right)  # type: ignore[misc]
            now = _played(policy, np.array([left]))[0]
            found.append(left)
    return found


def _played(policy: Policy, points: FloatArray) -> Any:
    return policy._mixtures(points[:, None]) > 0


def accepted_points(policy: Policy, points: FloatArray) -> Any:
    """Mark points that the guarantee takes: logarithms exclude the boundary."""
    accepted = np.ones(len(points), dtype=bool)
    if getattr(policy, "multipliers_", None) is None or not policy.guarantee_.savable:
        return accepted
    return accepted & symbolic_tests(policy.guarantee_, policy._problem.space).defined(Arrays(points))


def turning_points(policy: Policy) -> FloatArray | None:
    """Where a one-dimensional rule may turn; None if its tests are unknown functions."""
    problem = policy._problem
    low, high = problem.space.interval
    multipliers = getattr(policy, "multipliers_", None)
    knots = [low, high]  # where logarithms exclude them, their neighbours stand for them
    if multipliers is None:
        return np.array([*knots, *_switches(problem)])
    if not policy.guarantee_.savable:
        return None
    at = _Calculus(low, high)
    slope = at.zero
    for term in symbolic_tests(policy.guarantee_, problem.space).tilt(multipliers):
        if term.factor is not None:
            if term.label is not None:
                return None
            slope = slope + float(term.table[0, 0]) * at(term.factor).slope
        elif term.label is not None:
            between = _borders(term.label)
            if between is None:
                return None
            knots += between
    if not np.isfinite(slope.coef).all():
        return None
    roots = slope.trim().roots()
    real = roots[np.abs(roots.imag) < 1e-9 * (high - low)].real
    return np.array([*knots, *real[(real > low) & (real < high)]])


@dataclass(frozen=True)
class _Curve:
    """A function of the one coordinate as a series, and its derivative times ``(v - low) (high - v)``.

    Times that, derivatives of logarithms that are infinite at an end are series, too. The values of logarithms are
    no series, but NaN: products with them are not known.
    """

    value: Series
    slope: Series

    def __add__(self, other: _Curve) -> _Curve:
        return _Curve(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: _Curve) -> _Curve:
        return _Curve(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: _Curve) -> _Curve:
        return _Curve(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def __truediv__(self, other: _Curve) -> _Curve:
        return _Curve(self.value // other.value, self.slope // other.value)  # by a constant


class _Calculus(BackEnd):
    """Differentiates expressions of one coordinate."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.zero = Series([0.0], domain=[low, high])
        self._v = Series.identity(domain=[low, high])
        self._unit = (self._v - low) * (high - self._v)

    def constant(self, value: float) -> _Curve:
        """A constant."""
        return _Curve(self.zero + value, self.zero)

    def coordinate(self, index: int) -> _Curve:
        """The coordinate."""
        return _Curve(self._v, self._unit)

    def logarithm(self, value: _Curve) -> _Curve:
        """A logarithm of the distance from an end."""
        return _Curve(self.zero + np.nan, value.slope // value.value)

    def largest(self, values: list[Any]) -> Any:
        """Of one coordinate: itself."""
        return values[0]

    def bin(self, value: Any, edges: tuple[float, ...]) -> Any:
        """Labels have no derivative."""
        raise TypeError("labels have no derivative.")

    def first_largest(self, scores: list[Any]) -> Any:
        """Labels have no derivative."""
        raise TypeError("labels have no derivative.")


def _borders(label: Label) -> list[float] | None:
    """Where the label of a one-dimensional forecast changes; None if that is not known."""
    if isinstance(label, Bin) and label.of == Coordinate(0):
        return list(label.edges)
    return _switches(label.problem).tolist() if isinstance(label, BestResponse) else None


def _switches(problem: DecisionProblem) -> FloatArray:
    return upper_envelope(Game.of_problem(problem)).points
