"""Outcome spaces: a finite box or the probability simplex (docs/theory.md, section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, describe_rows, finite_array, labels, listed, missing_rows, rows
from prudent.errors import FileFormatError, InputError, OutsideSpaceError
from prudent.narrow import largest_in_columns, smallest_in_columns, smallest_in_rows, sums_of_rows

__all__ = ["SNAP_TOLERANCE", "Box", "Label", "Simplex", "Space", "place_known_outcomes", "space_from_dict"]

Label = str | int | float | bool

#: Values this close to the space (relative to its width) are snapped onto it and counted.
SNAP_TOLERANCE = 1e-6
#: Deviations this small are rounding of the caller's own arithmetic and are not counted.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Box:
    """Outcomes with finite bounds per coordinate, in the user's own units.

    Parameters
    ----------
    lower, upper : float or sequence of float
        Scalars give one coordinate, or as many as a problem's rewards ask for.

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
    _scalar: bool = field(default=False, repr=False, compare=False)

    def __init__(self, lower: float | Sequence[float] = 0.0, upper: float | Sequence[float] = 1.0) -> None:
        low, high = finite_array(lower, "lower"), finite_array(upper, "upper")
        scalar = low.ndim == 0 and high.ndim == 0
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
            width = high - low
        if not np.isfinite(width).all():
            raise InputError("the box is too wide: upper - lower overflows a float.")
        object.__setattr__(self, "lower", tuple(low.tolist()))
        object.__setattr__(self, "upper", tuple(high.tolist()))
        object.__setattr__(self, "_scalar", scalar)

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
        return _coordinate_names(self.dimension)

    def with_dimension(self, dimension: int) -> Box:
        """Repeat scalar bounds for ``dimension`` coordinates; refuse other mismatches."""
        if dimension == self.dimension:
            return self
        if self._scalar:
            return Box(self.lower * dimension, self.upper * dimension)
        raise InputError(
            f"space has {self.dimension} coordinate(s) but rewards have {dimension}; give one bound per coordinate."
        )

    def place(self, values: Any, name: str) -> tuple[FloatArray, int]:
        """Return ``values`` as ``(n, d)`` points of the box, and how many rows were snapped."""
        points = rows(values, name, self.dimension, finite=False)
        low, high = self.bounds
        if self.contains(points):
            return points, 0
        finite_array(points, name)
        width = high - low
        excess = np.maximum(low - points, points - high) / width
        distance = excess.max(axis=1)
        _refuse_outside(distance, points, name, repr(self))
        return np.clip(points, low, high), int((distance > _ROUNDING).sum())

    def contains(self, points: NDArray[np.floating[Any]]) -> bool:
        """True if all numbers are within bounds, which NaN is not; in one sweep where the bounds are all the same."""
        if len(set(self.lower)) == len(set(self.upper)) == 1:
            return float(points.min()) >= self.lower[0] and float(points.max()) <= self.upper[0]
        low, high = self.bounds
        least, most = (np.asarray(end(points), dtype=np.float64) for end in (smallest_in_columns, largest_in_columns))
        return bool((least >= low).all() and (most <= high).all())

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
        return isinstance(other, Box) and (self.lower, self.upper) == (other.lower, other.upper)

    def to_dict(self) -> dict[str, Any]:
        """Describe the space for a file."""
        return {"kind": "box", "lower": list(self.lower), "upper": list(self.upper)}


@dataclass(frozen=True)
class Simplex:
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

    def __init__(self, n_classes: int, *, classes: Sequence[Label] | None = None) -> None:
        if isinstance(n_classes, bool) or not isinstance(n_classes, (int, np.integer)) or n_classes < 2:
            raise InputError(f"n_classes must be a whole number of at least 2; got {n_classes!r}.")
        object.__setattr__(self, "n_classes", int(n_classes))
        if classes is not None:
            names = labels(classes, "classes")
            if len(names) != n_classes:
                raise InputError(f"classes must name {n_classes} classes; got {len(names)} names.")
            object.__setattr__(self, "classes", tuple(names))
        else:
            object.__setattr__(self, "classes", None)

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
        return tuple(f"y[{label}]" for label in self.classes or range(self.n_classes))

    def with_dimension(self, dimension: int) -> Simplex:
        """Refuse any other dimension."""
        if dimension != self.n_classes:
            raise InputError(
                f"space has {self.n_classes} classes but rewards have {dimension} columns; they must agree."
            )
        return self

    def place(self, values: Any, name: str) -> tuple[FloatArray, int]:
        """Return ``values`` as ``(n, d)`` probability rows, and how many rows were snapped."""
        self._check_column_order(values, name)
        points = rows(values, name, self.n_classes)
        total = sums_of_rows(points)
        least = float(points.min())
        if least >= -_ROUNDING and total.max() <= 1.0 + _ROUNDING and total.min() >= 1.0 - _ROUNDING:
            return np.maximum(points, 0.0) if least < 0 else points, 0
        distance = np.maximum(-points.min(axis=1), np.abs(total - 1.0))
        _refuse_outside(distance, points, name, repr(self), total=total)
        off = distance > _ROUNDING
        points = np.maximum(points, 0.0)
        points[off] /= points[off].sum(axis=1, keepdims=True)
        return points, int(off.sum())

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
        return np.eye(self.n_classes)[self._positions(listed(values, name), name)]

    def label_positions(self) -> dict[Label, int]:
        """Map every label that an outcome may have to its class: names, and indices where no name is a number."""
        if self.classes is None:
            return {j: j for j in range(self.n_classes)}
        positions: dict[Label, int] = {label: j for j, label in enumerate(self.classes)}
        if not any(isinstance(label, (int, float)) for label in self.classes):
            positions |= {j: j for j in range(self.n_classes)}
        return positions

    def _positions(self, items: list[Any], name: str) -> Any:
        """Find each label among the classes."""
        if not items:
            raise InputError(f"{name} must have at least one row; got none.")
        known: list[Label] = list(range(self.n_classes)) if self.classes is None else list(self.classes)
        index = _Positions(self.label_positions())
        try:
            positions = np.fromiter(map(index.__getitem__, items), dtype=np.int64, count=len(items))
        except TypeError as error:
            raise InputError(f"{name} must be class labels, each a str, int, float or bool.") from error
        if (positions < 0).any():
            unknown = np.flatnonzero(positions < 0)
            raise InputError(
                f"{name} must be among the classes {known}; got {items[unknown[0]]!r} in {describe_rows(unknown)}."
            )
        return positions

    def _check_column_order(self, values: Any, name: str) -> None:
        """Refuse a frame whose columns are the classes in another order: nothing is reordered silently."""
        if self.classes is None or not hasattr(values, "columns"):
            return
        columns = list(values.columns)
        if columns != list(self.classes) and {str(c) for c in columns} == {str(c) for c in self.classes}:
            raise InputError(
                f"{name} must have its columns in the order of the classes {list(self.classes)}; got {columns}. "
                f"Select the columns in that order."
            )

    def project(self, points: FloatArray) -> FloatArray:
        """Return the nearest point of the simplex to each row: all coordinates less one number, cut at zero."""
        columns = np.ascontiguousarray(points.T)
        total, least = columns[0].copy(), columns[0].copy()
        for column in columns[1:]:
            total += column
            np.minimum(least, column, out=least)
        outside = np.flatnonzero((least < 0) | (np.abs(total - 1.0) > _ROUNDING))
        if outside.size == 0:
            return points
        far = points[outside]
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
        return self.classes is None or other.classes is None or self.classes == other.classes

    def to_dict(self) -> dict[str, Any]:
        """Describe the space for a file."""
        classes = None if self.classes is None else list(self.classes)
        return {"kind": "simplex", "n_classes": self.n_classes, "classes": classes}


Space = Box | Simplex


def place_known_outcomes(space: Space, values: Any, name: str = "outcomes") -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the outcomes that are not missing as points of the space, and which rows they are."""
    present = ~missing_rows(values, name)
    if present.size == 0:
        raise InputError(f"{name} must have at least one row; got none.")
    if present.all():
        known = space.place_outcomes(values, name)
        return known, np.ones(len(known), dtype=bool)
    if not present.any():
        return np.zeros((0, space.dimension)), present
    held = np.asarray(values)[present]
    return space.place_outcomes(held.tolist() if held.dtype.kind == "O" else held, name), present


def space_from_dict(document: Any) -> Space:
    """Rebuild an outcome space from its description."""
    if isinstance(document, dict):
        if document.get("kind") == "box" and set(document) == {"kind", "lower", "upper"}:
            return Box(document["lower"], document["upper"])
        if document.get("kind") == "simplex" and set(document) == {"kind", "n_classes", "classes"}:
            return Simplex(document["n_classes"], classes=document["classes"])
    raise FileFormatError(f"space must be a box (lower, upper) or a simplex (n_classes, classes); got {document!r}.")


class _Positions(dict[Any, int]):
    """Positions of known labels; -1 for any other."""

    def __missing__(self, label: Any) -> int:
        return -1


def _refuse_outside(
    distance: FloatArray,
    points: FloatArray,
    name: str,
    space: str,
    total: FloatArray | None = None,
) -> None:
    outside = np.flatnonzero(distance > SNAP_TOLERANCE)
    if outside.size == 0:
        return
    worst = int(outside[distance[outside].argmax()])
    row = np.array2string(points[worst], precision=6, threshold=6)
    if total is None:
        rule = f"lie in {space}"
        extent = f"by up to {distance[worst]:.3g} of the width"
    else:
        rule = f"be rows of {space}: non-negative, with sum 1"
        extent = f"its sum is {total[worst]:.6g}"
    verb = "does" if outside.size == 1 else "do"
    raise OutsideSpaceError(
        f"{name} must {rule}; {describe_rows(outside)} {verb} not, worst row {worst} = {row} ({extent}). "
        f"Fix the forecaster or the declared space; clipping changes the forecaster and may break its "
        f"guarantee, so do it explicitly and audit again.",
        outside.tolist(),
    )


@cache
def _coordinate_names(dimension: int) -> tuple[str, ...]:
    return tuple(f"y[{j}]" for j in range(dimension))
