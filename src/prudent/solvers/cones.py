"""Slack inside the interior-point method: intervals and l2 balls for the moments.

Each kind gives the Newton step of its moments as ``d_sigma = T d_lambda + t``
and keeps its own complementary pairs. Exact moments have ``T = 0``.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.moment_system import MomentSystem

__all__ = ["SlackCones"]


class SlackCones:
    """State of the slack variables ``sigma`` and their complements.

    An interval moment has distances to both ends and multipliers with
    ``lambda = upper - lower``. A ball is the second-order cone of
    ``x = (radius, sigma - center)`` with dual ``y = (y0, -lambda)``,
    ``y0 >= |lambda|``, scaled after Nesterov and Todd.
    """

    def __init__(self, system: MomentSystem, moments: FloatArray) -> None:
        self.system = system
        inside = moments - system.center
        self.sigma = system.center.copy()
        half = 0.5 * system.radius
        self.sigma[system.interval] += np.clip(inside[system.interval], -half, half)
        offset = inside[system.balls]
        norms = np.sqrt((offset**2).sum(axis=1))
        shrink = np.minimum(1.0, 0.5 * system.ball_radius / np.maximum(norms, 1e-300))
        self.sigma[system.balls] += offset * shrink[:, None]
        self.push_up = np.ones(system.interval.size)  # multiplier of the upper end
        self.push_down = np.ones(system.interval.size)
        self.height = np.ones(system.balls.shape[0])  # y0

    @property
    def pairs(self) -> int:
        """Number of complementary pairs."""
        return 2 * self.system.interval.size + 2 * self.system.balls.shape[0]

    def complementarity(self, multipliers: FloatArray) -> float:
        """Sum of the products of complementary pairs."""
        room_up, room_down = self._rooms()
        products = self.push_up @ room_up + self.push_down @ room_down
        x, y = self._cone_points(multipliers)
        return float(products + (x * y).sum())

    def linearize(
        self, multipliers: FloatArray, target: float, second: tuple[FloatArray, FloatArray] | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``T`` of shape ``(K, K)`` and ``t`` of shape ``(K,)`` for a centring target.

        ``second`` holds the second-order products of the interval pairs.
        """
        size = self.system.size
        matrix, constant = np.zeros((size, size)), np.zeros(size)
        room_up, room_down = self._rooms()
        self._target_up = target - self.push_up * room_up
        self._target_down = target - self.push_down * room_down
        if second is not None:
            self._target_up = self._target_up - second[0]
            self._target_down = self._target_down - second[1]
        stiffness = self.push_up / room_up + self.push_down / room_down
        interval = self.system.interval
        matrix[interval, interval] = 1.0 / stiffness
        constant[interval] = -(self._target_up / room_up - self._target_down / room_down) / stiffness
        if self.system.balls.size:
            x, y = self._cone_points(multipliers)
            scaling = _scaling(x, y)
            inverse_x = np.concatenate([x[:, :1], -x[:, 1:]], axis=1) / _determinant(x)[:, None]
            self._scaling, self._right = scaling, target * inverse_x - y
            blocks = np.linalg.inv(scaling[:, 1:, 1:])
            for ball, block, right in zip(self.system.balls, blocks, self._right[:, 1:], strict=True):
                matrix[np.ix_(ball, ball)] = block
                constant[ball] = block @ right
        return matrix, constant

    def directions(self, d_sigma: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Recover the steps of the interval multipliers and of the balls' heights."""
        room_up, room_down = self._rooms()
        step = d_sigma[self.system.interval]
        d_up = (self._target_up + self.push_up * step) / room_up
        d_down = (self._target_down - self.push_down * step) / room_down
        d_height = np.zeros(self.height.size)
        if self.system.balls.size:
            shift = (self._scaling[:, 0, 1:] * d_sigma[self.system.balls]).sum(axis=1)
            d_height = self._right[:, 0] - shift
        return d_up, d_down, d_height

    def longest_steps(
        self,
        multipliers: FloatArray,
        d_multipliers: FloatArray,
        d_sigma: FloatArray,
        d_up: FloatArray,
        d_down: FloatArray,
        d_height: FloatArray,
    ) -> tuple[float, float]:
        """Return the longest primal and dual steps that stay inside."""
        room_up, room_down = self._rooms()
        step = d_sigma[self.system.interval]
        primal = min(_ratio(room_up, -step), _ratio(room_down, step))
        dual = min(_ratio(self.push_up, d_up), _ratio(self.push_down, d_down))
        if self.system.balls.size:
            x, y = self._cone_points(multipliers)
            dx = np.concatenate([np.zeros((len(x), 1)), d_sigma[self.system.balls]], axis=1)
            dy = np.concatenate([d_height[:, None], -d_multipliers[self.system.balls]], axis=1)
            primal, dual = min(primal, _cone_ratio(x, dx)), min(dual, _cone_ratio(y, dy))
        return primal, dual

    def advance(
        self,
        primal: float,
        dual: float,
        d_sigma: FloatArray,
        d_up: FloatArray,
        d_down: FloatArray,
        d_height: FloatArray,
    ) -> None:
        """Move by the given steps."""
        self.sigma = self.sigma + primal * d_sigma
        self.push_up = self.push_up + dual * d_up
        self.push_down = self.push_down + dual * d_down
        self.height = self.height + dual * d_height

    def second_order(self, d_sigma: FloatArray, d_up: FloatArray, d_down: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Products of steps that the predictor neglected."""
        step = d_sigma[self.system.interval]
        return -d_up * step, d_down * step

    def _rooms(self) -> tuple[FloatArray, FloatArray]:
        system = self.system
        offset = self.sigma[system.interval] - system.center[system.interval]
        return system.radius - offset, system.radius + offset

    def _cone_points(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        system = self.system
        offset = self.sigma[system.balls] - system.center[system.balls]
        x = np.concatenate([system.ball_radius[:, None], offset], axis=1)
        y = np.concatenate([self.height[:, None], -multipliers[system.balls]], axis=1)
        return x, y


def _determinant(x: FloatArray) -> FloatArray:
    norms = np.sqrt((x[:, 1:] ** 2).sum(axis=1))
    result: FloatArray = (x[:, 0] - norms) * (x[:, 0] + norms)
    return np.maximum(result, 1e-300)


def _scaling(x: FloatArray, y: FloatArray) -> FloatArray:
    """Inverse squared Nesterov-Todd scaling: the matrices with ``W^-2 x = y``, shape ``(g, d+1, d+1)``."""
    det_x, det_y = _determinant(x), _determinant(y)
    unit_x, unit_y = x / np.sqrt(det_x)[:, None], y / np.sqrt(det_y)[:, None]
    gamma = np.sqrt((1.0 + (unit_x * unit_y).sum(axis=1)) / 2.0)
    middle = unit_y.copy()
    middle[:, 0] += unit_x[:, 0]
    middle[:, 1:] -= unit_x[:, 1:]
    middle /= 2.0 * gamma[:, None]
    reflection = np.diag([1.0] + [-1.0] * (x.shape[1] - 1))
    shape = 2.0 * middle[:, :, None] * middle[:, None, :] - reflection
    result: FloatArray = shape * np.sqrt(det_y / det_x)[:, None, None]
    return result


def _ratio(values: FloatArray, steps: FloatArray) -> float:
    falling = steps < 0
    return float((values[falling] / -steps[falling]).min()) if falling.any() else np.inf


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
    return min(float(first.min()), _ratio(x[:, 0], dx[:, 0]))
