"""Outcomes that are one of several classes, or numbers placed between the points of a grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from prudent.arrays import (
    BoolArray,
    FloatArray,
    describe_rows,
    finite_array,
    labels,
    listed,
    positive_integer,
    rows,
    smallest_in_rows,
    sums_of_rows,
)
from prudent.errors import InputError
from prudent.files import Document
from prudent.spaces.base import ROUNDING, Label, OutcomeSpace


@dataclass(frozen=True)
class Simplex(OutcomeSpace):
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

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of each probability."""
        return np.zeros(self.n_classes), np.ones(self.n_classes)

    @property
    def _labels(self) -> tuple[Label, ...]:
        return self.classes or tuple(range(self.n_classes))

    def with_dimension(self, dimension: int) -> "Simplex":
        """Refuse any other dimension."""
        if dimension != self.n_classes:
            raise InputError(
                f"space has {self.n_classes} classes but rewards have {dimension} columns; they must agree."
            )
        return self

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
        if not any(isinstance(label, (int, float)) for label in self._labels) and not any(map(str.isdigit, index)):
            index |= {str(j): j for j in range(self.n_classes)}  # as in label_positions
        for no, yes in (("0", "1"), ("False", "True")):
            if self.n_classes == 2 and {no, yes} <= set(map(str, self._labels)):
                words = {"no": no, "false": no, "yes": yes, "true": yes}
                forms = str.lower, str.title, str.upper
                index |= {form(word): index[label] for word, label in words.items() for form in forms}
        return index

    def _rule(self, point: FloatArray, distance: float) -> tuple[str, str]:  # noqa: ARG002
        return f"be rows of {self}: non-negative, with sum 1", f"its sum is {sums_of_rows(point[None])[0]:.6g}"

    def _snap(self, points: FloatArray, off: BoolArray) -> FloatArray:
        points = np.maximum(points, 0.0)
        points[off] /= points[off].sum(axis=1, keepdims=True)
        return points

    @property
    def columns_needed(self) -> str:
        """Say which columns of a table forecasts take."""
        named = "" if self.classes is None else f" ({', '.join(str(label) for label in self.classes)})"
        return f"{self.n_classes} column(s), one per class{named}, in their order"

    def order_classes(self, classes: list[Label]) -> tuple[Label, ...]:
        """Return a classifier's classes in the order of its forecasts: the problem's, or sorted where it names none.

        Some of them may not occur.
        """
        if self.classes is None and len(classes) == self.n_classes:
            return tuple(classes)
        if not set(classes) <= set(self._labels):
            raise InputError(
                f"y must have the {self.n_classes} classes of the outcome space, {list(self._labels)}; "
                f"got {len(classes)}, {classes[:20]}."
            )
        return self._labels

    def project(self, points: FloatArray) -> FloatArray:
        """Return the nearest point of the simplex to each row: all coordinates less one number, cut at zero."""
        outside = np.flatnonzero((smallest_in_rows(points) < 0) | (np.abs(sums_of_rows(points) - 1.0) > ROUNDING))
        if outside.size == 0:
            return points
        # Less the largest coordinate, which changes nothing but rounding: large numbers would cancel.
        far = points[outside] - points[outside].max(axis=1, keepdims=True)
        # What the k largest exceed one by, shared among them: cutting fewer or more than right gives a lower level.
        shared = (np.cumsum(-np.sort(-far, axis=1), axis=1) - 1.0) / np.arange(1, self.n_classes + 1)
        near = np.maximum(far - shared.max(axis=1, keepdims=True), 0.0)
        nearest = points.copy()
        nearest[outside] = near / near.sum(axis=1, keepdims=True)  # what rounding left
        return nearest

    def support_minimum(self, directions: FloatArray) -> FloatArray:
        """Compute ``min over p in P of p.x`` for each direction x, shape ``(..., d)``."""
        return smallest_in_rows(directions)

    def support_minimizer(self, directions: FloatArray) -> FloatArray:
        """Return the vertex of the simplex where ``p.x`` is least, for each direction."""
        return np.eye(self.n_classes)[directions.argmin(axis=-1)]

    def same_as(self, other: OutcomeSpace) -> bool:
        """Say whether both describe the same outcomes (names must agree where both have them)."""
        if not isinstance(other, Simplex) or self.n_classes != other.n_classes:
            return False
        return self.classes == other.classes or None in (self.classes, other.classes)

    def to_dict(self) -> Document:
        """Describe the space for a file."""
        classes = None if self.classes is None else list(self.classes)
        return {"kind": "simplex", "n_classes": self.n_classes, "classes": classes}


class Grid(Simplex):
    """Outcomes are numbers in their own units; forecasts are probabilities of the points of a grid.

    An outcome between two points counts for both, the more the nearer it is, so that its mean is kept: a utility that
    is linear between points loses nothing. Numbers are never read as positions of points.

    Parameters
    ----------
    points : sequence of at least two numbers, in increasing order
        Outcomes lie between the first and the last.

    Examples
    --------
    >>> import prudent
    >>> prudent.Grid([0, 10, 20]).place_outcomes([10, 17.5])
    array([[0.  , 1.  , 0.  ],
           [0.  , 0.25, 0.75]])
    """

    def __init__(self, points: Any) -> None:
        grid = finite_array(listed(points, "points"), "points")
        if grid.ndim != 1 or grid.size < 2 or not (np.diff(grid) > 0).all():
            raise InputError(f"points of a grid must be at least two numbers in increasing order; got {points}.")
        super().__init__(grid.size, classes=grid.tolist())

    def __repr__(self) -> str:
        return f"Grid({self.n_classes} points from {self.points[0]:g} to {self.points[-1]:g})"

    @property
    def points(self) -> FloatArray:
        """The points, which are also the classes of a classifier."""
        return np.array(self.classes)

    @property
    def one_map(self) -> bool:
        """True: one map of probabilities moves the cumulative distribution."""
        return True

    def place_outcomes(self, values: Any, name: str = "outcomes") -> FloatArray:
        """Return numbers as ``(n, d)`` shares of the points next to them; such rows are taken as they are."""
        if np.shape(values)[1:] == (self.n_classes,):
            return self.place(values, name)[0]
        numbers, grid = rows(values, name, 1), self.points
        outside = np.flatnonzero((numbers < grid[0]) | (numbers > grid[-1]))
        if outside.size:
            raise InputError(
                f"{name} must be numbers from {grid[0]:g} to {grid[-1]:g}, as the grid of outcomes; got "
                f"{numbers[outside[0], 0]:g} in {describe_rows(outside)}. Let the grid reach further."
            )
        return self.from_cumulative(np.clip((grid[1:] - numbers) / np.diff(grid), 0.0, 1.0))

    @staticmethod
    def from_cumulative(table: FloatArray) -> FloatArray:
        """Return probabilities ``(n, d)`` from cumulative ones ``(n, d - 1)``, which are made to rise."""
        return np.diff(np.maximum.accumulate(table, axis=1), axis=1, prepend=0.0, append=1.0)

    def reads_labels(self, n_columns: int) -> bool:  # noqa: ARG002
        """False: outcomes are numbers."""
        return False

    def order_classes(self, classes: list[Label]) -> tuple[Label, ...]:  # noqa: ARG002
        """The numbers of the points: outcomes belong to the nearest one."""
        return tuple(range(self.n_classes))

    def to_dict(self) -> Document:
        """Describe the space for a file."""
        return {"kind": "grid", "points": self.points.tolist()}
