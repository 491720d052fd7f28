"""Slack inside the interior-point method: intervals and l2 balls for the moments.

Each kind gives the Newton step of its moments as ``d_sigma = T d_lambda + t``
and keeps its own complementary pairs. Exact moments have ``T = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.moment_system import MomentSystem

__all__ = ["SlackCones", "SlackStep", "longest_step"]


@dataclass(frozen=True, eq=False)
class SlackStep:
    """Newton step of the moments, their multipliers, and the slack's own complements."""

    sigma: FloatArray
    multipliers: FloatArray
    up: FloatArray
    down: FloatArray
    height: FloatArray


class SlackCones:
    """State of the slack variables ``sigma`` and their complements.

    An interval moment has distances to both ends and multipliers with
    ``lambda = upper - lower``. A ball is the second-order cone of
    ``x = (radius, sigma - center)`` with dual ``y = (y0, -lambda)``,
    ``y0 >= |lambda|``, scaled after Nesterov and Todd.
    """

    def __init__(self, system: MomentSystem, moments: FloatArray, target: float) -> None:
        self.system = system
        inside = moments - system.center
        self.sigma = system.center.copy()
        half = 0.5 * system.radius
        self.sigma[system.interval] += np.clip(inside[system.interval], -half, half)
        offset = inside[system.balls]
        norms = np.sqrt((offset**2).sum(axis=1))
        shrink = np.minimum(1.0, 0.5 * system.ball_radius / np.maximum(norms, 1e-300))
        self.sigma[system.balls] += offset * shrink[:, None]
        offset = self.sigma[system.interval] - system.center[system.interval]
        # Distances to the ends are variables of their own: recomputing them would cancel near the end.
        self.room_up, self.room_down = system.radius - offset, system.radius + offset
        # Multipliers of the two ends and heights y0 of the dual cones: as central as the rows, lambda zero.
        self.push_up = target / np.maximum(np.minimum(self.room_up, self.room_down), 1e-300)
        self.push_down = self.push_up.copy()
        self.height = target / np.maximum(system.ball_radius, 1e-300)

    @property
    def pairs(self) -> int:
        """Number of complementary pairs."""
        return 2 * int(self.system.interval.size) + int(self.system.balls.shape[0])

    def complementarity(self, multipliers: FloatArray) -> float:
        """Sum of the products of complementary pairs."""
        room_up, room_down = self.room_up, self.room_down
        products = self.push_up @ room_up + self.push_down @ room_down
        x, y = self._cone_points(multipliers)
        return float(products + (x * y).sum())

    def linearize(
        self, multipliers: FloatArray, target: float, predictor: SlackStep | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``T`` of shape ``(K, K)`` and ``t`` of shape ``(K,)`` for a centring target.

        With a predictor, the products of steps that it neglected are corrected.
        """
        size = self.system.size
        matrix, constant = np.zeros((size, size)), np.zeros(size)
        room_up, room_down = self.room_up, self.room_down
        self._target_up = target - self.push_up * room_up
        self._target_down = target - self.push_down * room_down
        interval, balls = self.system.interval, self.system.balls
        if predictor is not None:
            step = predictor.sigma[interval]
            self._target_up = self._target_up + predictor.up * step
            self._target_down = self._target_down - predictor.down * step
        stiffness = self.push_up / room_up + self.push_down / room_down
        matrix[interval, interval] = 1.0 / stiffness
        constant[interval] = -(self._target_up / room_up - self._target_down / room_down) / stiffness
        if balls.size:
            x, y = self._cone_points(multipliers)
            scaling = NesterovTodd(x, y)
            steps = None if predictor is None else self._cone_steps(predictor)
            self._scaling, self._right = scaling.inverse_square, scaling.right_side(target, steps)
            blocks = np.linalg.pinv(self._scaling[:, 1:, 1:], hermitian=True)
            for ball, block, right in zip(balls, blocks, self._right[:, 1:], strict=True):
                matrix[np.ix_(ball, ball)] = block
                constant[ball] = block @ right
        return matrix, constant

    def directions(self, d_sigma: FloatArray, d_multipliers: FloatArray) -> SlackStep:
        """Recover the steps of the interval multipliers and of the balls' heights."""
        step = d_sigma[self.system.interval]
        d_up = (self._target_up + self.push_up * step) / self.room_up
        d_down = (self._target_down - self.push_down * step) / self.room_down
        d_height = np.zeros(self.height.size)
        if self.system.balls.size:
            shift = (self._scaling[:, 0, 1:] * d_sigma[self.system.balls]).sum(axis=1)
            d_height = self._right[:, 0] - shift
        return SlackStep(d_sigma, d_multipliers, d_up, d_down, d_height)

    def longest_steps(self, multipliers: FloatArray, step: SlackStep) -> tuple[float, float]:
        """Return the longest primal and dual steps that stay inside."""
        move = step.sigma[self.system.interval]
        primal = min(longest_step(self.room_up, -move), longest_step(self.room_down, move))
        dual = min(longest_step(self.push_up, step.up), longest_step(self.push_down, step.down))
        if self.system.balls.size:
            x, y = self._cone_points(multipliers)
            dx, dy = self._cone_steps(step)
            primal, dual = min(primal, _cone_ratio(x, dx)), min(dual, _cone_ratio(y, dy))
        return primal, dual

    def advance(self, step: SlackStep, primal: float, dual: float) -> None:
        """Move by the given lengths."""
        move = primal * step.sigma[self.system.interval]
        self.sigma = self.sigma + primal * step.sigma
        self.room_up, self.room_down = self.room_up - move, self.room_down + move
        self.push_up = self.push_up + dual * step.up
        self.push_down = self.push_down + dual * step.down
        self.height = self.height + dual * step.height

    def _cone_points(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        system = self.system
        offset = self.sigma[system.balls] - system.center[system.balls]
        x = np.concatenate([system.ball_radius[:, None], offset], axis=1)
        y = np.concatenate([self.height[:, None], -multipliers[system.balls]], axis=1)
        return x, y

    def _cone_steps(self, step: SlackStep) -> tuple[FloatArray, FloatArray]:
        balls = self.system.balls
        dx = np.concatenate([np.zeros((len(balls), 1)), step.sigma[balls]], axis=1)
        dy = np.concatenate([step.height[:, None], -step.multipliers[balls]], axis=1)
        return dx, dy


def longest_step(values: FloatArray, steps: FloatArray) -> float:
    """Return the longest step that keeps positive values positive."""
    fastest = float((steps / values).min(initial=0.0))
    return np.inf if fastest >= 0 else -1.0 / fastest


class NesterovTodd:
    """Scaling of second-order cones at pairs ``x, y`` of shape ``(g, d+1)``: ``W^-2 x = y``."""

    def __init__(self, x: FloatArray, y: FloatArray) -> None:
        self.x, self.y = x, y
        det_x, det_y = _determinant(x), _determinant(y)
        unit_x, unit_y = x / np.sqrt(det_x)[:, None], y / np.sqrt(det_y)[:, None]
        gamma = np.sqrt((1.0 + (unit_x * unit_y).sum(axis=1)) / 2.0)
        self.middle = (unit_x + _reflect(unit_y)) / (2.0 * gamma[:, None])
        self.size = (det_x / det_y) ** 0.25
        mirrored = _reflect(self.middle)
        reflection = np.diag([1.0] + [-1.0] * (x.shape[1] - 1))
        self.inverse_square = 2.0 * mirrored[:, :, None] * mirrored[:, None, :] - reflection
        self.inverse_square /= (self.size**2)[:, None, None]

    def right_side(self, target: float, steps: tuple[FloatArray, FloatArray] | None) -> FloatArray:
        """Right side of ``dy + W^-2 dx = ...`` for centring, with Mehrotra's correction for given steps."""
        plain: FloatArray = target * _reflect(self.x) / _determinant(self.x)[:, None] - self.y
        if steps is None:
            return plain
        center = self._shrink(self.x)
        neglected = _jordan(self._shrink(steps[0]), self._stretch(steps[1]))
        return plain - self._shrink(_divide(center, neglected))

    def _stretch(self, v: FloatArray) -> FloatArray:
        return self.size[:, None] * _hyperbolic(self.middle, v)

    def _shrink(self, v: FloatArray) -> FloatArray:
        return _hyperbolic(_reflect(self.middle), v) / self.size[:, None]


def _hyperbolic(w: FloatArray, v: FloatArray) -> FloatArray:
    """Apply ``[[w0, w1^T], [w1, I + w1 w1^T / (1 + w0)]]``."""
    inner = (w[:, 1:] * v[:, 1:]).sum(axis=1)
    first = w[:, 0] * v[:, 0] + inner
    rest = v[:, 1:] + (v[:, 0] + inner / (1.0 + w[:, 0]))[:, None] * w[:, 1:]
    return np.concatenate([first[:, None], rest], axis=1)


def _reflect(x: FloatArray) -> FloatArray:
    return np.concatenate([x[:, :1], -x[:, 1:]], axis=1)


def _jordan(u: FloatArray, v: FloatArray) -> FloatArray:
    """Multiply in the cone's algebra: ``(u.v, u0 v1 + v0 u1)``."""
    return np.concatenate([(u * v).sum(axis=1, keepdims=True), u[:, :1] * v[:, 1:] + v[:, :1] * u[:, 1:]], axis=1)


def _divide(u: FloatArray, product: FloatArray) -> FloatArray:
    """Find ``v`` with ``u o v = product``."""
    first = (u[:, 0] * product[:, 0] - (u[:, 1:] * product[:, 1:]).sum(axis=1)) / _determinant(u)
    rest = (product[:, 1:] - first[:, None] * u[:, 1:]) / u[:, :1]
    return np.concatenate([first[:, None], rest], axis=1)


def _determinant(x: FloatArray) -> FloatArray:
    norms = np.sqrt((x[:, 1:] ** 2).sum(axis=1))
    result: FloatArray = (x[:, 0] - norms) * (x[:, 0] + norms)
    return np.maximum(result, 1e-300)


def _cone_ratio(x: FloatArray, dx: FloatArray) -> float:
    """Longest step that keeps every ``x + step dx`` in the second-order cone."""
    a = dx[:, 0] ** 2 - (dx[:, 1:] ** 2).sum(axis=1)
    b = x[:, 0] * dx[:, 0] - (x[:, 1:] * dx[:, 1:]).sum(axis=1)
    c = _determinant(x)
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # The smallest positive root of a s^2 + 2 b s + c, written without cancellation.
        first = np.where(b <= 0, c / (-b + root), np.where(a < 0, (b + root) / -a, np.inf))
    first = np.where(np.isnan(first) | (first <= 0), np.inf, first)
    first = np.where((b**2 - a * c < 0) & (a > 0), np.inf, first)
    return min(float(first.min()), longest_step(x[:, 0], dx[:, 0]))
