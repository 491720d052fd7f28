"""All decision problems side by side, so that one sum answers for all of them at a single point."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.problem import DecisionProblem
from prudent.spaces import Simplex

__all__ = ["StackedProblems"]


class StackedProblems:
    """Best responses of several problems, padded to the same number of actions, and the units of their space."""

    def __init__(self, problems: tuple[DecisionProblem, ...]) -> None:
        most, d = max(problem.n_actions for problem in problems), problems[0].dimension
        rewards = np.zeros((len(problems), most, d))
        self._offsets = np.full((len(problems), most), -np.inf)
        for i, problem in enumerate(problems):
            rewards[i, : problem.n_actions] = problem.rewards
            self._offsets[i, : problem.n_actions] = -problem.costs
        self._columns = [np.ascontiguousarray(rewards[:, :, j]) for j in range(d)]
        self._shape = rewards.shape
        self._numbers = np.arange(len(problems))
        self.simplex = isinstance(problems[0].space, Simplex)
        self._low, self._high = problems[0].space.bounds
        self._width = self._high - self._low
        #: Of the space in its units.
        self.diagonal = float(np.sqrt(2.0 if self.simplex else d))

    def best(self, point: FloatArray) -> IntArray:
        """Each problem's best response to one point, in the order of sums and with the ties of ``best_actions``."""
        utilities = self._offsets.copy()
        for coordinate, column in zip(point, self._columns, strict=True):
            utilities += coordinate * column
        return utilities.argmax(axis=1)

    def unit(self, point: FloatArray) -> FloatArray:
        """Outcome units to units of the space."""
        return point if self.simplex else (point - self._low) / self._width

    def outcome(self, unit: FloatArray) -> FloatArray:
        """Units of the space to outcome units, within the bounds in spite of rounding."""
        return unit if self.simplex else np.clip(self._low + unit * self._width, self._low, self._high)

    def outcome_beyond(self, unit: FloatArray) -> FloatArray:
        """The same for points that may lie outside the space."""
        return unit if self.simplex else self._low + unit * self._width

    def in_units(self, errors: list[FloatArray]) -> FloatArray:
        """Sums of errors in units of the space, padded, shape ``(problems, actions, d)``."""
        padded = np.zeros(self._shape)
        for i, sums in enumerate(errors):
            padded[i, : len(sums)] = sums if self.simplex else sums / self._width
        return padded

    def active(self, tilts: FloatArray, best: IntArray) -> FloatArray:
        """Sum of the tilts of the events that these best responses make happen."""
        total: FloatArray = tilts[self._numbers, best].sum(axis=0)
        return total
