"""What outcome spaces share: placing points on them, snapping, refusals."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from prudent.arrays import BoolArray, FloatArray, describe_rows, missing_rows, rows
from prudent.errors import InputError, OutsideSpaceError

Label = str | int | float | bool
#: Values this close to the space (relative to its width) are snapped onto it and counted.
SNAP_TOLERANCE = 1e-6
#: Deviations this small are rounding of the caller's own arithmetic and are not counted.
ROUNDING = 1e-12


class OutcomeSpace(ABC):
    """What boxes and the simplex share. What differs between them is theirs: nothing else asks which one it has."""

    is_simplex: ClassVar[bool]
    classes: tuple[Label, ...] | None

    @property
    @abstractmethod
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds as arrays of shape ``(d,)``."""

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates or classes."""
        return len(self.bounds[0])

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates, for moments and tables."""
        return tuple(f"y[{label}]" for label in self.classes or range(self.dimension))

    @property
    def free_dimension(self) -> int:
        """How many coordinates a forecast may choose: probabilities sum to one."""
        return self.dimension - self.is_simplex

    @property
    def one_map(self) -> bool:
        """Whether one map of numbers recalibrates forecasts: of two classes the probability of the second."""
        return self.free_dimension == 1

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

    @property
    def middle(self) -> FloatArray:
        """A point in the middle, shape ``(1, d)``."""
        return self.project((self.bounds[0] + self.widths / 2)[None])

    def place(self, values: Any, name: str) -> tuple[FloatArray, int]:
        """Return ``values`` as ``(n, d)`` points of the space, and how many were snapped; refuse those further off."""
        points = rows(values, name, self.dimension)
        self.require_order(getattr(values, "columns", ()), name)
        if self.contains(points):
            return points, 0
        distance = self.distance(points)
        outside = np.flatnonzero(distance > SNAP_TOLERANCE)
        if outside.size:
            worst = int(distance.argmax())
            rule, extent = self._rule(points[worst], float(distance[worst]))
            raise OutsideSpaceError(
                f"{name} must {rule}; {describe_rows(outside)} {'does' if outside.size == 1 else 'do'} not, "
                f"worst row {worst} = {np.array2string(points[worst], precision=6, threshold=6)} ({extent}). "
                f"Fix the forecaster or the declared space; clipping changes the forecaster and may break its "
                f"guarantee, so do it explicitly and audit again.",
                outside.tolist(),
            )
        off = distance > ROUNDING
        return self._snap(points, off), int(off.sum())

    def require_order(self, columns: Iterable[Any], name: str) -> None:
        """Refuse columns that are named like the classes and in another order: nothing is reordered silently."""
        given, classes = [str(column) for column in columns], [str(label) for label in self.classes or ()]
        if given != classes and sorted(given) == sorted(classes):
            raise InputError(
                f"{name} must have its columns in the order of the classes {classes}; got {given}. "
                f"Select the columns in that order."
            )

    @abstractmethod
    def contains(self, points: FloatArray) -> bool:
        """True if all rows lie in the space, up to rounding of sums, which NaN do not."""

    @abstractmethod
    def project(self, points: FloatArray) -> FloatArray:
        """Return the nearest point of the space to each row."""

    @abstractmethod
    def distance(self, points: FloatArray) -> FloatArray:
        """How far each row is outside the space."""

    @abstractmethod
    def _rule(self, point: FloatArray, distance: float) -> tuple[str, str]:
        """Say what points must do, and how a point breaks that."""

    @abstractmethod
    def _snap(self, points: FloatArray, off: BoolArray) -> FloatArray:
        """Move points onto the space, of which some are off by more than rounding."""

    def place_outcomes(self, values: Any, name: str = "outcomes") -> FloatArray:
        """Return outcomes as points of the space."""
        return self.place(values, name)[0]

    def reads_labels(self, n_columns: int) -> bool:
        """True if so many columns of outcomes hold class labels."""
        return self.is_simplex and n_columns == 1

    def same_as(self, other: "OutcomeSpace") -> bool:
        """Say whether both describe the same outcomes."""
        return self == other

    def place_known_outcomes(self, values: Any) -> tuple[FloatArray, BoolArray]:
        """Return the outcomes that are not missing as points of the space, and which rows they are."""
        present = ~missing_rows(values, "outcomes")
        if present.all():
            return self.place_outcomes(values), present
        if not present.any():
            return np.zeros((0, self.widths.size)), present
        held = np.asarray(values)[present]
        return self.place_outcomes(held.tolist() if held.dtype.kind == "O" else held), present
