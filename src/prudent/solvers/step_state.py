"""What a compiled step of the interior point works with, as tuples of arrays, which is what a compiler takes.

Arrays are named as in :class:`~prudent.solvers.interior_point.Iterate`.
"""

from __future__ import annotations

from typing import NamedTuple

from prudent.arrays import FloatArray, IntArray

__all__ = ["Aim", "Factors", "Move", "Place", "Program", "View"]


class Program(NamedTuple):
    """What stays the same from step to step."""

    rewards: FloatArray  # (m, d)
    simplex: bool
    forecasts: FloatArray  # (d, n)
    own: FloatArray  # (d, n) rewards that act like a tilt, or (d, 0)
    values: FloatArray  # (k, n)
    weights: FloatArray  # (n,)
    combination: FloatArray  # (k d, K): how moments are made of those of the tests
    free: FloatArray  # (k d,): one where adding a constant to a test's multipliers changes nothing
    interval: IntArray  # moments with slack of their own
    center: FloatArray  # (K,)
    balls: IntArray  # (g, d) moments with round slack
    ball_radius: FloatArray  # (g,)


class Place(NamedTuple):
    """Where the iteration is."""

    room: FloatArray
    price: FloatArray
    nu: FloatArray
    multipliers: FloatArray
    sigma: FloatArray
    room_up: FloatArray
    room_down: FloatArray
    push_up: FloatArray
    push_down: FloatArray
    height: FloatArray


class View(NamedTuple):
    """What the equations miss there."""

    to_zero: FloatArray
    dual_residual: FloatArray
    sum_residual: FloatArray
    residual: FloatArray
    cone_complement: float
    complement: float
    merit: float


class Factors(NamedTuple):
    """The linearised equations, solved for everything but the multipliers; and the system that is left for those."""

    per_room: FloatArray
    ratio: FloatArray
    total: FloatArray
    mean: FloatArray
    metric: FloatArray
    flow: FloatArray
    stiffness: FloatArray
    points: FloatArray  # (2, g, 1 + d): the balls' primal and dual points
    middle: FloatArray  # (g, 1 + d) of their scaling
    stretch: FloatArray  # (g,) its size
    size: FloatArray
    scaled: FloatArray
    triangle: FloatArray


class Aim(NamedTuple):
    """Gaps of the products that a step should close, of rows and of both ends of intervals; right sides of balls."""

    gaps: FloatArray
    up: FloatArray
    down: FloatArray
    right: FloatArray


class Move(NamedTuple):
    """A step, and how far it may go on either side."""

    room: FloatArray
    price: FloatArray
    nu: FloatArray
    multipliers: FloatArray
    sigma: FloatArray
    up: FloatArray
    down: FloatArray
    height: FloatArray
    primal: float
    dual: float
