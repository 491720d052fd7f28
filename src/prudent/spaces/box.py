"""Outcomes within finite bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import BoolArray, FloatArray, finite_array, largest_in_columns, smallest_in_columns
from prudent.errors import InputError
from prudent.files import Document
from prudent.spaces.base import Label, OutcomeSpace


@dataclass(frozen=True)
class Box(OutcomeSpace):
    """Outcomes with finite bounds per coordinate, in the user's own units.

    Parameters
    ----------
    lower, upper : float or sequence of float
        One pair of bounds holds for one coordinate, or for as many as a problem's rewards ask for.

    Examples
    --------
    >>> from prudent import Box
    >>> Box(0, 1)
    Box(0.0, 1.0)
    >>> Box([0, 10], [1, 50]).dimension
    2
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    is_simplex = False
    classes = None

    def __init__(self, lower: float | Sequence[float] = 0.0, upper: float | Sequence[float] = 1.0) -> None:
        low, high = finite_array(lower, "lower"), finite_array(upper, "upper")
        try:
            low, high = np.broadcast_arrays(np.atleast_1d(low), np.atleast_1d(high))
        except ValueError as error:
            raise InputError(
                f"lower and upper must have the same length; got shapes {low.shape} and {high.shape}."
            ) from error
        if low.ndim != 1 or low.size == 0:
            raise InputError(f"lower and upper must be numbers or one-dimensional; got shape {low.shape}.")
        if not (low < high).all():
            j = int(np.flatnonzero(~(low < high))[0])
            raise InputError(
                f"lower must be below upper in every coordinate; in coordinate {j} got [{low[j]}, {high[j]}]."
            )
        with np.errstate(over="ignore"):
            if not np.isfinite(high - low).all():
                raise InputError("the box is too wide: upper - lower overflows a float.")
        object.__setattr__(self, "lower", tuple(low.tolist()))
        object.__setattr__(self, "upper", tuple(high.tolist()))

    def __repr__(self) -> str:
        if self.dimension == 1:
            return f"Box({self.lower[0]}, {self.upper[0]})"
        return f"Box({list(self.lower)}, {list(self.upper)})"

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds as arrays of shape ``(d,)``."""
        return np.array(self.lower), np.array(self.upper)

    def with_dimension(self, dimension: int) -> "Box":
        """Repeat a single pair of bounds for ``dimension`` coordinates; refuse other mismatches."""
        if dimension == self.dimension:
            return self
        if self.dimension == 1:
            return Box(self.lower * dimension, self.upper * dimension)
        raise InputError(
            f"space has {self.dimension} coordinate(s) but rewards have {dimension}; give one bound per coordinate."
        )

    def distance(self, points: FloatArray) -> FloatArray:
        """How far each row is outside, relative to the width of the box; negative inside."""
        low, high = self.bounds
        excess: FloatArray = np.maximum(low - points, points - high) / (high - low)
        return excess.max(axis=1)

    def contains(self, points: NDArray[np.floating[Any]]) -> bool:
        """True if all numbers are within bounds, which NaN is not."""
        table, (low, high) = points.reshape(-1, self.dimension), self.bounds
        return bool((smallest_in_columns(table) >= low).all() and (largest_in_columns(table) <= high).all())

    def _rule(self, point: FloatArray, distance: float) -> tuple[str, str]:  # noqa: ARG002
        return f"lie in {self}", f"by up to {distance:.3g} of the width"

    def _snap(self, points: FloatArray, off: BoolArray) -> FloatArray:  # noqa: ARG002
        return self.project(points)

    @property
    def columns_needed(self) -> str:
        """Say which columns of a table forecasts take."""
        return f"{self.dimension} column(s), one per coordinate of the outcome space"

    def order_classes(self, classes: list[Label]) -> tuple[Label, ...]:
        """Return a classifier's classes in the order of its forecasts; one coordinate is the second's probability."""
        if self.dimension != 1 or len(classes) != 2:
            raise InputError(
                f"a classifier with classes {classes} needs a problem on the Simplex, such as "
                f"DecisionProblem.from_payoffs; only with two classes may it have one coordinate, the probability of "
                f"the second."
            )
        return tuple(classes)

    def project(self, points: FloatArray) -> FloatArray:
        """Return the nearest point of the box to each row."""
        return np.clip(points, *self.bounds)

    def support_minimum(self, directions: FloatArray) -> FloatArray:
        """Compute ``min over p in P of p.x`` for each direction x, shape ``(..., d)``."""
        low, high = self.bounds
        least = np.minimum(low * directions, high * directions)
        total: FloatArray = least[..., 0].copy()
        for j in range(1, self.dimension):  # in this order, whatever the array's layout
            total += least[..., j]
        return total

    def support_minimizer(self, directions: FloatArray) -> FloatArray:
        """Return a point of the box where ``p.x`` is least, for each direction."""
        low, high = self.bounds
        return np.where(directions > 0, low, high)

    def to_dict(self) -> Document:
        """Describe the space for a file."""
        return {"kind": "box", "lower": list(self.lower), "upper": list(self.upper)}
