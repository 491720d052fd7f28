"""Slack inside the interior-point method: moments that lie in a ball around their centre, alone or several together.

A ball of radius ``r`` leaves ``s = (r^2 - |x|^2) / 2r`` to moments with offset ``x`` from its centre, and has a dual
``y``: multipliers are ``y x / r``, and the products ``s y`` tend to zero. An interval is the ball of one moment. Exact
moments have no offset.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.solvers.moment_system import MomentSystem


@frozen
class SlackStep:
    """Newton step of the moments' offsets ``(K,)`` and of the balls' duals."""

    offsets: FloatArray
    y: FloatArray


@frozen
class SlackRhs:
    """Right side of the slack's Newton equations: ``constant (K,)``, and what the products are to change by."""

    constant: FloatArray
    products: FloatArray


@frozen
class SlackBarrier:
    """Offsets ``(K,)`` of the moments from their centre, zero where they are exact, and the balls' duals."""

    system: MomentSystem
    offsets: FloatArray
    y: FloatArray

    @classmethod
    def centered(cls, system: MomentSystem, multipliers: FloatArray, mu: float) -> SlackBarrier:
        """Lie on the central path, where all products are ``mu``, for these multipliers."""
        radius = system.radius
        y = (mu + np.hypot(mu, radius * system.lengths(multipliers))) / radius
        return cls(system, system.of_moments(radius / y) * multipliers, y)

    @cached_property
    def room(self) -> FloatArray:
        """What is left inside every ball, at least a little."""
        radius, length = self.system.radius, self.system.lengths(self.offsets)
        return np.maximum((radius - length) * (radius + length) / (2.0 * radius), 1e-300)

    @property
    def products(self) -> FloatArray:
        """Products of complementary pairs."""
        return self.room * self.y

    def miss(self, multipliers: FloatArray) -> FloatArray:
        """By how much multipliers differ from what offsets and duals say; no matter where moments are exact."""
        return self.system.of_moments(self.y / self.system.radius) * self.offsets - multipliers

    def least_products(self, multipliers: FloatArray) -> FloatArray:
        """Least eigenvalues of the products in the algebra of second-order cones: small far from the central path."""
        return self.products - self.system.radius * self.system.lengths(self.miss(multipliers)) / 2.0

    def advanced(self, step: SlackStep, primal: float, dual: float) -> SlackBarrier:
        """Move by the given lengths."""
        return SlackBarrier(self.system, self.offsets + primal * step.offsets, self.y + dual * step.y)


class SlackNewton:
    """The slack's Newton equations ``d_offsets = matrix @ d_multipliers + constant``.

    The matrix is the same for every right side of one linearisation.
    """

    def __init__(self, now: SlackBarrier, multipliers: FloatArray) -> None:
        self.now, system, radius = now, now.system, now.system.radius
        lengths = system.lengths(now.offsets)
        outward = now.offsets * system.of_moments(1.0 / np.maximum(lengths, 1e-300))
        along = np.outer(outward, outward) * (system.groups[:, None] == system.groups)
        # Outward the ball gives way by this share of what it does sideways.
        share = 2.0 * radius * now.room / (radius**2 + lengths**2)
        moved = np.eye(system.size) - along + system.of_moments(share)[:, None] * along
        self.matrix = system.of_moments(radius / now.y)[:, None] * moved
        self.miss = now.miss(multipliers)

    def rhs(self, target: float, predictor: SlackStep | None) -> SlackRhs:
        """Right side for a centring target; with a predictor, Mehrotra's correction for the products of its steps."""
        now, system, radius = self.now, self.now.system, self.now.system.radius
        products, miss = target - now.products, self.miss
        if predictor is not None:
            bend = system.lengths(predictor.offsets) ** 2 / (2.0 * radius)
            products = products - self._change(predictor.offsets) * predictor.y + (now.y + predictor.y) * bend
            miss = miss + system.of_moments(predictor.y / radius) * predictor.offsets
        pushed = system.of_moments(products / (now.room * radius)) * now.offsets
        return SlackRhs(-self.matrix @ (pushed + miss), products)

    def step(self, rhs: SlackRhs, d_multipliers: FloatArray) -> SlackStep:
        """Recover the steps of the offsets and of the balls' duals."""
        moved = self.matrix @ d_multipliers + rhs.constant
        return SlackStep(moved, (rhs.products - self.now.y * self._change(moved)) / self.now.room)

    def longest_steps(self, step: SlackStep) -> tuple[float, float]:
        """Return the longest primal and dual steps that stay inside."""
        system, room, change = self.now.system, self.now.room, self._change(step.offsets)
        square = system.lengths(step.offsets) ** 2 / system.radius
        longest = 2.0 * room / (np.sqrt(change**2 + 2.0 * square * room) - change)
        return float(longest.min(initial=np.inf)), step_length(step.y, self.now.y)

    def _change(self, moved: FloatArray) -> FloatArray:
        """By how much the room changes, at first order."""
        return -self.now.system.sums(self.now.offsets * moved) / self.now.system.radius


def step_length(step: FloatArray, now: FloatArray) -> float:
    """Return the longest step during which no number falls by more than itself."""
    fall = float((step / now).min(initial=0.0))
    return np.inf if fall >= 0 else -1.0 / fall
