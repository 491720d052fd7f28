"""Radii around estimated means, and p-values, by two methods (docs/theory.md, section 7).

Each function takes the error probability of one quantity; for several at once
divide it (Bonferroni). ``sides`` is 2 for intervals and 1 for bounds.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from prudent.arrays import FloatArray, IntArray, frozen
from prudent.errors import InputError

METHODS = ("auto", "bernstein")

#: Effective units, per squared unit of log tail probability, from which the normal approximation is taken.
_ENOUGH = 0.5


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
