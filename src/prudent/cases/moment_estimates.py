"""Estimated moments with simultaneous intervals."""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from prudent.arrays import FloatArray, frozen
from prudent.cases.intervals import Spread, choose_methods, p_values, radii
from prudent.cases.moment_sums import MomentSums
from prudent.errors import InputError
from prudent.formatting import Table, format_table
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import Slack

#: "Could have been detected" means: with this probability.
POWER = 0.8


@frozen
class MomentEstimates(Table):
    """Moments of a guarantee on a sample, in the units of its unscaled tests.

    Attributes
    ----------
    tests : EvaluatedTests
        Without rows: names, scales and groups of the moments.
    spread : Spread
    radii : array of shape (K,)
        All moments lie within these of their estimates at once, with the confidence asked for.
    p_values : array of shape (K,)
        Adjusted for the number of moments.
    methods : array of shape (K,)
        Where each radius comes from.
    detectable : array of shape (K,)
        A moment of this size would have been told from zero with probability ``POWER``.
    confidence : float
        With which all moments lie within their radii.
    """

    _shown = ("columns",)

    tests: EvaluatedTests = field(repr=False)
    spread: Spread = field(repr=False)
    radii: FloatArray
    p_values: FloatArray
    methods: NDArray[np.str_]
    detectable: FloatArray
    confidence: float

    @property
    def estimates(self) -> FloatArray:
        """The measured moments, shape ``(K,)``."""
        return self.spread.means

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown: one row per moment."""
        return {
            "moment": list(self.tests.names),
            "estimate": self.estimates,
            "lower": self.estimates - self.radii,
            "upper": self.estimates + self.radii,
            "p-value": self.p_values,
            "detectable": self.detectable,
            "effective rows": self.spread.effective,
            "method": self.methods,
        }

    def __str__(self) -> str:
        table = format_table(self.columns, range(len(self.radii))) if self.radii.size else "no moments"
        return f"{table}\nAll intervals hold at once with {100 * self.confidence:g}% confidence."

    def slack(self, center: str = "measured") -> Slack:
        """The smallest slack that holds all moments: around those that were measured, or around zero."""
        size = self.radii + np.abs(self.estimates) if center == "zero" else self.radii
        shape = self.tests.multiplier_shape if self.tests.scalar else (self.tests.n_moments, 1)
        return Slack((size / self.tests.scales).reshape(shape), "linf", center, self.confidence)


@frozen
class Measurement:
    """Measured moments, and how many rows took part or were left out because their outcome is missing."""

    estimates: MomentEstimates
    n_rows: int
    n_dropped: int


def estimates_from_sums(sums: MomentSums, confidence: float, method: str, unit: str = "row") -> MomentEstimates:
    """Turn sums into estimates with simultaneous intervals."""
    if sums.n_units < 2:
        raise InputError(f"an interval needs at least two independent {unit}s; got one {unit}.")
    spread, count = sums.spread, sums.tests.n_moments
    share = (1 - confidence) / max(count, 1)
    methods = choose_methods(spread, share, method, sums.tests.names)
    largest = spread.widths / 2  # no moment can be larger, so no interval need reach further
    sizes = np.minimum(radii(spread, methods, share), largest + np.abs(spread.means))
    adjusted = np.minimum(1.0, count * p_values(spread, methods))
    detectable = np.minimum(sizes + ndtri(POWER) * np.sqrt(spread.variances), largest)
    return MomentEstimates(sums.tests, spread, sizes, adjusted, methods, detectable, confidence)
