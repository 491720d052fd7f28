"""Slack inside the interior-point method: intervals and l2 balls for the moments.

Each kind gives the Newton step of its moments as ``d_sigma = T d_lambda + t``
and keeps its own complementary pairs. Exact moments have ``T = 0``, ``t = 0``.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.solvers.moment_system import MomentSystem

_SIDES = np.array([[1.0], [-1.0]])  # distances to the upper and to the lower end of an interval fall and rise


@frozen
class SlackStep:
    """Newton step of the moments, their multipliers, the intervals' duals and the balls' heights."""

    sigma: FloatArray
    multipliers: FloatArray
    z: FloatArray
    height: FloatArray


@frozen
class SlackRhs:
    """Right sides of the slack's Newton equations for one target."""

    constant: FloatArray
    products: FloatArray
    balls: FloatArray


@frozen
class SlackCones:
    """State of the slack variables ``sigma`` and their complements.

    An interval moment has distances ``s`` to its upper and lower end and duals ``z`` with ``lambda = z[0] - z[1]``.
    A ball is the second-order cone of ``x = (radius, sigma - center)`` with dual ``y = (height, -lambda)``,
    ``height >= |lambda|``, scaled after Nesterov and Todd.
    """

    system: MomentSystem
    sigma: FloatArray
    s: FloatArray  # (2, intervals)
    z: FloatArray
    height: FloatArray

    @classmethod
    def begin(cls, system: MomentSystem, moments: FloatArray, target: float) -> SlackCones:
        """Start inside the slack, as central as the rows, with multipliers zero."""
        sigma = system.center + system.nearest_inside(moments - system.center, share=0.5)
        # Distances to the ends are variables of their own: recomputing them would cancel near the end. They begin with
        # the rounded moments, or the two would differ for good.
        s = system.radius - _SIDES * (sigma - system.center)[system.interval]
        z = np.tile(target / np.maximum(s.min(axis=0), 1e-300), (2, 1))
        return cls(system, sigma, s, z, target / np.maximum(system.ball_radius, 1e-300))

    def recentered(self, system: MomentSystem, multipliers: FloatArray, mu: float) -> SlackCones:
        """Carry the state over to a system that differs in its rows and its centre, intervals on the central path."""
        sigma = self.sigma + (system.center - self.system.center)
        if not system.interval.size:
            return replace(self, system=system, sigma=sigma)
        # With duals mu / s on both sides the distances solve a quadratic; the smaller one is computed first.
        dual = multipliers[system.interval]
        size = np.abs(dual) * system.radius
        near = 2.0 * mu * system.radius / (size + mu + np.hypot(size, mu))
        s = np.where(_SIDES * dual >= 0, near, 2.0 * system.radius - near)
        s[1] = 2.0 * system.radius - s[0]  # also where the multiplier is zero
        sigma[system.interval] = system.center[system.interval] + system.radius - s[0]
        return SlackCones(system, sigma, s, mu / s, self.height)

    @property
    def pairs(self) -> int:
        """Number of complementary pairs."""
        return self.s.size + len(self.system.balls)

    def complementarity(self, multipliers: FloatArray) -> float:
        """Sum of the products of complementary pairs."""
        x, y = self.points(multipliers)
        return float((self.s * self.z).sum() + (x * y).sum())

    def newton(self, multipliers: FloatArray) -> SlackNewton:
        """Linearise at these multipliers."""
        return SlackNewton(self, multipliers)

    def advanced(self, step: SlackStep, primal: float, dual: float) -> SlackCones:
        """Move by the given lengths."""
        return SlackCones(
            self.system,
            self.sigma + primal * step.sigma,
            self.s - primal * _SIDES * step.sigma[self.system.interval],
            self.z + dual * step.z,
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
        self._stiffness = (cones.z / cones.s).sum(axis=0)
        self.matrix[system.interval, system.interval] = 1.0 / self._stiffness
        if system.balls.size:
            self._scaling = NesterovTodd(*cones.points(multipliers))
            self._blocks = np.linalg.pinv(self._scaling.inverse_square[:, 1:, 1:], hermitian=True)
            self.matrix[system.balls[:, :, None], system.balls[:, None, :]] = self._blocks

    def rhs(self, target: float, predictor: SlackStep | None) -> SlackRhs:
        """Right sides for a centring target; with a predictor, Mehrotra's correction for the products of its steps."""
        cones, system = self.cones, self.cones.system
        constant, right = np.zeros(system.size), np.zeros((0, 1))
        products = target - cones.z * cones.s
        if predictor is not None:
            products += _SIDES * predictor.z * predictor.sigma[system.interval]
        constant[system.interval] = -(_SIDES * products / cones.s).sum(axis=0) / self._stiffness
        if system.balls.size:
            right = self._scaling.right_side(target, None if predictor is None else cones.steps(predictor))
            constant[system.balls] = np.einsum("gij,gj->gi", self._blocks, right[:, 1:])
        return SlackRhs(constant, products, right)

    def longest_steps(self, step: SlackStep) -> tuple[float, float]:
        """Return the longest primal and dual steps that stay inside."""
        cones, system = self.cones, self.cones.system
        falling = -_SIDES * step.sigma[system.interval] / cones.s
        primal = step_length(float(falling.min(initial=0.0)))
        dual = step_length(float((step.z / cones.z).min(initial=0.0)))
        if system.balls.size:
            dx, dy = cones.steps(step)
            primal = min(primal, _cone_ratio(self._scaling.x, dx))
            dual = min(dual, _cone_ratio(self._scaling.y, dy))
        return primal, dual

    def step(self, rhs: SlackRhs, d_multipliers: FloatArray) -> SlackStep:
        """Recover the steps of the moments, of the interval duals and of the balls' heights."""
        cones, system = self.cones, self.cones.system
        d_sigma = self.matrix @ d_multipliers + rhs.constant
        d_z = (rhs.products + _SIDES * cones.z * d_sigma[system.interval]) / cones.s
        d_height = np.zeros(cones.height.size)
        if system.balls.size:
            shift = (self._scaling.inverse_square[:, 0, 1:] * d_sigma[system.balls]).sum(axis=1)
            d_height = rhs.balls[:, 0] - shift
        return SlackStep(d_sigma, d_multipliers, d_z, d_height)


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
        middle = (unit_x + _reflect(unit_y)) / (2.0 * gamma[:, None])
        size = ((det_x / det_y) ** 0.25)[:, None, None]
        mirrored = _reflect(middle)
        reflection = np.diag([1.0] + [-1.0] * (x.shape[1] - 1))
        self.inverse_square = (2.0 * mirrored[:, :, None] * mirrored[:, None, :] - reflection) / size**2
        self._stretch, self._shrink = size * _hyperbolic(middle), _hyperbolic(mirrored) / size  # W and its inverse

    def right_side(self, target: float, steps: tuple[FloatArray, FloatArray] | None) -> FloatArray:
        """Right side of ``dy + W^-2 dx = ...`` for centring, with Mehrotra's correction for given steps."""
        plain: FloatArray = target * _reflect(self.x) / _determinant(self.x)[:, None] - self.y
        if steps is None:
            return plain
        # The product of the scaled steps is neglected; divide it by the scaled point that both sides share.
        center, moved = np.moveaxis(self._shrink @ np.stack([self.x, steps[0]], axis=2), 2, 0)
        neglected = _arrow(moved) @ self._stretch @ steps[1][:, :, None]
        correction: FloatArray = self._shrink @ np.linalg.solve(_arrow(center), neglected)
        return plain - correction[:, :, 0]


def _hyperbolic(w: FloatArray) -> FloatArray:
    """Write ``[[w0, w1^T], [w1, I + w1 w1^T / (1 + w0)]]``."""
    matrix = np.eye(w.shape[1]) + w[:, :, None] * w[:, None] / (1.0 + w[:, :1, None])
    matrix[:, 0] = matrix[:, :, 0] = w
    return matrix


def _arrow(u: FloatArray) -> FloatArray:
    """Write the product ``(u.v, u0 v1 + v0 u1)`` in the cone's algebra as a matrix times ``v``."""
    matrix = u[:, :1, None] * np.eye(u.shape[1])
    matrix[:, 0] = matrix[:, :, 0] = u
    return matrix


def _reflect(x: FloatArray) -> FloatArray:
    return np.concatenate([x[:, :1], -x[:, 1:]], axis=1)


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
