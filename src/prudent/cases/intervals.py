"""Estimated means and moments with intervals and p-values, by two methods (docs/theory.md, section 7).

Each function takes the error probability of one quantity; for several at once
divide it (Bonferroni). ``sides`` is 2 for intervals and 1 for bounds.
"""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from prudent.arrays import FloatArray, IntArray, frozen
from prudent.errors import InputError
from prudent.formatting import Table, format_table
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import Slack

METHODS = ("auto", "bernstein")

#: Effective units, per squared unit of log tail probability, from which the normal approximation is taken.
_ENOUGH = 0.5
#: "Could have been detected" means: with this probability.
POWER = 0.8


@frozen
class Spread:
    """Weighted means of ``K`` quantities over independent units (rows, or clusters of rows).

    Attributes
    ----------
    means : array of shape (K,)
    variances : array of shape (K,)
        Of the means, estimated: ``n / (n - 1) sum_g (U_g - W_g mean)^2`` for unit totals ``U`` and weights ``W``.
    effective : array of shape (K,)
        Units that the mean rests on; an average over few, or over rare large values, counts few.
    widths : array of shape (K,)
        Largest minus smallest value that a row can have, known beforehand; infinite where unknown.
    n_units : int
    largest_unit : float
        The largest unit's share of the total weight.
    """

    means: FloatArray
    variances: FloatArray
    effective: FloatArray
    widths: FloatArray
    n_units: int
    largest_unit: float


def spread_of_means(values: FloatArray, weights: FloatArray, width: float, clusters: IntArray | None = None) -> Spread:
    """Describe the mean of one quantity ``(n,)`` whose values have a known width."""
    totals, shares = weights * values, weights
    if clusters is not None:
        totals, shares = (np.bincount(clusters, weights=column).astype(np.float64) for column in (totals, shares))
    mean = float(totals.sum())
    deviations = totals - shares * mean
    dust = 1e-12 * np.abs(values).max() * shares  # equal values differ from their mean by rounding
    deviations = np.where(np.abs(deviations) <= dust, 0.0, deviations)
    second, fourth = float((deviations**2).sum()), float((deviations**4).sum())
    n = totals.size
    effective = second**2 / fourth if fourth > 0 else 0.0
    return Spread(
        np.array([mean]),
        np.array([second * n / max(n - 1, 1)]),
        np.array([effective]),
        np.array([width]),
        n,
        float(shares.max()),
    )


def require_method(method: str) -> None:
    """Refuse a method that is none of these."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")


def choose_methods(spread: Spread, share: float, method: str, names: tuple[str, ...]) -> NDArray[np.str_]:
    """Resolve "auto" for each quantity: normal where many units carry it, else empirical Bernstein.

    The further out in the tail, the more units the normal approximation needs. Where no bound is known it is all
    there is, and "bernstein" is refused.
    """
    unknown = np.isinf(spread.widths)
    if method == "auto":
        enough = _ENOUGH * np.log(2 / share) ** 2
        return np.where((spread.effective >= enough) | unknown, "normal", "bernstein")
    if unknown.any():
        raise InputError(
            f"method 'bernstein' needs to know how large the test can get, and {names[unknown.argmax()]!r} has "
            f"no declared bound. Declare one (FromFunctions(bounds=...)), or take method='auto'."
        )
    return np.full(spread.means.size, method)


def radii(spread: Spread, methods: NDArray[np.str_], share: float, sides: int = 2) -> FloatArray:
    """Radius of each quantity by its method, at error probability ``share`` each."""
    normal = -stdtrit(_degrees(spread), share / sides) * np.sqrt(spread.variances)
    level = np.log(2 * sides / share)
    steep, flat = _bernstein(spread)
    with np.errstate(invalid="ignore"):
        return np.where(methods == "normal", normal, steep * np.sqrt(level) + flat * level)


def p_values(spread: Spread, methods: NDArray[np.str_]) -> FloatArray:
    """Unadjusted p-value of each quantity for the mean zero: the share at which its radius just reaches the mean."""
    size = np.abs(spread.means)
    steep, flat = _bernstein(spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(size > 0, size / np.sqrt(spread.variances), 0.0)
        root = np.where(size > 0, 2 * size / (steep + np.sqrt(steep**2 + 4 * flat * size)), 0.0)
    normal, bernstein = 2 * stdtr(_degrees(spread), -statistic), 4 * np.exp(-(root**2))
    return np.minimum(np.where(methods == "normal", normal, bernstein), 1.0)


def mean_radius(spread: Spread, share: float, method: str) -> tuple[float, str]:
    """Radius of a bound on a single mean, and the method it comes from."""
    chosen = choose_methods(spread, share, method, ("the mean",))
    return float(radii(spread, chosen, share, sides=1)[0]), str(chosen[0])


def _degrees(spread: Spread) -> FloatArray:
    """Degrees of freedom of a variance that rests on so many units."""
    return np.clip(spread.effective, 2.0, max(spread.n_units, 3)) - 1.0


def _bernstein(spread: Spread) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the root of the log level and of the log level (Maurer and Pontil, 2009)."""
    n = spread.n_units
    flat = 7 * spread.widths * spread.largest_unit * n / (3 * max(n - 1, 1))
    return np.sqrt(2 * spread.variances), flat


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


def estimate_moments(
    tests: EvaluatedTests, spread: Spread, confidence: float, method: str, unit: str = "row"
) -> MomentEstimates:
    """Put simultaneous intervals around the moments of tests."""
    if spread.n_units < 2:
        raise InputError(f"an interval needs at least two independent {unit}s; got one {unit}.")
    count = tests.n_moments
    share = (1 - confidence) / max(count, 1)
    methods = choose_methods(spread, share, method, tests.names)
    largest = spread.widths / 2  # no moment can be larger, so no interval need reach further
    sizes = np.minimum(radii(spread, methods, share), largest + np.abs(spread.means))
    adjusted = np.minimum(1.0, count * p_values(spread, methods))
    detectable = np.minimum(sizes + ndtri(POWER) * np.sqrt(spread.variances), largest)
    return MomentEstimates(tests, spread, sizes, adjusted, methods, detectable, confidence)
