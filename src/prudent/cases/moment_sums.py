"""One pass over rows: everything additive that estimates of moments need.

Rows are visited in parts that fit the cache, so memory does not grow with their number. Independent units are rows, or
clusters of rows. ``U`` is a unit's weighted total of ``Z = B(v) . (y - v)``, ``W`` its weight; what is added up over
units, :func:`unit_terms`, are formulas for NumPy arrays and for expressions of an engine alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.arrays.chunks import over_rows
from prudent.cases.mean_bounds import Means, PeriodSpread, period_terms
from prudent.errors import InputError
from prudent.guarantees import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.spaces import Space

_ROWS_AT_ONCE = 1 << 14
_NUMBERS_AT_ONCE = 1 << 19

#: The sums, and the power of a scalar test in each.
POWERS = {"first": 1, "second": 2, "cross": 1}


def unit_terms(total: Any, weight: Any) -> dict[str, Any]:
    """Terms of the sums over units: ``U``, ``U^2`` and ``W U``; None stands for a weight of one."""
    return {"first": total, "second": total * total, "cross": total if weight is None else total * weight}


def means_of_sums(
    tests: EvaluatedTests,
    space: Space,
    sums: Mapping[str, Any],
    largest_unit: float,
    largest: FloatArray,
    weight: float = 1.0,
    totals: Callable[[int], tuple[FloatArray, FloatArray]] | None = None,
) -> Means:
    """Return moments as means of bounded values, from sums over all units.

    Parameters
    ----------
    tests : EvaluatedTests
        Without rows.
    space : Box or Simplex
    sums : mapping of str to array of shape (K,)
        Those of :func:`unit_terms`, the number of ``units``, and ``squared_weights``, of ``W^2``; where units are
        periods, also those of :func:`prudent.cases.mean_bounds.period_terms` and the ``largest_row``.
    largest_unit : float
        Maximum of ``W``.
    largest : array of shape (K,)
        Largest ``|Z|`` that an outcome could have made at the forecasts seen; used where tests declare no bound.
    weight : float
        Of all units.
    totals : callable, optional
        As in Means.
    """
    declared = largest_integrands(tests, space)
    most = np.where(np.isfinite(declared), declared, largest)
    means, second, cross = sums["first"] / weight, sums["second"] / weight**2, sums["cross"] / weight**2
    squared, units = float(sums["squared_weights"]) / weight**2, int(sums["units"])
    spread = None
    if "between" in sums:
        scaled = {name: sums[name] / weight**2 for name in ("row_second", "row_cross", "row_squared_weights")}
        scaled |= {name: sums[name] / weight for name in ("spread", "between")}
        plain = {name: sums[name] for name in ("rows", "inverse_sizes")}
        spread = PeriodSpread.of_sums(means, units, scaled | plain, float(sums["largest_row"]) / weight)
    return Means(means, second, cross, squared, units, largest_unit / weight, -most, most, totals, spread)


def means_of_moments(
    guarantee: Guarantee,
    space: Space,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    clusters: IntArray | None = None,
) -> Means:
    """Visit all rows once. Weights sum to one; clusters are numbers from zero, one per row."""
    one = guarantee.evaluate(forecasts[:1], space)
    step = min(_ROWS_AT_ONCE, max(64, _NUMBERS_AT_ONCE // max(1, one.values.size)))
    starts = np.arange(0, len(forecasts), step)
    if clusters is not None:
        order = np.argsort(clusters, kind="stable")
        edges = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        starts = edges[np.unique(np.searchsorted(edges, starts).clip(0, edges.size - 1))]
    unbounded = not np.isfinite(one.bounds).all()

    def add(which: slice) -> dict[str, Any]:
        chosen: Any = slice(starts[which.start], starts[which.stop] if which.stop < len(starts) else len(forecasts))
        units = None
        if clusters is not None:
            units = edges[slice(*np.searchsorted(edges, [chosen.start, chosen.stop]))] - chosen.start
            chosen = order[chosen]
        tests, w = guarantee.evaluate(np.ascontiguousarray(forecasts[chosen]), space), weights[chosen]
        errors = np.ascontiguousarray((outcomes[chosen] - forecasts[chosen]).T)
        sums: dict[str, Any]
        if tests.scalar and units is None:
            sums = _sums_of_rows(tests, errors, w)
        else:
            sums = _sums_of_units(tests, errors, w, units)
        shares = _per_unit(w, units)
        sums = {**sums, "squared_weights": shares @ shares, "units": shares.size, "largest_unit": shares.max()}
        if units is not None:
            sizes = np.diff(units, append=w.size)
            sums |= {"row_squared_weights": w @ w, "rows": w.size, "inverse_sizes": (1 / sizes).sum()}
            sums["largest_row"] = w.max()
        reach = np.abs(tests.as_vector().values) @ space.widths if unbounded else np.zeros((1, tests.n_moments))
        return sums | {"largest": reach.max(axis=0)}

    @cache
    def evaluated() -> tuple[EvaluatedTests, FloatArray]:
        return guarantee.evaluate(forecasts, space), outcomes - forecasts

    def totals(k: int) -> tuple[FloatArray, FloatArray]:
        """Unit totals of one moment, and weights."""
        tests, errors = evaluated()
        if tests.scalar:
            test, j = divmod(k, tests.dimension)
            found = weights * tests.values[:, test] * errors[:, j]
        else:
            found = weights * (tests.values[:, k] * errors).sum(axis=1)
        if clusters is None:
            return found, weights
        total, weight = (np.bincount(clusters, weights=each).astype(np.float64) for each in (found, weights))
        return total, weight

    try:
        parts = over_rows(add, len(starts), rows=1, threads_from=1 << 5)
    except InputError:
        guarantee.evaluate(forecasts, space)  # all rows at once, so that the error names the caller's rows
        raise
    found = {name: np.array([part[name] for part in parts]) for name in parts[0]}
    largest_unit, largest = float(found.pop("largest_unit").max()), found.pop("largest").max(axis=0)
    sums = {name: (column.max if name == "largest_row" else column.sum)(axis=0) for name, column in found.items()}
    return means_of_sums(one.without_rows(), space, sums, largest_unit, largest, totals=totals)


def _sums_of_rows(tests: EvaluatedTests, errors: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
    """Sums of scalar tests over rows as products of matrices; errors are ``(d, n)``."""
    shares = np.ascontiguousarray(tests.values.T) * weights
    powers = {1: shares, 2: shares * shares}
    terms = unit_terms(errors, weights)
    return {name: (powers[POWERS[name]] @ term.T).reshape(-1) for name, term in terms.items()}


def _sums_of_units(
    tests: EvaluatedTests, errors: FloatArray, weights: FloatArray, units: IntArray | None
) -> dict[str, FloatArray]:
    """Sums of vector tests, or over units that begin at some rows."""
    values = np.ascontiguousarray(tests.values.T)  # (k, n), or (d, K, n)
    products = values[:, None] * errors if tests.scalar else [(values * errors[:, None]).sum(axis=0)]
    shares = _per_unit(weights, units)
    found = []
    for rows in products:
        totals = _per_unit(rows * weights, units)
        terms = unit_terms(totals, shares)
        if units is not None:
            terms |= period_terms(rows * weights, weights) | {"between": totals * totals / shares}
        found.append({name: term.sum(axis=-1) for name, term in terms.items()})
    names = POWERS if units is None else (*POWERS, "row_second", "row_cross", "spread", "between")
    return {name: np.concatenate([np.zeros(0), *(terms[name] for terms in found)]) for name in names}


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
