"""Estimated moments with simultaneous intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, parts_of
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments.radii import METHODS, choose_methods, p_values, radii, require_widths
from prudent.moments.spread import Spread
from prudent.moments.sums import MomentSums, join_sums, moment_sums
from prudent.spaces import Space

__all__ = ["POWER", "MomentEstimates", "estimate_moments", "estimates_from_sums"]

#: "Could have been detected" means: with this probability.
POWER = 0.8

_DRAWS = 9_999
_DRAWS_AT_ONCE = 500
_DRAWS_BEYOND = 10


@dataclass(frozen=True, eq=False)
class MomentEstimates:
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
    """

    tests: EvaluatedTests
    spread: Spread
    radii: FloatArray
    p_values: FloatArray
    methods: NDArray[np.str_]
    detectable: FloatArray

    @property
    def estimates(self) -> FloatArray:
        """The measured moments, shape ``(K,)``."""
        return self.spread.means


def estimate_moments(
    guarantee: Guarantee,
    space: Space,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    *,
    confidence: float,
    method: str = "auto",
    clusters: IntArray | None = None,
) -> MomentEstimates:
    """Estimate the moments of a resolved guarantee on rows of positive weight."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    products = method == "bootstrap"
    rows = space, forecasts, outcomes, weights, clusters
    if products:  # of all pairs of moments
        sums = moment_sums(guarantee, *rows, products=True)
    else:
        parts = parts_of(guarantee)
        scalar = all(part.evaluate(forecasts[:1], space).scalar for part in parts)
        sums = join_sums([moment_sums(part, *rows, written_out=not scalar) for part in parts])
    if sums.n_units < 2:
        unit = "row" if clusters is None else "group"
        raise InputError(f"an interval needs at least two independent {unit}s; got one {unit}.")
    return estimates_from_sums(sums, confidence, method)


def estimates_from_sums(sums: MomentSums, confidence: float, method: str) -> MomentEstimates:
    """Turn sums into estimates with simultaneous intervals; the bootstrap needs their products."""
    spread, count = sums.spread, sums.tests.n_moments
    share = (1 - confidence) / max(count, 1)
    methods = choose_methods(spread, share, method)
    if method == "bootstrap" and count:
        if (1 - confidence) * (_DRAWS + 1) < _DRAWS_BEYOND:
            raise InputError(
                f"method 'bootstrap' has {_DRAWS:,} draws, too few for confidence {confidence:g}; use another method."
            )
        quantile, adjusted = _bootstrap(sums.covariance, spread, confidence)
        sizes = quantile * np.sqrt(spread.variances)
    else:
        require_widths(spread, methods, sums.tests.names)
        sizes = radii(spread, methods, share)
        adjusted = np.minimum(1.0, count * p_values(spread, methods))
    largest = spread.widths / 2  # no moment can be larger, so no interval need reach further
    sizes = np.minimum(sizes, largest + np.abs(spread.means))
    detectable = np.minimum(sizes + ndtri(POWER) * np.sqrt(spread.variances), largest)
    return MomentEstimates(sums.tests, spread, sizes, adjusted, methods, detectable)


def _bootstrap(covariance: FloatArray, spread: Spread, confidence: float) -> tuple[float, FloatArray]:
    """Quantile of the largest studentised moment, and adjusted p-values.

    Sums of the deviations with independent Gaussian multipliers are, given the
    data, exactly Gaussian with the estimated covariance: they are drawn from
    it directly, and no draw visits the rows.
    """
    scale = np.sqrt(spread.variances)
    live = scale > 0
    size = np.abs(spread.means)
    adjusted = np.where(size > 0, 1.0 / (_DRAWS + 1), 1.0)
    if not live.any():
        return 0.0, adjusted
    correlation = covariance[np.ix_(live, live)] / np.outer(scale[live], scale[live])
    values, vectors = np.linalg.eigh(correlation)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    generator = np.random.default_rng(0)
    statistic = size[live] / scale[live]
    largest, exceeded = np.empty(_DRAWS), np.zeros(statistic.size)
    for first in range(0, _DRAWS, _DRAWS_AT_ONCE):
        draws = generator.standard_normal((min(_DRAWS_AT_ONCE, _DRAWS - first), statistic.size)) @ root
        tops = np.abs(draws).max(axis=1)
        largest[first : first + tops.size] = tops
        exceeded += (tops[:, None] >= statistic).sum(axis=0)
    adjusted[live] = (1 + exceeded) / (_DRAWS + 1)
    rank = int(np.ceil(confidence * (_DRAWS + 1))) - 1
    return float(np.sort(largest)[min(rank, _DRAWS - 1)]), adjusted
