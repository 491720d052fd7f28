"""What every solver returns: multipliers, a worst world, and two bounds that prove both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from prudent.arrays import FloatArray, frozen
from prudent.formatting import Printable, format_number

#: What an algorithm proposes: multipliers and a world.
Found = tuple[FloatArray, FloatArray]


class Status(StrEnum):
    """Whether the bounds prove optimality."""

    OPTIMAL = "optimal"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True, repr=False)
class Certificate(Printable):
    """What is guaranteed, what cannot be beaten, and how that is known.

    Attributes
    ----------
    lower : float
        The policy's expected utility in every world of the guarantee is at least this.
    upper : float
        No policy can guarantee more than this: a world that the guarantee
        allows holds every policy to it.
    status : Status
        Whether optimality is proven.
    message : str
        The method, why it was taken, and what the bounds say.
    """

    _shown = ("gap",)

    lower: float
    upper: float
    status: Status
    message: str

    @property
    def gap(self) -> float:
        """Upper minus lower, never negative."""
        return self.upper - self.lower

    def measured(self, confidence: float | None) -> Certificate:
        """Say that the slack is a measurement, if it has a confidence."""
        if confidence is None:
            return self
        note = f" The slack was measured and holds with confidence {100 * confidence:g}%."
        return replace(self, message=self.message + note)

    def on_grid(self, grid: Any, gain: bool = False) -> Certificate:
        """Widen the bounds, of a utility or of a gain, by what grids of outcomes and amounts hide."""
        if grid is None:
            return self
        upper = self.upper + grid.error + (grid.amounts_error or 0.0)
        return replace(self, lower=self.lower - gain * grid.error, upper=upper, message=f"{self.message} {grid}.")

    def __str__(self) -> str:
        return (
            f"guaranteed utility {format_number(self.lower, 6)}; no policy can guarantee more than "
            f"{format_number(self.upper, 6)} (gap {self.gap:.1e}, {self.status}). {self.message}"
        )


@frozen
class Solution:
    """One solve of the robust decision problem on one sample.

    Attributes
    ----------
    multipliers : array of shape (K,) or None
        Flat multipliers of the unscaled tests; None under full calibration.
    beliefs : array of shape (n, d)
        A world that the guarantee allows, at which ``upper`` is attained.
    certificate : Certificate
    method : str
        Name of the algorithm.
    """

    multipliers: FloatArray | None
    beliefs: FloatArray
    certificate: Certificate
    method: str

    @property
    def lower(self) -> float:
        """Certified lower bound."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """Certified upper bound."""
        return self.certificate.upper

    @property
    def status(self) -> Status:
        """Whether optimality is proven."""
        return self.certificate.status


@dataclass(frozen=True)
class SolverOptions:
    """When :func:`prudent.solvers.solve` takes which algorithm; the defaults are where measured times cross.

    Attributes
    ----------
    method : str or None
        The algorithm to insist on, one of ``METHODS``; by default the first that applies.
    many_rows : int
        Fewest rows that are clustered, or solved through the smoothed dual.
    rows_per_moment : int
        Fewest rows per moment that are clustered: clusters must be far fewer than rows to pay.
    smooth_rows_per_moment : int
        Fewest rows per moment (of equal weight) that make the dual nearly smooth.
    many_vertices : int
        From more vertices on rows are not clustered but solved through the smoothed dual.
    rows_for_any_vertices : int
        Rows from which on clusters pay even with that many vertices.
    clusters, intervals : pairs of int
        Fewest and most clusters to begin with, in several coordinates and in one.
    sample : int
        Rows that bracket the optimum of one coordinate and one test; arrays of four times as many are bracketed.
    """

    method: str | None = None
    many_rows: int = 4_000
    rows_per_moment: int = 150
    smooth_rows_per_moment: int = 300
    many_vertices: int = 1_000
    rows_for_any_vertices: int = 100_000
    clusters: tuple[int, int] = (64, 512)
    intervals: tuple[int, int] = (256, 1_024)
    sample: int = 2_048
