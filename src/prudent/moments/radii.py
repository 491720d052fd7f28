"""Radii around estimated means, and p-values, by four methods (docs/theory.md, section 7).

Each function takes the error probability of one quantity; for several at once
divide it (Bonferroni). ``sides`` is 2 for intervals and 1 for bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.moments.spread import Spread

__all__ = ["METHODS", "choose_methods", "mean_radius", "p_values", "radii"]

METHODS = ("auto", "normal", "bootstrap", "bernstein", "hoeffding")

#: Effective units, per squared unit of log tail probability, from which the normal approximation is taken.
_ENOUGH = 0.5


def choose_methods(spread: Spread, share: float, method: str) -> NDArray[np.str_]:
    """Resolve "auto" for each quantity: normal where many units carry it, else empirical Bernstein.

    The further out in the tail, the more units the normal approximation needs. Where no bound is known it is all
    there is.
    """
    if method != "auto":
        return np.full(spread.means.size, method)
    enough = _ENOUGH * np.log(2 / share) ** 2
    return np.where((spread.effective >= enough) | np.isinf(spread.widths), "normal", "bernstein")


def radii(spread: Spread, methods: NDArray[np.str_], share: float, sides: int = 2) -> FloatArray:
    """Radius of each quantity by its method, at error probability ``share`` each."""
    result = np.zeros(spread.means.size)
    for name in np.unique(methods):
        chosen = methods == name
        if name == "normal":
            quantile = -stdtrit(_degrees(spread), share / sides)
            result[chosen] = (quantile * np.sqrt(spread.variances))[chosen]
        elif name == "bernstein":
            level = np.log(2 * sides / share)
            steep, flat = _bernstein(spread)
            result[chosen] = (steep * np.sqrt(level) + flat * level)[chosen]
        elif name == "hoeffding":
            result[chosen] = (_hoeffding(spread) * np.sqrt(np.log(sides / share)))[chosen]
        else:
            raise AssertionError(f"no radius is defined for {name}")
    return result


def p_values(spread: Spread, methods: NDArray[np.str_], sides: int = 2) -> FloatArray:
    """Unadjusted p-value of each quantity for the mean zero: the share at which its radius just reaches the mean."""
    size = np.abs(spread.means)
    result = np.ones(size.size)
    for name in np.unique(methods):
        chosen = methods == name
        if name == "normal":
            with np.errstate(divide="ignore", invalid="ignore"):
                statistic = np.where(size > 0, size / np.sqrt(spread.variances), 0.0)
            result[chosen] = (sides * stdtr(_degrees(spread), -statistic))[chosen]
        elif name == "bernstein":
            steep, flat = _bernstein(spread)
            with np.errstate(divide="ignore", invalid="ignore"):
                root = np.where(size > 0, 2 * size / (steep + np.sqrt(steep**2 + 4 * flat * size)), 0.0)
            result[chosen] = (2 * sides * np.exp(-(root**2)))[chosen]
        elif name == "hoeffding":
            with np.errstate(divide="ignore", invalid="ignore"):
                root = np.where(size > 0, size / _hoeffding(spread), 0.0)
            result[chosen] = (sides * np.exp(-(root**2)))[chosen]
    return np.minimum(result, 1.0)


def mean_radius(spread: Spread, share: float, method: str, sides: int = 1) -> tuple[float, str]:
    """Radius of a single mean and the method it comes from."""
    chosen = choose_methods(spread, share, method)
    require_widths(spread, chosen, ("the mean",))
    return float(radii(spread, chosen, share, sides)[0]), str(chosen[0])


def require_widths(spread: Spread, methods: NDArray[np.str_], names: tuple[str, ...]) -> None:
    """Refuse finite-sample methods for quantities that nobody has bounded."""
    missing = np.flatnonzero(np.isinf(spread.widths) & np.isin(methods, ("bernstein", "hoeffding")))
    if missing.size:
        raise InputError(
            f"method '{methods[missing[0]]}' needs to know how large the test can get, and {names[missing[0]]!r} has "
            f"no declared bound. Declare one (FromFunctions(bounds=...)), take method='normal', or use more rows."
        )


def _degrees(spread: Spread) -> FloatArray:
    """Degrees of freedom of a variance that rests on so many units."""
    degrees: FloatArray = np.clip(spread.effective, 2.0, max(spread.n_units, 3)) - 1.0
    return degrees


def _bernstein(spread: Spread) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the root of the log level and of the log level (Maurer and Pontil, 2009)."""
    n = spread.n_units
    flat = 7 * spread.widths * spread.largest_unit * n / (3 * max(n - 1, 1))
    return np.sqrt(2 * spread.variances), flat


def _hoeffding(spread: Spread) -> FloatArray:
    return spread.widths * np.sqrt(spread.squared_weights / 2)
