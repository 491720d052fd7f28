"""A policy on one coordinate as a table of thresholds: which actions are played between which forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies.base import Policy
from prudent.spaces import Label

__all__ = ["Band", "action_bands"]

_POINTS = 4_097
_HALVINGS = 80


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

    The policy is asked at 4,097 evenly spaced forecasts, and thresholds between
    them are found by bisection to the last digit. A band that fits between two
    of these points is not seen.

    Examples
    --------
    >>> import prudent
    >>> policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.25], actions=["wait", "act"]))
    >>> [(band.first, str(band)) for band in prudent.action_bands(policy)]
    [(0.0, 'wait'), (0.25000000000000006, 'act')]
    """
    space = policy._problem.space
    if space.dimension != 1:
        raise InputError(
            f"bands exist for forecasts of one coordinate; this policy's have {space.dimension}. "
            f"predict_proba shows what it plays at any forecast."
        )
    low, high = (float(bound[0]) for bound in space.bounds)
    points = np.linspace(low, high, _POINTS)
    played = policy.predict_proba(points) > 0
    changes = np.flatnonzero((played[1:] != played[:-1]).any(axis=1))
    left, right = _bisect(policy, points[changes], points[changes + 1], played[changes])
    firsts, lasts = np.r_[low, right], np.r_[left, high]
    actions = policy._problem.actions
    bands = []
    for first, last, at_first, at_last in zip(
        firsts, lasts, policy.predict_proba(firsts), policy.predict_proba(lasts), strict=True
    ):
        used = tuple(action for action, share in zip(actions, at_first + at_last, strict=True) if share > 0)
        bands.append(Band(float(first), float(last), used, at_first, at_last))
    return tuple(bands)


def _bisect(policy: Policy, left: FloatArray, right: FloatArray, before: Any) -> tuple[FloatArray, FloatArray]:
    """Close in on each change until its two sides are neighbouring numbers."""
    for _ in range(_HALVINGS):
        middle = left + (right - left) / 2
        open_ = (middle > left) & (middle < right)
        if not open_.any():
            break
        same = ((policy.predict_proba(middle) > 0) == before).all(axis=1)
        left, right = np.where(open_ & same, middle, left), np.where(open_ & ~same, middle, right)
    return left, right
