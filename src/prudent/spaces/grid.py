"""Outcomes that are numbers, placed between the points of a grid."""

from typing import Any

import numpy as np

from prudent.arrays import FloatArray, describe_rows, finite_array, listed, rows
from prudent.errors import InputError
from prudent.files.records import Document
from prudent.spaces.base import Label
from prudent.spaces.simplex import Simplex


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
