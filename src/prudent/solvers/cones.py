"""Slack inside the interior-point method: intervals and l2 balls for the moments.

Each kind gives the Newton step of its moments as ``d_sigma = T d_lambda + t``
and keeps its own complementary pairs. Exact moments have ``T = 0``, ``t = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.moment_system import MomentSystem

__all__ = ["SlackAim", "SlackCones", "SlackNewton", "SlackStep", "step_length"]


@dataclass(frozen=True, eq=False)
class SlackStep:
    """Newton step of the moments, their multipliers, and the slack's own complements."""

    sigma: FloatArray
    multipliers: FloatArray
    up: FloatArray
    down: FloatArray
    height: FloatArray


@dataclass(frozen=True, eq=False)
class SlackCones:
    """State of the slack variables ``sigma`` and their complements.

    An interval moment has distances to both ends and multipliers with
    ``lambda = upper - lower``. A ball is the second-order cone of
    ``x = (radius, sigma - center)`` with dual ``y = (y0, -lambda)``,
    ``y0 >= |lambda|``, scaled after Nesterov and Todd.
    """

    system: MomentSystem
    sigma: FloatArray
    room_up: FloatArray
    room_down: FloatArray
    push_up: FloatArray
    push_down: FloatArray
    height: FloatArray

    @classmethod
    def begin(cls, system: MomentSystem, moments: FloatArray, target: float) -> SlackCones:
        """Start inside the slack, as central as the rows, with multipliers zero."""
        inside = moments - system.center
        sigma = system.center.copy()
        half = 0.5 * system.radius
        sigma[system.interval] += np.clip(inside[system.interval], -half, half)
        offset = inside[system.balls]
        norms = np.sqrt((offset**2).sum(axis=1))
        shrink = np.minimum(1.0, 0.5 * system.ball_radius / np.maximum(norms, 1e-300))
        sigma[system.balls] += offset * shrink[:, None]
        offset = sigma[system.interval] - system.center[system.interval]
        # Distances to the ends are variables of their own: recomputing them would cancel near the end.
        room_up, room_down = system.radius - offset, system.radius + offset
        push = target / np.maximum(np.minimum(room_up, room_down), 1e-300)
        height = target / np.maximum(system.ball_radius, 1e-300)
        return cls(system, sigma, room_up, room_down, push, push.copy(), height)

    def recentered(self, system: MomentSystem, multipliers: FloatArray, mu: float) -> SlackCones:
        """Carry the state over to a system that differs in its rows and its centre, intervals on the central path."""
        sigma = self.sigma + (system.center - self.system.center)
        if not system.interval.size:
            return replace(self, system=system, sigma=sigma)
        # With pushes mu / room on both sides the rooms solve a quadratic; the smaller one is computed first.
        push = multipliers[system.interval]
        size = np.abs(push) * system.radius
        near = 2.0 * mu * system.radius / (size + mu + np.hypot(size, mu))
        far = 2.0 * system.radius - near
        room_up, room_down = np.where(push >= 0, near, far), np.where(push >= 0, far, near)
        sigma[system.interval] = system.center[system.interval] + system.radius - room_up
        return SlackCones(system, sigma, room_up, room_down, mu / room_up, mu / room_down, self.height)

    @property
    def pairs(self) -> int:
        """Number of complementary pairs."""
        return 2 * int(self.system.interval.size) + int(self.system.balls.shape[0])

    def complementarity(self, multipliers: FloatArray) -> float:
        """Sum of the products of complementary pairs."""
        products = self.push_up @ self.room_up + self.push_down @ self.room_down
        if self.system.balls.size:
            x, y = self.points(multipliers)
            products += (x * y).sum()
        return float(products)

    def newton(self, multipliers: FloatArray) -> SlackNewton:
        """Linearise at these multipliers."""
        return SlackNewton(self, multipliers)

    def advanced(self, step: SlackStep, primal: float, dual: float) -> SlackCones:
        """Move by the given lengths."""
        move = primal * step.sigma[self.system.interval]
        return SlackCones(
            self.system,
            self.sigma + primal * step.sigma,
            self.room_up - move,
            self.room_down + move,
            self.push_up + dual * step.up,
            self.push_down + dual * step.down,
            self.height + dual * step.height,
        )

    def points(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Primal and dual points of the balls' second-order cones."""
        system = self.system
        offset = self.sigma[system.balls] - system.center[system.balls]
        x = np.concatenate([system.ball_radius[:, None], offset], axis=1)
        y = np.concatenate([self.height[:, None], -multipliers[system.balls]], axis=1)
        return x, y

    def steps(self, step: SlackStep) -> tuple[FloatArray, FloatArray]:
        """Steps of these points."""
        balls = self.system.balls
        dx = np.concatenate([np.zeros((len(balls), 1)), step.sigma[balls]], axis=1)
        dy = np.concatenate([step.height[:, None], -step.multipliers[balls]], axis=1)
        return dx, dy


class SlackNewton:
    """The slack's Newton equations ``d_sigma = matrix @ d_multipliers + constant``.

    The matrix is the same for every right side of one linearisation.
    """

    def __init__(self, cones: SlackCones, multipliers: FloatArray) -> None:
        self.cones = cones
        system = cones.system
        self.matrix = np.zeros((system.size, system.size))
        self._stiffness = cones.push_up / cones.room_up + cones.push_down / cones.room_down
        self.matrix[system.interval, system.interval] = 1.0 / self._stiffness
        if system.balls.size:
            self._scaling = NesterovTodd(*cones.points(multipliers))
            self._blocks = np.linalg.pinv(self._scaling.inverse_square[:, 1:, 1:], hermitian=True)
            self.matrix[system.balls[:, :, None], system.balls[:, None, :]] = self._blocks

    def aimed(self, target: float, predictor: SlackStep | None) -> SlackAim:
        """Aim at a centring target; with a predictor, correct the products of steps that it neglected."""
        cones, system = self.cones, self.cones.system
        interval, balls = system.interval, system.balls
        constant = np.zeros(system.size)
        up = target - cones.push_up * cones.room_up
        down = target - cones.push_down * cones.room_down
        if predictor is not None and interval.size:
            step = predictor.sigma[interval]
            up, down = up + predictor.up * step, down - predictor.down * step
        constant[interval] = -(up / cones.room_up - down / cones.room_down) / self._stiffness
        right = np.zeros((0, 1))
        if balls.size:
            steps = None if predictor is None else cones.steps(predictor)
            right = self._scaling.right_side(target, steps)
            constant[balls] = np.einsum("gij,gj->gi", self._blocks, right[:, 1:])
        return SlackAim(constant, up, down, right)

    def longest_steps(self, step: SlackStep) -> tuple[float, float]:
        """Return the longest primal and dual steps that stay inside."""
        cones, system = self.cones, self.cones.system
        primal = dual = np.inf
        if system.interval.size:
            move = step.sigma[system.interval]
            primal = min(_longest_step(cones.room_up, -move), _longest_step(cones.room_down, move))
            dual = min(_longest_step(cones.push_up, step.up), _longest_step(cones.push_down, step.down))
        if system.balls.size:
            dx, dy = cones.steps(step)
            primal = min(primal, _cone_ratio(self._scaling.x, dx))
            dual = min(dual, _cone_ratio(self._scaling.y, dy))
        return primal, dual

    def step(self, aim: SlackAim, d_multipliers: FloatArray) -> SlackStep:
        """Recover the steps of the moments, of the interval multipliers and of the balls' heights."""
        cones, system = self.cones, self.cones.system
        d_sigma = self.matrix @ d_multipliers + aim.constant
        move = d_sigma[system.interval]
        d_up = (aim.up + cones.push_up * move) / cones.room_up
        d_down = (aim.down - cones.push_down * move) / cones.room_down
        d_height = np.zeros(cones.height.size)
        if system.balls.size:
            shift = (self._scaling.inverse_square[:, 0, 1:] * d_sigma[system.balls]).sum(axis=1)
            d_height = aim.right[:, 0] - shift
        return SlackStep(d_sigma, d_multipliers, d_up, d_down, d_height)


@dataclass(frozen=True, eq=False)
class SlackAim:
    """Right sides of the slack's Newton equations for one target."""

    constant: FloatArray
    up: FloatArray
    down: FloatArray
    right: FloatArray


def _longest_step(values: FloatArray, steps: FloatArray) -> float:
    """Return the longest step that keeps positive values positive."""
    return step_length(float((steps / values).min(initial=0.0)))


def step_length(fall: float) -> float:
    """Return the longest step during which nothing falls by more than itself, for the fastest relative fall."""
    return np.inf if fall >= 0 else -1.0 / fall


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
    """Longest step that keeps every ``x + step dx`` in the second-order cone; there are few, so one by one."""
    longest = np.inf
    for point, move in zip(x.tolist(), dx.tolist(), strict=True):
        norm = sqrt(sum(p * p for p in point[1:]))
        c = max((point[0] - norm) * (point[0] + norm), 1e-300)
        a = move[0] * move[0] - sum(m * m for m in move[1:])
        b = point[0] * move[0] - sum(p * m for p, m in zip(point[1:], move[1:], strict=True))
        inside = b * b - a * c
        root = sqrt(max(inside, 0.0))
        # The smallest positive root of a s^2 + 2 b s + c, written without cancellation; then the cone's tip.
        if b <= 0 and root > b and not (inside < 0 and a > 0):
            longest = min(longest, c / (root - b))
        elif b > 0 and a < 0:
            longest = min(longest, (b + root) / -a)
        if move[0] < 0:
            longest = min(longest, -point[0] / move[0])
    return longest
