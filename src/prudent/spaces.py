"""Outcome spaces: a finite box or the probability simplex (docs/theory.md, section 1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import (
    BoolArray,
    FloatArray,
    describe_rows,
    finite_array,
    labels,
    listed,
    missing_rows,
    positive_integer,
    rows,
)
from prudent.arrays.column_reductions import largest_in_columns, smallest_in_columns, smallest_in_rows, sums_of_rows
from prudent.errors import FileFormatError, InputError, OutsideSpaceError
from prudent.files.records import Document

Label = str | int | float | bool
#: Values this close to the space (relative to its width) are snapped onto it and counted.
SNAP_TOLERANCE = 1e-6
#: Deviations this small are rounding of the caller's own arithmetic and are not counted.
ROUNDING = 1e-12


class _OutcomeSpace(ABC):
    """What boxes and the simplex share."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds as arrays of shape ``(d,)``."""

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the first coordinate."""
        low, high = self.bounds
        return float(low[0]), float(high[0])

    @property
    def widths(self) -> FloatArray:
        """Distances of the bounds, shape ``(d,)``."""
        low, high = self.bounds
        return high - low

    @abstractmethod
    def place_outcomes(self, values: Any, name: str = "outcomes") -> FloatArray:
        """Return outcomes as points of the space."""

    def place_outcome_of_each(self, values: Any, n: int) -> FloatArray:
        """Return outcomes as points of the space, one for each of ``n`` forecasts."""
        known = self.place_outcomes(values)
        if len(known) != n:
            raise InputError(f"outcomes must have one row per forecast, {n}; got {len(known)}.")
        return known

    def place_known_outcomes(self, values: Any) -> tuple[FloatArray, BoolArray]:
        """Return the outcomes that are not missing as points of the space, and which rows they are."""
        present = ~missing_rows(values, "outcomes")
        if present.all():
            return self.place_outcomes(values), present
        if not present.any():
            return np.zeros((0, self.widths.size)), present
        held = np.asarray(values)[present]
        return self.place_outcomes(held.tolist() if held.dtype.kind == "O" else held), present


@dataclass(frozen=True)
class Box(_OutcomeSpace):
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

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates."""
        return len(self.lower)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds as arrays of shape ``(d,)``."""
        return np.array(self.lower), np.array(self.upper)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates, for moments and tables."""
        return tuple(f"y[{j}]" for j in range(self.dimension))

    def with_dimension(self, dimension: int) -> Box:
        """Repeat a single pair of bounds for ``dimension`` coordinates; refuse other mismatches."""
        if dimension == self.dimension:
            return self
        if self.dimension == 1:
            return Box(self.lower * dimension, self.upper * dimension)
        raise InputError(
            f"space has {self.dimension} coordinate(s) but rewards have {dimension}; give one bound per coordinate."
        )

    def place(self, values: Any, name: str) -> tuple[FloatArray, int]:
        """Return ``values`` as ``(n, d)`` points of the box, and how many rows were snapped."""
        return _place(self, values, name)

    def distance(self, points: FloatArray) -> FloatArray:
        """How far each row is outside, relative to the width of the box; negative inside."""
        low, high = self.bounds
        excess: FloatArray = np.maximum(low - points, points - high) / (high - low)
        return excess.max(axis=1)

    def contains(self, points: NDArray[np.floating[Any]]) -> bool:
        """True if all numbers are within bounds, which NaN is not."""
        table, (low, high) = points.reshape(-1, self.dimension), self.bounds
        return bool((smallest_in_columns(table) >= low).all() and (largest_in_columns(table) <= high).all())

    def place_outcomes(self, values: Any, name: str = "outcomes") -> FloatArray:
        """Return outcomes as points of the box."""
        return self.place(values, name)[0]

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

    def same_as(self, other: Space) -> bool:
        """Say whether both describe the same outcomes."""
        return self == other

    def to_dict(self) -> Document:
        """Describe the space for a file."""
        return {"kind": "box", "lower": list(self.lower), "upper": list(self.upper)}


@dataclass(frozen=True)
class Simplex(_OutcomeSpace):
    """Outcomes are one of ``n_classes`` classes; forecasts are class probabilities.

    On the simplex the coordinates sum to one, so self-orthogonality implies
    zero bias there. The same binary forecasts seen as ``Box(0, 1)`` carry less
    information and have a lower (never higher) guaranteed value.

    Examples
    --------
    >>> from prudent import Simplex
    >>> Simplex(3).dimension
    3
    """

    n_classes: int
    classes: tuple[Label, ...] | None = None
    is_simplex = True

    def __init__(self, n_classes: int, *, classes: Sequence[Label] | None = None) -> None:
        object.__setattr__(self, "n_classes", positive_integer(n_classes, "n_classes", least=2))
        names = None if classes is None else tuple(labels(classes, "classes"))
        if names is not None and len(names) != n_classes:
            raise InputError(f"classes must name {n_classes} classes; got {len(names)} names.")
        object.__setattr__(self, "classes", names)

    def __repr__(self) -> str:
        named = "" if self.classes is None else f", classes={list(self.classes)}"
        return f"Simplex({self.n_classes}{named})"

    @property
    def dimension(self) -> int:
        """Number of classes."""
        return self.n_classes

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of each probability."""
        return np.zeros(self.n_classes), np.ones(self.n_classes)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates, for moments and tables."""
        return tuple(f"y[{label}]" for label in self._labels)

    @property
    def _labels(self) -> tuple[Label, ...]:
        return self.classes or tuple(range(self.n_classes))

    def with_dimension(self, dimension: int) -> Simplex:
        """Refuse any other dimension."""
        if dimension != self.n_classes:
            raise InputError(
                f"space has {self.n_classes} classes but rewards have {dimension} columns; they must agree."
            )
        return self

    def place(self, values: Any, name: str) -> tuple[FloatArray, int]:
        """Return ``values`` as ``(n, d)`` probability rows, and how many rows were snapped."""
        columns, classes = list(getattr(values, "columns", ())), list(self._labels)
        if self.classes and columns != classes and {str(c) for c in columns} == {str(c) for c in classes}:
            raise InputError(  # nothing is reordered silently
                f"{name} must have its columns in the order of the classes {classes}; got {columns}. "
                f"Select the columns in that order."
            )
        return _place(self, values, name)

    def contains(self, points: FloatArray) -> bool:
        """True if all rows are probabilities up to rounding of their sums, which NaN are not."""
        total = sums_of_rows(points)
        return bool(points.min() >= 0.0 and total.max() <= 1.0 + ROUNDING and total.min() >= 1.0 - ROUNDING)

    def distance(self, points: FloatArray) -> FloatArray:
        """How far each row is from non-negative numbers with sum 1."""
        return np.maximum(-smallest_in_rows(points), np.abs(sums_of_rows(points) - 1.0))

    def place_outcomes(self, values: Any, name: str = "outcomes") -> FloatArray:
        """Return outcomes as ``(n, d)`` rows: from probabilities, one-hot rows or class labels."""
        if isinstance(values, (list, tuple)) and values and isinstance(values[0], (list, tuple, np.ndarray)):
            values = finite_array(values, name)
        shape: tuple[int, ...] = getattr(values, "shape", (0,))
        if len(shape) == 2 and shape[1] == self.n_classes:
            return self.place(values, name)[0]
        if len(shape) == 2 and shape[1] == 1:
            values = np.asarray(values)[:, 0]
        elif len(shape) != 1:
            raise InputError(
                f"{name} must be class labels of shape (n,) or rows of shape (n, {self.n_classes}); got shape {shape}."
            )
        items, index = listed(values, name), self.label_positions()
        if not items:
            raise InputError(f"{name} must have at least one row; got none.")
        try:
            positions = np.array([index.get(item, -1) for item in items])
        except TypeError as error:
            raise InputError(f"{name} must be class labels, each a str, int, float or bool.") from error
        unknown = np.flatnonzero(positions < 0)
        if unknown.size:
            raise InputError(
                f"{name} must be among the classes {list(self._labels)}; "
                f"got {items[unknown[0]]!r} in {describe_rows(unknown)}."
            )
        return np.eye(self.n_classes)[positions]

    def label_positions(self) -> dict[Label, int]:
        """Map every label that an outcome may have to its class: names, and indices where no name is a number."""
        positions = {label: j for j, label in enumerate(self._labels)}
        if not any(isinstance(label, (int, float)) for label in positions):
            positions |= {j: j for j in range(self.n_classes)}
        return positions

    def text_positions(self) -> dict[str, int]:
        """Map every way in which a file may write a class to its position."""
        index: dict[str, int] = {}
        for j, label in enumerate(self._labels):
            whole = isinstance(label, float) and label.is_integer()
            for text in {str(label), str(int(label)) if whole else str(label).strip()}:
                other = index.setdefault(text, j)
                if other != j:
                    raise InputError(f"the classes {self._labels[other]!r} and {label!r} look the same in a file.")
        return index

    def project(self, points: FloatArray) -> FloatArray:
        """Return the nearest point of the simplex to each row: all coordinates less one number, cut at zero."""
        outside = np.flatnonzero((smallest_in_rows(points) < 0) | (np.abs(sums_of_rows(points) - 1.0) > ROUNDING))
        if outside.size == 0:
            return points
        # Less the largest coordinate, which changes nothing but rounding: large numbers would cancel.
        far = points[outside] - points[outside].max(axis=1, keepdims=True)
        falling = -np.sort(-far, axis=1)
        excess = np.cumsum(falling, axis=1) - 1.0
        kept = (falling - excess / np.arange(1, self.n_classes + 1) > 0).sum(axis=1)
        level = np.take_along_axis(excess, kept[:, None] - 1, axis=1) / kept[:, None]
        near = np.maximum(far - level, 0.0)
        nearest = points.copy()
        nearest[outside] = near / near.sum(axis=1, keepdims=True)  # what rounding left
        return nearest

    def support_minimum(self, directions: FloatArray) -> FloatArray:
        """Compute ``min over p in P of p.x`` for each direction x, shape ``(..., d)``."""
        return smallest_in_rows(directions)

    def support_minimizer(self, directions: FloatArray) -> FloatArray:
        """Return the vertex of the simplex where ``p.x`` is least, for each direction."""
        return np.eye(self.n_classes)[directions.argmin(axis=-1)]

    def same_as(self, other: Space) -> bool:
        """Say whether both describe the same outcomes (names must agree where both have them)."""
        if not isinstance(other, Simplex) or self.n_classes != other.n_classes:
            return False
        return self.classes == other.classes or None in (self.classes, other.classes)

    def to_dict(self) -> Document:
        """Describe the space for a file."""
        classes = None if self.classes is None else list(self.classes)
        return {"kind": "simplex", "n_classes": self.n_classes, "classes": classes}


Space = Box | Simplex


def require_space(space: Any) -> Space:
    """Check that an argument is an outcome space."""
    if not isinstance(space, (Box, Simplex)):
        raise InputError(f"space must be a Box or a Simplex; got {type(space).__name__}.")
    return space


def space_from_dict(document: Any) -> Space:
    """Rebuild an outcome space from its description."""
    if isinstance(document, dict):
        if document.get("kind") == "box" and set(document) == {"kind", "lower", "upper"}:
            return Box(document["lower"], document["upper"])
        if document.get("kind") == "simplex" and set(document) == {"kind", "n_classes", "classes"}:
            return Simplex(document["n_classes"], classes=document["classes"])
    raise FileFormatError(f"space must be a box (lower, upper) or a simplex (n_classes, classes); got {document!r}.")


def _place(space: Space, values: Any, name: str) -> tuple[FloatArray, int]:
    """Return rows as points of the space, and how many were snapped onto it; refuse those further off."""
    points = rows(values, name, space.dimension)
    if space.contains(points):
        return points, 0
    distance = space.distance(points)
    outside = np.flatnonzero(distance > SNAP_TOLERANCE)
    if outside.size:
        worst = int(distance.argmax())
        if isinstance(space, Box):
            rule, extent = f"lie in {space}", f"by up to {distance[worst]:.3g} of the width"
        else:
            rule = f"be rows of {space}: non-negative, with sum 1"
            extent = f"its sum is {sums_of_rows(points)[worst]:.6g}"
        raise OutsideSpaceError(
            f"{name} must {rule}; {describe_rows(outside)} {'does' if outside.size == 1 else 'do'} not, "
            f"worst row {worst} = {np.array2string(points[worst], precision=6, threshold=6)} ({extent}). "
            f"Fix the forecaster or the declared space; clipping changes the forecaster and may break its "
            f"guarantee, so do it explicitly and audit again.",
            outside.tolist(),
        )
    off = distance > ROUNDING
    if isinstance(space, Box):
        return space.project(points), int(off.sum())
    points = np.maximum(points, 0.0)
    points[off] /= points[off].sum(axis=1, keepdims=True)
    return points, int(off.sum())
