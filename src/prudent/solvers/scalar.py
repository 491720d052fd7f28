"""One coordinate, one test: the dual is one-dimensional and solved by sorting.

``G'`` is monotone and jumps at ``lambda = -sigma_j / h_i``, where row ``i``
crosses from one point of the envelope to the next (docs/theory.md, section 4). Sort
the jumps on the side of zero where the optimum lies, add them up until the
moment reaches its target, and let the rows at that last jump share it: the
multiplier and the world are exact.
"""

from __future__ import annotations

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray
from prudent.errors import InfeasibleError
from prudent.solvers.envelope import upper_envelope
from prudent.solvers.game import Game

__all__ = ["scalar_dual"]


def scalar_dual(game: Game, ambiguity: Ambiguity) -> tuple[FloatArray, FloatArray]:
    """Return the optimal multiplier ``(1,)`` and a worst world ``(n, 1)``."""
    tests = ambiguity.tests
    values = tests.values[:, 0] if tests.scalar else tests.values[:, 0, 0]
    strength = ambiguity.weights * values
    low, high = (float(bound[0]) for bound in game.space.bounds)
    if game.shared:
        envelope = upper_envelope(game)
        slopes, points = envelope.slopes[None, :], envelope.points[None, :]
    else:
        slopes, points = game.rewards[:, :, 0], np.array([[low, high]])
    target = float(strength @ ambiguity.forecasts[:, 0]) + float(ambiguity.slack.center[0])
    radius = float(ambiguity.slack.radius[0])
    at_zero_left = _beliefs(slopes, points, values, 0.0, before=True)
    at_zero_right = _beliefs(slopes, points, values, 0.0, before=False)
    most, least = float(strength @ at_zero_left), float(strength @ at_zero_right)
    if least <= target + radius and most >= target - radius:
        aim = float(np.clip(target, least, most))
        return np.zeros(1), _share(at_zero_left, at_zero_right, most, least, aim)
    positive = least > target + radius
    goal = target + radius if positive else target - radius
    start = at_zero_right if positive else at_zero_left
    return _search(slopes, points, values, strength, start, goal, positive)


def _search(
    slopes: FloatArray,
    points: FloatArray,
    values: FloatArray,
    strength: FloatArray,
    start: FloatArray,
    goal: float,
    positive: bool,
) -> tuple[FloatArray, FloatArray]:
    """Walk the jumps away from zero until the moment ``sum w h q`` reaches its goal."""
    active = values != 0
    with np.errstate(divide="ignore", invalid="ignore"):
        jumps = np.where(active[:, None], -slopes / values[:, None], 0.0)
    widths = np.broadcast_to(np.diff(points, axis=1), jumps.shape)
    ahead = (jumps > 0) if positive else (jumps < 0)
    positions = np.abs(jumps[ahead])
    sizes = (np.abs(strength)[:, None] * widths)[ahead]
    order = np.argsort(positions, kind="stable")
    distance = abs(goal - float(strength @ start))
    covered = np.cumsum(sizes[order])
    if order.size == 0 or distance > covered[-1]:
        reach = covered[-1] if order.size else 0.0
        unit = float(np.abs(strength).sum() * np.abs(points).max()) + abs(goal)
        if distance - reach > 1e-12 * unit:
            raise InfeasibleError(
                "no world satisfies the guarantee with this slack: its centre lies "
                f"{distance - reach:.3g} beyond any attainable moment. Center the slack at moments measured on "
                "this sample, or widen its radius."
            )
        last = order.size - 1
    else:
        last = int(np.searchsorted(covered, distance))
    if last < 0:
        return np.zeros(1), start[:, None]
    size = float(positions[order[last]])
    multiplier = size if positive else -size
    before = _beliefs(slopes, points, values, multiplier, before=True)
    after = _beliefs(slopes, points, values, multiplier, before=False)
    world = _share(before, after, float(strength @ before), float(strength @ after), goal)
    return np.array([multiplier]), world


def _beliefs(slopes: FloatArray, points: FloatArray, values: FloatArray, multiplier: float, before: bool) -> FloatArray:
    """Minimisers of ``val(p) + multiplier h p``: those just before or just after this multiplier.

    Growing multipliers push the moment ``w h q`` down, so "before" is the end
    of the minimising segment with the larger ``h q``. A segment is tied when
    the multiplier is the very quotient ``-slope / h`` that :func:`_search` sorted.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        jumps = -slopes / values[:, None]
    zero = (values == 0)[:, None]
    rising = (values > 0)[:, None]
    # Number of envelope segments to the left of the belief.
    passed_upper = np.where(zero, slopes <= 0.0, np.where(rising, jumps >= multiplier, jumps <= multiplier))
    passed_lower = np.where(zero, slopes < 0.0, np.where(rising, jumps > multiplier, jumps < multiplier))
    high_end = passed_upper.sum(axis=1)
    low_end = passed_lower.sum(axis=1)
    chosen = np.where(zero[:, 0], low_end, np.where(rising[:, 0] == before, high_end, low_end))
    return points[0, chosen]


def _share(before: FloatArray, after: FloatArray, most: float, least: float, goal: float) -> FloatArray:
    """Mix two worlds that differ only along segments where ``val`` is linear, to hit a moment."""
    share = 0.0 if most == least else float(np.clip((most - goal) / (most - least), 0.0, 1.0))
    return ((1.0 - share) * before + share * after)[:, None]
