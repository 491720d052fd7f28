"""Estimated moments with simultaneous intervals and p-values."""

from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, frozen
from prudent.cases.mean_bounds import FEWEST_PERIODS, Means
from prudent.cases.past_errors import PastErrors
from prudent.errors import InputError
from prudent.formatting import Table, format_table
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import Slack


@frozen
class MomentEstimates(Table):
    """Moments of a guarantee on a sample, in the units of its unscaled tests.

    Attributes
    ----------
    tests : EvaluatedTests
        Without rows: names, scales and groups of the moments.
    means : Means
    below, above : arrays of shape (K,)
        All moments lie at most so far below and above their estimates at once, with the confidence asked for.
    p_values : array of shape (K,)
        Adjusted for the number of moments.
    methods : array of shape (K,)
        Where each interval comes from: Student's t, or betting where few rows carry the moment.
    confidence : float
        With which all moments lie in their intervals.
    """

    _shown = ("columns",)

    tests: EvaluatedTests = field(repr=False)
    means: Means = field(repr=False)
    below: FloatArray
    above: FloatArray
    p_values: FloatArray
    methods: NDArray[np.str_]
    confidence: float

    @property
    def estimates(self) -> FloatArray:
        """The measured moments, shape ``(K,)``."""
        return self.means.means

    @property
    def radii(self) -> FloatArray:
        """The longer sides of the intervals, shape ``(K,)``: what slack around the estimates needs."""
        return np.maximum(self.below, self.above)

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown: one row per moment, in units of outcomes, as slack is."""
        scales = self.tests.scales
        found = {
            "moment": list(self.tests.names),
            "estimate": self.estimates / scales,
            "lower": (self.estimates - self.below) / scales,
            "upper": (self.estimates + self.above) / scales,
            "p-value": self.p_values,
            "method": self.methods.tolist(),
        }
        if self.means.periods is not None and self.means.n_units >= FEWEST_PERIODS:
            found["next period +-"] = self.past().radii_for("next period") / scales
        return found

    @property
    def about_periods(self) -> str:
        """What is said about periods, in words; empty where rows have none."""
        if self.means.periods is None:
            return ""
        about = "the last column is how far moments of the next one may lie from the estimates, all at once"
        if self.means.n_units < FEWEST_PERIODS:
            about = "too few to say anything about the next one"
        return f"{self.means.n_units:,} periods are the independent units; {about}."

    def __str__(self) -> str:
        table = format_table(self.columns, range(len(self.radii))) if self.radii.size else "no moments"
        return f"{table}\nAll intervals hold at once with {100 * self.confidence:g}% confidence."

    def past(self) -> PastErrors:
        """What statements about other cases need."""
        return PastErrors.of_means(self.means, self.radii, _share(self.confidence, self.radii.size), self.confidence)

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


def estimate_moments(tests: EvaluatedTests, means: Means, confidence: float) -> MomentEstimates:
    """Put simultaneous intervals around the moments of tests."""
    if means.n_units < 2:
        unit = "row" if means.periods is None else "period"
        raise InputError(f"an interval needs at least two independent {unit}s; got one {unit}.")
    count = tests.n_moments
    error = _share(confidence, count)
    below, above = means.radii(error), means.radii(error, below=False)
    methods = np.where(means.carried, "t", "betting")
    p_values = np.minimum(1.0, count * means.p_values())
    # What was measured outlasts the rows, and goes into files without them.
    return MomentEstimates(tests, replace(means, totals=None), below, above, p_values, methods, confidence)


def _share(confidence: float, count: int) -> float:
    """The error of one side of one interval, of so many."""
    return (1 - confidence) / max(count, 1) / 2
