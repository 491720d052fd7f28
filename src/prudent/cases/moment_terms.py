"""What is added up for estimates of moments: formulas for NumPy arrays and for expressions of an engine alike.

For a scalar test ``h`` and rows that are units, each sum is ``sum_i (w_i h_i)^a t_i`` with one of the
:func:`scalar_terms` ``t``; the powers ``a`` are in ``POWERS``. For vector tests and for clusters of rows, the
:func:`row_terms` of a row times its weight are added up within each unit, and :func:`unit_terms` over units.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, mul
from typing import Any, NamedTuple

import numpy as np


class Power(NamedTuple):
    """The power of the test in a sum, 0 for its absolute value, and that of the total weight which divides it."""

    test: int
    weight: int


#: The sums, see :class:`prudent.cases.moment_sums.MomentSums`.
POWERS = {
    "first": Power(1, 1),
    "second": Power(2, 2),
    "fourth": Power(4, 4),
    "cross": Power(1, 2),
    "reach": Power(0, 1),
    "squared_reach": Power(2, 2),
    "chance_second": Power(2, 2),
    "chance_fourth": Power(4, 4),
}


class Arithmetic(NamedTuple):
    """Functions that arrays and expressions name differently."""

    absolute: Callable[[Any], Any]
    root: Callable[[Any], Any]
    larger: Callable[[Any, Any], Any]


ARRAYS = Arithmetic(np.abs, np.sqrt, np.maximum)


def raised(values: Any, power: int) -> Any:
    """A power of 1, 2 or 4, by multiplication."""
    while power > 1:
        values, power = values * values, power // 2
    return values


def scalar_terms(weight: Any, error: Any, forecast: Any, low: Any, high: Any) -> dict[str, Any]:
    """Terms of the sums for scalar tests; None stands for one, also as weight."""
    variance, fourth = _by_chance(forecast, low, high)
    return {
        "first": error,
        "second": error * error,
        "fourth": raised(error, 4),
        "cross": error if weight is None else error * weight,
        "reach": None,
        "squared_reach": None,
        "chance_second": variance,
        "chance_fourth": fourth,
    }


def row_terms(
    tests: Sequence[Any],
    errors: Sequence[Any],
    forecasts: Sequence[Any],
    bounds: Sequence[tuple[Any, Any]],
    *,
    classes: bool,
    arithmetic: Arithmetic,
) -> dict[str, Any]:
    """Describe the error ``B . (y - v)`` of a row, from its coordinates.

    ``error`` is its value and ``reach`` the largest ``|B|``; ``deviation``, ``far`` and ``fourth`` are its standard
    deviation, largest size and fourth moment if outcomes are at the ends of the space and forecasts right. With
    ``classes`` outcomes are drawn with the forecast's probabilities, and no difference of outcomes sees the mean of a
    test under the forecast. Coordinates of a box may all go together: standard deviations add, and there is no
    ``fourth`` beyond one coordinate.
    """
    error = _total(map(mul, tests, errors))
    if classes:
        mean = _total(map(mul, tests, forecasts))
        tests = [test - mean for test in tests]
    sizes = [arithmetic.absolute(test) for test in tests]
    terms = {"error": error, "reach": reduce(arithmetic.larger, sizes)}
    if classes:
        squares = [size * size for size in sizes]
        second = _total(map(mul, squares, forecasts))
        fourth = _total(map(mul, (square * square for square in squares), forecasts))
        return terms | {"deviation": arithmetic.root(second), "far": terms["reach"], "fourth": fourth}
    chances = [_by_chance(v, *ends) for v, ends in zip(forecasts, bounds, strict=True)]
    farthest = [arithmetic.larger(v - low, high - v) for v, (low, high) in zip(forecasts, bounds, strict=True)]
    # Forecasts of classes may exceed one by rounding.
    deviations = [arithmetic.root(arithmetic.absolute(variance)) for variance, _ in chances]
    terms |= {"deviation": _total(map(mul, sizes, deviations)), "far": _total(map(mul, sizes, farthest))}
    if len(sizes) == 1:
        terms["fourth"] = raised(sizes[0], 4) * chances[0][1]
    return terms


def unit_terms(weight: Any, error: Any, reach: Any, deviation: Any, far: Any, fourth: Any = None) -> dict[str, Any]:
    """Terms of the sums from weighted totals of units; ``fourth`` is known where a unit is one row.

    Otherwise rows of one unit may all go together: a fourth moment is at most the variance times the square of the
    largest error.
    """
    second = deviation * deviation
    return {
        "first": error,
        "second": error * error,
        "fourth": raised(error, 4),
        "cross": error * weight,
        "reach": reach,
        "squared_reach": reach * reach,
        "chance_second": second,
        "chance_fourth": second * (far * far) if fourth is None else fourth,
    }


def _by_chance(forecast: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Variance ``a b`` and fourth moment ``a b (a^2 - a b + b^2)`` of an outcome at the ends with this mean."""
    below = forecast if np.isscalar(low) and low == 0 else forecast - low  # an operation less per row of an engine
    variance = below * (high - forecast)
    # With a + b fixed the last factor is (a + b)^2 - 3 a b, at least a quarter of the first term: few digits are lost.
    return variance, variance * ((high - low) ** 2 - 3.0 * variance)


def _total(terms: Any) -> Any:
    return reduce(add, terms)
