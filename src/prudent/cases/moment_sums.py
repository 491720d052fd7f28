"""One pass over rows: everything additive that estimates of moments need, and these with simultaneous intervals.

Rows are visited in parts that fit the cache, so memory does not grow with their number. Independent units are rows, or
clusters of rows (:class:`PeriodSums`). ``U`` is a row's ``w Z``, ``Z = B(v) . (y - v)``; what is added up,
:func:`row_terms`, are formulas for NumPy arrays and for expressions of an engine alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import Context, FloatArray, IntArray, context_rows, frozen
from prudent.arrays.chunks import over_rows
from prudent.cases.mean_bounds import FEWEST_PERIODS, Means, PastErrors, PeriodSums
from prudent.errors import InputError
from prudent.formatting import Table, format_table
from prudent.guarantees import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import Slack
from prudent.spaces import Space

_ROWS_AT_ONCE = 1 << 14
_NUMBERS_AT_ONCE = 1 << 19

#: The sums, and the power of a scalar test in each.
POWERS = {"first": 1, "second": 2, "cross": 1}


def row_terms(total: Any, weight: Any) -> dict[str, Any]:
    """Terms of the sums over rows: ``U``, ``U^2`` and ``w U``; None stands for a weight of one."""
    return {"first": total, "second": total * total, "cross": total if weight is None else total * weight}


def means_of_sums(
    sums: Mapping[str, Any],
    most: FloatArray,
    largest: float,
    weight: float = 1.0,
    totals: Callable[[int], tuple[FloatArray, FloatArray]] | None = None,
) -> Means:
    """Return moments as means of bounded values, from sums over all rows.

    Parameters
    ----------
    sums : mapping of str to array of shape (K,)
        Those of :func:`row_terms`, the number of rows (``units``), and ``squared_weights``.
    most : array of shape (K,)
        Largest possible ``|Z|``.
    largest : float
        Largest weight of a row.
    weight : float
        Of all rows.
    totals : callable, optional
        As in Means.
    """
    means, second, cross = sums["first"] / weight, sums["second"] / weight**2, sums["cross"] / weight**2
    squared = float(sums["squared_weights"]) / weight**2
    return Means(means, second, cross, squared, int(sums["units"]), largest / weight, -most, most, totals)


def means_of_moments(
    guarantee: Guarantee,
    space: Space,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    clusters: IntArray | None = None,
    context: Context | None = None,
) -> Means:
    """Visit all rows once. Weights sum to one; clusters are numbers from zero, one per row."""
    one = guarantee.evaluate(forecasts[:1], space, context_rows(context, slice(1)))
    step = min(_ROWS_AT_ONCE, max(64, _NUMBERS_AT_ONCE // max(1, one.values.size)))
    starts, order = np.arange(0, len(forecasts), step), None
    if clusters is not None:  # parts of whole clusters
        order = np.argsort(clusters, kind="stable")
        edges = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        starts = edges[np.unique(np.searchsorted(edges, starts).clip(0, edges.size - 1))]
    unbounded = not np.isfinite(one.bounds).all()

    def add(which: slice) -> tuple[Any, FloatArray]:
        chosen: Any = slice(starts[which.start], starts[which.stop] if which.stop < len(starts) else len(forecasts))
        chosen = chosen if order is None else order[chosen]
        points, w = np.ascontiguousarray(forecasts[chosen]), weights[chosen]
        tests = guarantee.evaluate(points, space, context_rows(context, chosen))
        errors = np.ascontiguousarray((outcomes[chosen] - forecasts[chosen]).T)
        reach = np.abs(tests.as_vector().values) @ space.widths if unbounded else np.zeros((1, tests.n_moments))
        if clusters is not None:
            units = np.cumsum(np.diff(clusters[chosen], prepend=clusters[chosen[0]]) != 0)
            return PeriodSums.of_rows(_integrands(tests, errors) * w, w, units), reach.max(axis=0)
        sums = _sums(tests, errors, w) | {"squared_weights": w @ w, "units": w.size, "largest": w.max()}
        return sums, reach.max(axis=0)

    @cache
    def evaluated() -> tuple[EvaluatedTests, FloatArray]:
        return guarantee.evaluate(forecasts, space, context), (outcomes - forecasts).T

    def totals(k: int) -> tuple[FloatArray, FloatArray]:
        """Rows of one moment, and weights."""
        tests, errors = evaluated()
        own = np.flatnonzero(tests.source[k] >= 0)
        return weights * (tests.table[:, tests.source[k, own]].T * errors[own]).sum(axis=0), weights

    try:
        parts, reaches = zip(*over_rows(add, len(starts), rows=1, threads_from=1 << 5), strict=True)
    except InputError:
        guarantee.evaluate(forecasts, space, context)  # all rows at once, so that the error names the caller's rows
        raise
    most = largest_integrands(one, space, np.max(reaches, axis=0))
    if clusters is not None:
        columns = ([getattr(part, each.name) for part in parts] for each in fields(PeriodSums))
        return PeriodSums(*map(np.concatenate, columns)).means(-most, most)
    sums = {name: np.array([part[name] for part in parts]) for name in parts[0]}
    largest = float(sums.pop("largest").max())
    return means_of_sums({name: column.sum(axis=0) for name, column in sums.items()}, most, largest, totals=totals)


def _sums(tests: EvaluatedTests, errors: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
    """Sums over rows, of scalar tests as products of matrices; errors are ``(d, n)``."""
    if not tests.scalar:
        terms = row_terms(_integrands(tests, errors) * weights, weights)
        return {name: term.sum(axis=1) for name, term in terms.items()}
    shares = np.ascontiguousarray(tests.values.T) * weights
    powers = {1: shares, 2: shares * shares}
    return {name: (powers[POWERS[name]] @ term.T).reshape(-1) for name, term in row_terms(errors, weights).items()}


def _integrands(tests: EvaluatedTests, errors: FloatArray) -> FloatArray:
    """``Z`` of every moment and row, ``(K, n)``."""
    values = np.ascontiguousarray(tests.values.T)  # (k, n), or (d, K, n)
    if tests.scalar:
        return (values[:, None] * errors).reshape(-1, errors.shape[1])
    return (values * errors[:, None]).sum(axis=0)


def largest_integrands(tests: EvaluatedTests, space: Space, seen: FloatArray | float = np.inf) -> FloatArray:
    """Largest possible ``|Z|`` of each moment: ``max |B|`` times how far outcomes can be from forecasts.

    Where tests declare no bound, it is the largest at the forecasts seen.
    """
    with np.errstate(invalid="ignore"):
        reach: FloatArray = np.where(tests.bounds > 0, tests.bounds * space.widths, 0.0).sum(axis=1)
    if space.is_simplex:
        reach = np.minimum(reach, 2 * tests.bounds.max(axis=1, initial=0.0))
    return np.where(np.isfinite(reach), reach, seen)


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
