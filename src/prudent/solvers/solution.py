"""What every solver returns: multipliers, a worst world, and two bounds that prove both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from prudent.arrays import FloatArray
from prudent.writing import written

__all__ = ["Certificate", "Solution", "Status"]


class Status(StrEnum):
    """Whether the bounds prove optimality."""

    OPTIMAL = "optimal"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class Certificate:
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

    lower: float
    upper: float
    status: Status
    message: str

    @property
    def gap(self) -> float:
        """Upper minus lower, never negative."""
        return self.upper - self.lower

    def __str__(self) -> str:
        return (
            f"guaranteed utility {written(self.lower, 6)}; no policy can guarantee more than {written(self.upper, 6)} "
            f"(gap {self.gap:.1e}, {self.status}). {self.message}"
        )


@dataclass(frozen=True, eq=False)
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
    iterations : int
    """

    multipliers: FloatArray | None
    beliefs: FloatArray
    certificate: Certificate
    method: str
    iterations: int = 0

    @property
    def lower(self) -> float:
        """Certified lower bound."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """Certified upper bound."""
        return self.certificate.upper

    @property
    def gap(self) -> float:
        """Upper minus lower."""
        return self.certificate.gap

    @property
    def status(self) -> Status:
        """Whether optimality is proven."""
        return self.certificate.status

    @property
    def message(self) -> str:
        """The method, why it was taken, and what the bounds say."""
        return self.certificate.message
