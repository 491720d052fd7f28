"""The decision problem as solvers see it: arrays with a row axis of length 1 or n.

Length 1 is one problem for all rows; length n gives each row its own rewards,
as in the worst case of a given policy, where the "problem" of a row is the
one mixture that the policy plays there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.narrow import largest_in_columns, smallest_in_columns
from prudent.problem import DecisionProblem
from prudent.spaces import Space

__all__ = ["Game"]


@dataclass(frozen=True, eq=False)
class Game:
    """Utilities ``u_i(a, p) = rewards[i, a] . p + offsets[i, a]`` on an outcome space.

    Attributes
    ----------
    rewards : array of shape (1 or n, m, d)
    offsets : array of shape (1 or n, m)
    space : Box or Simplex
    shared : bool
        True if one problem stands for all rows; a single row may have a problem of its own.
    """

    rewards: FloatArray
    offsets: FloatArray
    space: Space
    shared: bool

    @classmethod
    def of_problem(cls, problem: DecisionProblem) -> Game:
        """Share one problem among all rows."""
        return cls(problem.rewards[None], -problem.costs[None], problem.space, shared=True)

    @classmethod
    def of_mixtures(cls, problem: DecisionProblem, mixtures: FloatArray) -> Game:
        """Write the game against a fixed policy, mixtures ``(n, m)``: one action per row, shared if all are alike."""
        if len(mixtures) > 1 and all((column == column[0]).all() for column in mixtures.T):
            mixtures = mixtures[:1]
            return cls(
                (mixtures @ problem.rewards)[None], -(mixtures @ problem.costs)[None], problem.space, shared=True
            )
        rewards, offsets = mixtures @ problem.rewards, -(mixtures @ problem.costs)
        return cls(rewards[:, None, :], offsets[:, None], problem.space, shared=False)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.rewards.shape[1])

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates."""
        return int(self.rewards.shape[2])

    @cached_property
    def scale(self) -> float:
        """Utility range over actions and space; one where utilities are constant."""

        def ends(part: slice) -> tuple[float, float]:
            rewards, offsets = self.rewards[part], self.offsets[part]
            lowest = self.space.support_minimum(rewards) + offsets
            highest = offsets - self.space.support_minimum(-rewards)
            return float(lowest.min()), float(highest.max())

        lowest, highest = zip(*over_rows(ends, len(self.rewards)), strict=True)
        spread = max(highest) - min(lowest)
        return spread if spread > 0 else 1.0

    @cached_property
    def at_corner(self) -> tuple[FloatArray, float]:
        """Utilities at the lower corner of the space, ``(1 or n, m)``, without their mean; and that mean."""
        corner = self.offsets + self.rewards_at(self.space.bounds[0])
        common = float(corner.mean())
        return corner - common, common

    @cached_property
    def largest_utility(self) -> float:
        """Largest absolute utility that can occur, from the mean at the corner: the unit of rounding errors.

        Where rows have their own, the largest numbers of all rows count together, which is quick and never too little.
        """
        low, high = self.space.bounds
        if len(self.rewards) > 1:
            flat = self.rewards.reshape(len(self.rewards), -1)
            largest = np.maximum(largest_in_columns(flat), -smallest_in_columns(flat)).reshape(self.rewards.shape[1:])
            return float(np.abs(self.at_corner[0]).max() + (largest @ (high - low)).max())
        return float((np.abs(self.at_corner[0]) + np.abs(self.rewards) @ (high - low)).max())

    def rewards_at(self, vector: FloatArray) -> FloatArray:
        """Compute ``rewards . vector`` for one vector, shape ``(1 or n, m)``."""
        if not vector.any():
            return np.zeros(self.offsets.shape)
        if self.dimension == 1:
            return self.rewards[:, :, 0] * vector[0]
        return np.einsum("nmd,d->nm", self.rewards, vector)

    def take(self, index: IntArray | slice) -> Game:
        """Keep the given rows (all, if the problem is shared)."""
        return self if self.shared else Game(self.rewards[index], self.offsets[index], self.space, shared=False)

    def utilities(self, beliefs: FloatArray) -> FloatArray:
        """Compute ``u_i(a, p_i)``, shape ``(n, m)``."""
        if self.shared:
            return beliefs @ self.rewards[0].T + self.offsets
        return np.einsum("nmd,nd->nm", self.rewards, beliefs) + self.offsets

    def mixed_rewards(self, mixtures: FloatArray) -> FloatArray:
        """Compute ``R_i^T pi_i``, shape ``(n, d)``."""
        if self.shared:
            return mixtures @ self.rewards[0]
        return np.einsum("nm,nmd->nd", mixtures, self.rewards)
