"""The grid of outcomes behind a nonlinear utility."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from prudent.errors import FileFormatError
from prudent.files.records import Document, Record


@dataclass(frozen=True)
class Discretization:
    """How a nonlinear utility was put on a grid of outcomes, and what that can cost.

    Attributes
    ----------
    grid : tuple of float
        The outcomes that stand for their neighbourhoods.
    error_bound : float
        Largest difference between the utility of an outcome and that of its
        nearest grid point: Lipschitz constant times half the largest spacing.
    certified : bool
        True if the Lipschitz constant was given; False if it was estimated
        from the slopes between neighbouring grid points.
    """

    grid: tuple[float, ...]
    error_bound: float
    certified: bool

    def __str__(self) -> str:
        kind = "at most" if self.certified else "about (estimated from the grid)"
        return f"{len(self.grid)} outcome bins, utility error {kind} {self.error_bound:.3g}"

    def to_dict(self) -> Document:
        """Describe the grid for a file."""
        return asdict(self) | {"grid": list(self.grid)}

    @classmethod
    def from_dict(cls, document: Any, size: int) -> Discretization:
        """Rebuild a grid of ``size`` points, checking every field."""
        record = Record(document, "discretization", "grid", "error_bound", "certified")
        points = record.array("grid", size)
        if not (np.diff(points) > 0).all():
            raise FileFormatError("discretization.grid must rise.")
        return cls(tuple(points.tolist()), record.number("error_bound", 0.0), record.typed("certified", bool))
