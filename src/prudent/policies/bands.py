"""A policy on one coordinate as a table of thresholds: which actions are played between which forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies.base import Policy
from prudent.policies.changes import accepted_points, monotone_path, turning_points
from prudent.policies.floats import first_among
from prudent.spaces import Label

__all__ = ["Band", "action_bands"]

_POINTS = 4_097


@dataclass(frozen=True, eq=False)
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
    actions: tuple[Label, ...]
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
    >>> [(band.first, str(band)) for band in prudent.action_bands(policy)]
    [(0.0, 'wait'), (0.25000000000000006, 'act')]
    """
    problem = policy._problem
    check_is_fitted(policy)
    if problem.dimension != 1:
        raise InputError(
            f"bands exist for forecasts of one coordinate; this policy's have {problem.dimension}. "
            f"predict_proba shows what it plays at any forecast."
        )
    low, high = (float(bound[0]) for bound in problem.space.bounds)
    knots = turning_points(policy)
    points = np.linspace(low, high, _POINTS) if knots is None else np.array([low, *monotone_path(low, high, knots)])
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
        while (_played(policy, np.array([left])) != support[place + 1]).any():
            left = _next_change(policy, left, right)
            found.append(left)
    return found


def _next_change(policy: Policy, left: float, right: float) -> float:
    before = _played(policy, np.array([left]))
    return first_among(lambda points: (_played(policy, points) != before).any(axis=1), left, right)


def _played(policy: Policy, points: FloatArray) -> Any:
    return policy._mixtures(points[:, None]) > 0
