"""A policy on one coordinate as a table of thresholds: which actions are played between which forecasts.

Between bin edges, region borders and turning points of the tilt, the tilt is monotone, and so is what is played;
bisection over doubles then finds the change, up to the rounding of the tilt. Tilts with turning points are those of
polynomials, logarithms and functions; there a band between two of many evenly spaced forecasts may not be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import BoolArray, Context, FloatArray, frozen
from prudent.errors import InputError
from prudent.formatting import Printable
from prudent.guarantees.base import symbolic_tests
from prudent.guarantees.expressions import Arrays, BestResponse, Bin, Coordinate, Group, Label, Pair
from prudent.policies.base import Policy
from prudent.policies.fitted import FittedPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Game
from prudent.solvers.local_games import upper_envelope
from prudent.spaces import Label as ActionLabel

_ROUNDING_ULPS = 64
_PARTS = 64
_EVENLY = 4_097


@frozen
class Band(Printable):
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


def action_bands(policy: Any, context: Context) -> tuple[Band, ...]:
    """Find the bands of a policy for forecasts of one coordinate, at one context.

    Between the points where the tilt may turn, actions follow each other in order, so bisection over doubles finds
    every threshold. See :meth:`prudent.policies.Policy.bands`.

    Examples
    --------
    >>> import prudent
    >>> policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.25], actions=["wait", "act"]))
    >>> [(band.first, str(band)) for band in action_bands(policy, {})]
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
    knots = policy.turning_points()
    # Every knot with its neighbours by rounding.
    around = neighbours(np.array([low, high, *(() if knots is None else knots)]), _ROUNDING_ULPS)
    points = np.union1d(np.linspace(low, high, _EVENLY), around[(around >= low) & (around <= high)])
    if getattr(policy, "multipliers_", None) is not None and policy.guarantee_.savable:
        tests = symbolic_tests(policy.guarantee_, problem.space)
        # Logarithms exclude the boundary.
        points = points[np.full(points.shape, tests.defined(Arrays(points[:, None])))]

    def mixtures(points: FloatArray) -> FloatArray:
        return policy._mixtures(points[:, None], {name: np.repeat(held, len(points)) for name, held in context.items()})

    firsts = [float(points[0]), *_changes(mixtures, points)]
    lasts = [*(float(np.nextafter(first, low)) for first in firsts[1:]), float(points[-1])]
    at_firsts, at_lasts = (mixtures(np.array(ends)) for ends in (firsts, lasts))
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


def _changes(mixtures: Callable[[FloatArray], FloatArray], points: FloatArray) -> list[float]:
    """Return every forecast that is the first to play other actions than the one before it."""
    support = mixtures(points) > 0
    found = []
    for place in np.flatnonzero((support[1:] != support[:-1]).any(axis=1)):
        left, right = float(points[place]), float(points[place + 1])
        now = support[place]
        while (now != support[place + 1]).any():
            left = first_among(lambda points, now=now: ((mixtures(points) > 0) != now).any(axis=1), left, right)  # type: ignore[misc]
            now = mixtures(np.array([left]))[0] > 0
            found.append(left)
    return found


def turning_points(policy: Policy) -> FloatArray:
    """Where a one-dimensional rule may turn, as far as labels of its tests tell."""
    fitted: FittedPolicy | None = getattr(policy, "fitted_", None)
    return _switches(policy._problem) if fitted is None else np.array(_knots(fitted))


def _knots(fitted: FittedPolicy) -> list[float]:
    if fitted.parts:
        return [knot for _, part in fitted.parts for knot in _knots(part)]
    if fitted.multipliers is None:
        found = _switches(fitted.problem) if fitted.against is None else fitted.against.turning_points()
        return [] if found is None else found.tolist()
    terms = fitted.terms() if fitted.guarantee.savable else None
    return [border for term in terms or [] for border in _borders(term.label)]


def _borders(label: Label | None) -> list[float]:
    """Where the label of a one-dimensional forecast changes, in any group."""
    if isinstance(label, Pair) and isinstance(label.first, Group):
        return _borders(label.second)
    if isinstance(label, Bin) and label.of == Coordinate(0):
        return list(label.edges)
    return _switches(label.problem).tolist() if isinstance(label, BestResponse) else []


def _switches(problem: DecisionProblem) -> FloatArray:
    return upper_envelope(Game.of_problem(problem)).points


def first_among(reached: Callable[[FloatArray], BoolArray], low: float, high: float) -> float:
    """Return the least double in ``(low, high]`` at which a property that stays holds; it holds at ``high``.

    The property is tested at many points at once, until the two that are left have no double between them.
    """
    points = np.unique(np.linspace(low, high, _PARTS + 1))
    while points.size > 2:
        first = int(np.append(reached(points[1:-1]), True).argmax())
        points = np.unique(np.linspace(points[first], points[first + 1], _PARTS + 1))
    return float(points[-1])


def neighbours(values: FloatArray, count: int) -> FloatArray:
    """Return values and ``count`` doubles on each side of each, in order."""
    found = [values]
    for end in (-np.inf, np.inf):
        nearest = values
        for _ in range(count):
            nearest = np.nextafter(nearest, end)
            found.append(nearest)
    return np.unique(np.concatenate(found))
