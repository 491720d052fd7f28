"""Round slack in a step of the interior point, as loops to be compiled: what NesterovTodd in cones says, ball by ball.

A ball is the second-order cone of ``x = (radius, sigma - center)`` with dual ``y = (height, -lambda)``.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["CALLED", "aim_ball", "longest_in_cone", "scale_ball"]


def scale_ball(x: FloatArray, y: FloatArray, middle: FloatArray) -> float:
    """Write the middle of the scaling that takes ``x`` to ``y``, and return its size."""
    det_x, det_y = _determinant(x), _determinant(y)
    inner = 0.0
    for i in range(x.size):
        middle[i] = y[i] / np.sqrt(det_y) * (1.0 if i == 0 else -1.0)
        inner += x[i] / np.sqrt(det_x) * y[i] / np.sqrt(det_y)
    gamma = np.sqrt((1.0 + inner) / 2.0)
    for i in range(x.size):
        middle[i] = (x[i] / np.sqrt(det_x) + middle[i]) / (2.0 * gamma)
    return (det_x / det_y) ** 0.25


def aim_ball(
    x: FloatArray,
    y: FloatArray,
    middle: FloatArray,
    size: float,
    target: float,
    dx: FloatArray,
    dy: FloatArray,
    right: FloatArray,
) -> None:
    """Write the right side for a centring target, with Mehrotra's correction for steps that are not zero."""
    inside = _determinant(x)
    for i in range(x.size):
        right[i] = target * x[i] / inside * (1.0 if i == 0 else -1.0) - y[i]
    center, shrunk, stretched = np.empty(x.size), np.empty(x.size), np.empty(x.size)
    _turn(middle, -1.0, 1.0 / size, x, center)
    _turn(middle, -1.0, 1.0 / size, dx, shrunk)
    _turn(middle, 1.0, size, dy, stretched)
    product, quotient = np.empty(x.size), np.empty(x.size)
    product[0] = 0.0
    for i in range(x.size):
        product[0] += shrunk[i] * stretched[i]
    for i in range(1, x.size):
        product[i] = shrunk[0] * stretched[i] + stretched[0] * shrunk[i]
    first = center[0] * product[0]
    for i in range(1, x.size):
        first -= center[i] * product[i]
    quotient[0] = first / _determinant(center)
    for i in range(1, x.size):
        quotient[i] = (product[i] - quotient[0] * center[i]) / center[0]
    _turn(middle, -1.0, 1.0 / size, quotient, product)
    for i in range(x.size):
        right[i] -= product[i]


def longest_in_cone(x: FloatArray, dx: FloatArray) -> float:
    """Longest step that keeps ``x + step dx`` in the second-order cone."""
    inside, a, b = _determinant(x), dx[0] * dx[0], x[0] * dx[0]
    for i in range(1, x.size):
        a -= dx[i] * dx[i]
        b -= x[i] * dx[i]
    rest, longest = b * b - a * inside, np.inf
    root = np.sqrt(max(rest, 0.0))
    # The smallest positive root of a s^2 + 2 b s + inside, written without cancellation; then the cone's tip.
    if b <= 0 and root > b and not (rest < 0 and a > 0):
        longest = inside / (root - b)
    elif b > 0 and a < 0:
        longest = (b + root) / -a
    if dx[0] < 0:
        longest = min(longest, -x[0] / dx[0])
    return longest


def _turn(middle: FloatArray, sign: float, size: float, vector: FloatArray, result: FloatArray) -> None:
    """Write ``size [[w0, w1^T], [w1, I + w1 w1^T / (1 + w0)]] v`` for the middle ``w``, mirrored if sign is -1."""
    inner = 0.0
    for i in range(1, middle.size):
        inner += sign * middle[i] * vector[i]
    result[0] = size * (middle[0] * vector[0] + inner)
    along = vector[0] + inner / (1.0 + middle[0])
    for i in range(1, middle.size):
        result[i] = size * (vector[i] + along * sign * middle[i])


def _determinant(x: FloatArray) -> float:
    norm = 0.0
    for i in range(1, x.size):
        norm += x[i] * x[i]
    norm = np.sqrt(norm)
    return max((x[0] - norm) * (x[0] + norm), 1e-300)


#: Functions that these call, and themselves.
CALLED = (scale_ball, aim_ball, longest_in_cone, _turn, _determinant)
