"""A policy on one coordinate as a table of thresholds: which actions are played between which forecasts.

Between bin edges, region borders and thousands of other forecasts the tilt hardly ever turns, and where it is monotone
actions follow each other in order; bisection over doubles then finds every change, up to the rounding of the tilt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import BoolArray, FloatArray, frozen
from prudent.errors import InputError
from prudent.formatting import Printable
from prudent.guarantees import Nothing
from prudent.guarantees.base import symbolic_tests
from prudent.guarantees.expressions import Arrays, BestResponse, Bin, Coordinate, Label
from prudent.policies.base import Policy
from prudent.solvers import Game
from prudent.solvers.local_games import upper_envelope
from prudent.spaces import Label as ActionLabel

_ROUNDING_ULPS = 64
_GRID = 4_097


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


def action_bands(policy: Policy) -> tuple[Band, ...]:
    """Find the bands of a policy for forecasts of one coordinate.

    Thresholds are exact, by bisection over doubles. Where the tilt turns between
    two of 4,097 forecasts, a band that fits between these is not seen.

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
    multipliers: Any = getattr(policy, "multipliers_", None)
    known = multipliers is not None and policy.guarantee_.savable
    tests = symbolic_tests(policy.guarantee_ if known else Nothing(), problem.space)
    terms = tests.tilt(multipliers) if known else []
    labels = [BestResponse(problem)] if multipliers is None else [term.label for term in terms]
    knots = np.array([low, high, *(border for label in labels for border in _borders(label))])
    # Dense towards the ends, where logarithms are steep; every knot with its neighbours by rounding.
    grid = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, _GRID))) / 2
    points = np.unique(np.concatenate([grid, neighbours(knots, _ROUNDING_ULPS)]))
    points = points[(points >= low) & (points <= high) & tests.defined(Arrays(points[:, None]))]
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


def _borders(label: Label | None) -> Sequence[float]:
    """Where the label of a one-dimensional forecast changes."""
    if isinstance(label, BestResponse):
        return upper_envelope(Game.of_problem(label.problem)).points.tolist()
    return label.edges if isinstance(label, Bin) and label.of == Coordinate(0) else ()


def first_among(reached: Callable[[FloatArray], BoolArray], low: float, high: float) -> float:
    """Return the least double in ``(low, high]`` at which a property that stays holds; it holds at ``high``."""
    while low < (middle := low + (high - low) / 2) < high:  # until no double lies between them
        low, high = (low, middle) if reached(np.array([middle])).all() else (middle, high)
    return high


def neighbours(values: FloatArray, count: int) -> FloatArray:
    """Return values and at least ``count`` doubles on each side of each, in order."""
    # By half units of the last place: below a power of two doubles lie that close.
    steps = np.arange(-2 * count, 2 * count + 1) * np.spacing(np.abs(values))[:, None] / 2
    return np.unique(values[:, None] + steps)
