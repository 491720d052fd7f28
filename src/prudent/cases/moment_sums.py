"""One pass over rows: everything additive that estimates of moments need.

Rows are visited in parts that fit the cache, so memory does not grow with their number. Independent units are rows, or
clusters of rows. For a scalar test ``h`` and rows that are units, each sum is ``sum_i (w_i h_i)^a t_i`` with one of the
:func:`scalar_terms` ``t``; the powers ``a`` are in ``POWERS``. For vector tests and for clusters of rows, the
:func:`row_terms` of a row times its weight are added up within each unit, and :func:`unit_terms` over units. The terms
are formulas for NumPy arrays and for expressions of an engine alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, mul
from typing import Any, NamedTuple

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray
from prudent.arrays.chunks import over_rows
from prudent.cases.intervals import Spread
from prudent.errors import InputError
from prudent.guarantees import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.spaces import Space

_ROWS_AT_ONCE = 1 << 14
_NUMBERS_AT_ONCE = 1 << 19


#: The sums, and the power of the test in each; 0 for its absolute value.
POWERS = {
    "first": 1,
    "second": 2,
    "fourth": 4,
    "cross": 1,
    "reach": 0,
    "squared_reach": 2,
    "chance_second": 2,
    "chance_fourth": 4,
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
    variance, fourth = by_chance(forecast, low, high)
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
    weight: Any,
    tests: Sequence[Any],
    errors: Sequence[Any],
    forecasts: Sequence[Any],
    bounds: Sequence[tuple[Any, Any]],
    *,
    classes: bool,
    alone: bool,
    arithmetic: Arithmetic,
) -> dict[str, Any]:
    """Describe the error ``B . (y - v)`` of a row, from its coordinates, times its weight.

    ``error`` is its value and ``reach`` the largest ``|B|``; ``deviation``, ``far`` and ``fourth`` are its standard
    deviation, largest size and fourth moment if outcomes are at the ends of the space and forecasts right. With
    ``classes`` outcomes are drawn with the forecast's probabilities, and no difference of outcomes sees the mean of a
    test under the forecast. Coordinates of a box may all go together: standard deviations add. There is a ``fourth``
    only for a row that is a unit ``alone``, and of one coordinate or class.
    """
    error = _total(map(mul, tests, errors))
    if classes:
        mean = _total(map(mul, tests, forecasts))
        tests = [test - mean for test in tests]
    sizes = [arithmetic.absolute(test) for test in tests]
    farthest = reach = reduce(arithmetic.larger, sizes)
    if classes:
        squares = [size * size for size in sizes]
        deviation = arithmetic.root(_total(map(mul, squares, forecasts)))
        fourth = _total(map(mul, (square * square for square in squares), forecasts))
    else:
        chances = [by_chance(v, *ends) for v, ends in zip(forecasts, bounds, strict=True)]
        # Forecasts of classes may exceed one by rounding.
        deviations = [arithmetic.root(arithmetic.absolute(variance)) for variance, _ in chances]
        deviation, fourth = _total(map(mul, sizes, deviations)), raised(sizes[0], 4) * chances[0][1]
        ends = zip(forecasts, bounds, strict=True)
        farthest = _total(map(mul, sizes, [arithmetic.larger(v - low, high - v) for v, (low, high) in ends]))
    terms = {"error": error, "reach": reach, "deviation": deviation, "far": farthest}
    terms = {name: term * weight for name, term in terms.items()}
    return terms | {"fourth": fourth * raised(weight, 4)} if alone else terms


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


def by_chance(forecast: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Variance ``a b`` and fourth moment ``a b (a^2 - a b + b^2)`` of an outcome at the ends with this mean."""
    below = forecast if np.isscalar(low) and low == 0 else forecast - low  # an operation less per row of an engine
    variance = below * (high - forecast)
    # With a + b fixed the last factor is (a + b)^2 - 3 a b, at least a quarter of the first term: few digits are lost.
    return variance, variance * ((high - low) ** 2 - 3.0 * variance)


def _total(terms: Any) -> Any:
    return reduce(add, terms)


def spread_of_sums(
    tests: EvaluatedTests,
    space: Space,
    sums: Mapping[str, Any],
    largest_unit: float,
    extreme: BoolArray,
    weight: float = 1.0,
) -> Spread:
    """Return moments as means with their variances and effective numbers of units, from sums over all units.

    ``U`` is a unit's weighted total of ``Z_j = B_j(v) . (y - v)``, ``W`` its weight, ``H`` its weighted total of
    ``|B|``.

    Parameters
    ----------
    tests : EvaluatedTests
        Without rows.
    space : Box or Simplex
    sums : mapping of str to array of shape (K,)
        ``first``, ``second``, ``fourth``, ``cross``: of ``U``, ``U^2``, ``U^4`` and ``W U``; ``reach``,
        ``squared_reach``: of ``H`` and ``H^2``; ``chance_second``, ``chance_fourth``: what second and fourth would be
        (at most) if outcomes were at the ends of the space and forecasts right. Rare outcomes that happened not to
        occur show here, and nowhere else. Also the number of ``units``, and ``squared_weights``, of ``W^2``.
    largest_unit : float
        Maximum of ``W``.
    extreme : array of shape (d,)
        Coordinates whose outcomes are all at the ends of the space.
    weight : float
        Of all units.
    """
    n, second = int(sums["units"]), sums["second"]
    means = sums["first"] / weight
    centred = second - 2 * means * sums["cross"] + means**2 * sums["squared_weights"]
    centred = np.maximum(centred, 0.0)  # the sum over units of (U - W mean)^2
    # Units that each moment rests on: by its test, by the errors seen, by the errors to be expected. Errors that
    # are all alike say nothing of how they vary: those seen count by the share that is not their mean.
    by_test = _ratio(sums["reach"] ** 2, sums["squared_reach"])
    by_errors = _ratio(second * centred, sums["fourth"])
    expected = _ratio(sums["chance_second"] ** 2, sums["chance_fourth"])
    if space.is_simplex or not tests.scalar:
        extreme = np.full(space.dimension, extreme.all())
    expected = np.where(np.resize(extreme, tests.n_moments), expected, np.inf)
    effective = np.minimum(np.minimum(by_test, by_errors), expected)
    widths = 2 * largest_integrands(tests, space)
    return Spread(means, centred * n / max(n - 1, 1) / weight**2, effective, widths, n, largest_unit / weight)


def spread_of_moments(
    guarantee: Guarantee,
    space: Space,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    clusters: IntArray | None = None,
) -> Spread:
    """Visit all rows once. Weights sum to one; clusters are numbers from zero, one per row."""
    one = guarantee.evaluate(forecasts[:1], space)
    step = min(_ROWS_AT_ONCE, max(64, _NUMBERS_AT_ONCE // max(1, one.values.size)))
    starts = np.arange(0, len(forecasts), step)
    if clusters is not None:
        order = np.argsort(clusters, kind="stable")
        edges = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        starts = edges[np.unique(np.searchsorted(edges, starts).clip(0, edges.size - 1))]
    low, high = (end[:, None] for end in space.bounds)

    def add(which: slice) -> dict[str, Any]:
        chosen: Any = slice(starts[which.start], starts[which.stop] if which.stop < len(starts) else len(forecasts))
        units = None
        if clusters is not None:
            units = edges[slice(*np.searchsorted(edges, [chosen.start, chosen.stop]))] - chosen.start
            chosen = order[chosen]
        tests, w = guarantee.evaluate(np.ascontiguousarray(forecasts[chosen]), space), weights[chosen]
        v, y = (np.ascontiguousarray(table[chosen].T) for table in (forecasts, outcomes))
        if tests.scalar and units is None:
            sums = _sums_of_rows(tests, space, y - v, v, w)
        else:
            sums = _sums_of_units(tests, space, y - v, v, w, units)
        shares = _per_unit(w, units)
        extreme = ((y == low) | (y == high)).all(axis=1)
        return sums | {"squared_weights": shares @ shares, "units": shares.size, "W": shares.max(), "extreme": extreme}

    try:
        parts = over_rows(add, len(starts), rows=1, threads_from=1 << 5)
    except InputError:
        guarantee.evaluate(forecasts, space)  # all rows at once, so that the error names the caller's rows
        raise
    found = {name: np.array([part[name] for part in parts]) for name in parts[0]}
    largest, extreme = found.pop("W").max(), found.pop("extreme").all(axis=0)
    sums = {name: column.sum(axis=0) for name, column in found.items()}
    return spread_of_sums(one.without_rows(), space, sums, float(largest), np.asarray(extreme))


def _sums_of_rows(
    tests: EvaluatedTests, space: Space, errors: FloatArray, forecasts: FloatArray, weights: FloatArray
) -> dict[str, FloatArray]:
    """Sums of scalar tests over rows as products of matrices; errors and forecasts are ``(d, n)``."""
    low, high = (end[:, None] for end in space.bounds)
    shares = np.ascontiguousarray(tests.values.T) * weights
    squares = shares * shares
    powers = {0: np.abs(shares), 1: shares, 2: squares, 4: squares * squares}
    sums = {}
    for name, term in scalar_terms(weights, errors, forecasts, low, high).items():
        table = powers[POWERS[name]]
        if term is None:
            sums[name] = np.repeat(table.sum(axis=1), tests.dimension)
        else:
            sums[name] = (table @ term.T).reshape(-1)
    return sums


def _sums_of_units(
    tests: EvaluatedTests,
    space: Space,
    errors: FloatArray,
    forecasts: FloatArray,
    weights: FloatArray,
    units: IntArray | None,
) -> dict[str, FloatArray]:
    """Sums of vector tests, or over units that begin at some rows."""
    columns = list(zip(errors, forecasts, zip(*space.bounds, strict=True), strict=True))
    if tests.scalar:  # one coordinate after the other
        table = np.ascontiguousarray(tests.values.T)
        blocks = [([table], [column]) for column in columns]
    else:
        blocks = [(list(np.ascontiguousarray(tests.values.transpose(2, 1, 0))), columns)]
    shares, found = _per_unit(weights, units), []
    classes = space.is_simplex and not tests.scalar
    alone = units is None and (tests.scalar or classes)
    for values, block in blocks:
        terms = row_terms(weights, values, *zip(*block, strict=True), classes=classes, alone=alone, arithmetic=ARRAYS)
        totals = {name: _per_unit(term, units) for name, term in terms.items()}
        found.append({name: term.sum(axis=1) for name, term in unit_terms(shares, **totals).items()})
    return {name: np.stack([block[name] for block in found], axis=1).reshape(-1) for name in POWERS}


def _per_unit(rows: FloatArray, units: IntArray | None) -> FloatArray:
    """Add up rows, the last axis, that belong to one unit; every row is a unit if there are none."""
    return rows if units is None else np.add.reduceat(rows, units, axis=-1)


def largest_integrands(tests: EvaluatedTests, space: Space) -> FloatArray:
    """Largest possible ``|Z|`` of each moment: ``max |B|`` times how far outcomes can be from forecasts."""
    with np.errstate(invalid="ignore"):
        reach: FloatArray = np.where(tests.bounds > 0, tests.bounds * space.widths, 0.0).sum(axis=1)
    if space.is_simplex:
        reach = np.minimum(reach, 2 * tests.bounds.max(axis=1, initial=0.0))
    return reach


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
