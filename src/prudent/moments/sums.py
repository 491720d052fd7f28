"""One pass over rows: everything additive that estimates of moments need.

Rows are visited in parts that fit the cache, so memory does not grow with
their number. Independent units are rows, or clusters of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments.spread import Spread, per_unit
from prudent.spaces import Simplex, Space

__all__ = ["MomentSums", "moment_sums"]

_ROWS_AT_ONCE = 1 << 14
_NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class MomentSums:
    """Sums over units of ``Z_j = B_j(v) . (y - v)``, weighted, for every moment of a guarantee.

    ``U`` is a unit's weighted total of ``Z``, ``W`` its weight, ``H`` its weighted total of ``|B|``.

    Attributes
    ----------
    tests : EvaluatedTests
        Without rows: names, scales, groups and bounds of the moments.
    n_rows, n_units : int
    largest_unit, squared_weights : float
        Maximum of ``W`` and sum of its squares.
    first, second, fourth, cross : arrays of shape (K,)
        Sums of ``U``, ``U^2``, ``U^4`` and ``W U``.
    products : array of shape (K, K) or None
        Sum of ``U U^T``.
    reach, squared_reach : arrays of shape (K,)
        Sums of ``H`` and ``H^2``.
    chance_second, chance_fourth : arrays of shape (K,) or None
        Where outcomes are all at the ends of the space: what second and fourth would be at most if forecasts were
        right. Rare outcomes that happened not to occur show here, and nowhere else.
    observed : array of shape (K,)
        Largest ``|B|``.
    widths : array of shape (K,)
        Largest minus smallest possible ``Z``, from the declared bounds of the tests.
    """

    tests: EvaluatedTests
    n_rows: int
    n_units: int
    largest_unit: float
    squared_weights: float
    first: FloatArray
    second: FloatArray
    fourth: FloatArray
    cross: FloatArray
    products: FloatArray | None
    reach: FloatArray
    squared_reach: FloatArray
    chance_second: FloatArray | None
    chance_fourth: FloatArray | None
    observed: FloatArray
    widths: FloatArray

    @property
    def spread(self) -> Spread:
        """The moments as means with their variances and effective numbers of units."""
        return Spread(
            self.first,
            self._centred() * self.n_units / max(self.n_units - 1, 1),
            self._effective(),
            self.widths,
            self.n_units,
            self.largest_unit,
            self.squared_weights,
        )

    @property
    def covariance(self) -> FloatArray:
        """Estimated covariance of the moments, shape ``(K, K)``."""
        if self.products is None:
            raise ValueError("products were not asked for")
        shift = np.outer(self.first, self.cross)
        centred = self.products - shift - shift.T + np.outer(self.first, self.first) * self.squared_weights
        covariance: FloatArray = centred * self.n_units / max(self.n_units - 1, 1)
        return covariance

    def _effective(self) -> FloatArray:
        """Units that each moment rests on: by its test, by the errors seen, by the errors to be expected.

        Errors that are all alike say nothing of how they vary: those seen count by the share that is not their mean.
        """
        by_test = _ratio(self.reach**2, self.squared_reach)
        by_errors = _ratio(self.second * self._centred(), self.fourth)
        counts = np.minimum(by_test, by_errors)
        if self.chance_second is not None and self.chance_fourth is not None:
            counts = np.minimum(counts, _ratio(self.chance_second**2, self.chance_fourth))
        return counts

    def _centred(self) -> FloatArray:
        """Sum over units of ``(U - W mean)^2``."""
        centred = self.second - 2 * self.first * self.cross + self.first**2 * self.squared_weights
        return np.maximum(centred, 0.0)


def moment_sums(
    guarantee: Guarantee,
    space: Space,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    clusters: IntArray | None = None,
    *,
    products: bool = False,
) -> MomentSums:
    """Visit all rows once. Weights sum to one; clusters are numbers from zero, one per row."""
    low, high = space.bounds
    extreme = _at_the_ends(space, outcomes)
    per_row = max(1, guarantee.evaluate(forecasts[:1], space).as_vector().values.size)
    step = min(_ROWS_AT_ONCE, max(64, _NUMBERS_AT_ONCE // per_row))
    if clusters is None:
        slices = [slice(first, first + step) for first in range(0, len(forecasts), step)]
        order, edges = None, None
    else:
        order = np.argsort(clusters, kind="stable")
        edges = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        cuts = edges[np.unique(np.searchsorted(edges, np.arange(0, len(order), step)).clip(0, edges.size - 1))]
        slices = [slice(first, last) for first, last in zip(cuts, [*cuts[1:], len(order)], strict=True)]

    def add(which: slice) -> dict[str, Any]:
        part = slices[which.start]
        chosen: Any = part if order is None else order[part]
        starts = None
        if edges is not None:
            inside = slice(*np.searchsorted(edges, [part.start, part.stop]))
            starts = edges[inside] - part.start
        v, w = np.ascontiguousarray(forecasts[chosen]), weights[chosen]
        tests = guarantee.evaluate(v, space)
        integrand = _integrands(tests, outcomes[chosen] - v) * w[:, None]
        size = np.abs(tests.values)
        totals, shares = per_unit(integrand, starts), per_unit(w, starts)
        reach = per_unit((size if tests.scalar else size.max(axis=2, initial=0.0)) * w[:, None], starts)
        squares = totals * totals
        sums = {
            "units": totals.shape[0],
            "largest": float(shares.max()),
            "squared_weights": float(shares @ shares),
            "first": totals.sum(axis=0),
            "second": squares.sum(axis=0),
            "fourth": np.einsum("nk,nk->k", squares, squares),
            "cross": shares @ totals,
            "reach": _per_moment(reach.sum(axis=0), tests),
            "squared_reach": _per_moment(np.einsum("nk,nk->k", reach, reach), tests),
            "observed": _per_moment((size if tests.scalar else size.max(axis=2)).max(axis=0, initial=0.0), tests),
            "tests": tests.take(slice(0, 0)),
        }
        if products:
            sums["products"] = totals.T @ totals
        if extreme:
            sums |= _chance(tests, v - low, high - v, w)
        return sums

    parts = over_rows(add, len(slices), rows=1, threads_from=1 << 5)

    def total(name: str) -> FloatArray:
        return np.sum([part[name] for part in parts], axis=0)

    tests: EvaluatedTests = parts[0]["tests"]
    return MomentSums(
        tests,
        len(forecasts),
        sum(part["units"] for part in parts),
        max(part["largest"] for part in parts),
        float(total("squared_weights")),
        total("first"),
        total("second"),
        total("fourth"),
        total("cross"),
        total("products") if products else None,
        total("reach"),
        total("squared_reach"),
        total("chance_second") if extreme else None,
        total("chance_fourth") if extreme else None,
        np.max([part["observed"] for part in parts], axis=0),
        _widths(tests, space, tests.bounds),
    )


def _integrands(tests: EvaluatedTests, residuals: FloatArray) -> FloatArray:
    """``B_j(v_i) . (y_i - v_i)``, shape ``(n, K)``."""
    if not tests.scalar:
        return np.einsum("nkd,nd->nk", tests.values, residuals)
    if tests.dimension == 1:
        return tests.values * residuals
    return (tests.values[:, :, None] * residuals[:, None, :]).reshape(tests.n_rows, -1)


def _per_moment(values: FloatArray, tests: EvaluatedTests) -> FloatArray:
    return np.repeat(values, tests.dimension) if tests.scalar else values


def _chance(tests: EvaluatedTests, below: FloatArray, above: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
    """Second and fourth moments that errors have at most if outcomes are at the ends and forecasts right.

    An outcome at the ends with mean ``v`` has variance ``a b`` for ``a = v - low``, ``b = high - v``, and fourth
    moment ``a b (a^2 - a b + b^2)``. Where several coordinates are added up, the latter is at most the variance
    times the square of the largest error.
    """
    variance = below * above
    w2 = weights**2
    if tests.scalar:
        h2 = tests.values**2 * w2[:, None]
        return {
            "chance_second": (h2.T @ variance).reshape(-1),
            "chance_fourth": ((h2**2).T @ (variance * (below**2 - variance + above**2))).reshape(-1),
        }
    spread = np.einsum("nkd,nd->nk", tests.values**2, variance) * w2[:, None]
    reach = np.einsum("nkd,nd->nk", np.abs(tests.values), np.maximum(below, above)) ** 2 * w2[:, None]
    return {"chance_second": spread.sum(axis=0), "chance_fourth": np.einsum("nk,nk->k", spread, reach)}


def _at_the_ends(space: Space, outcomes: FloatArray) -> bool:
    """True if every outcome is an extreme point of the space: classes, or yes and no."""
    if isinstance(space, Simplex):
        return bool((outcomes.max(axis=1) == 1.0).all())
    low, high = space.bounds
    return bool(((outcomes == low) | (outcomes == high)).all())


def _widths(tests: EvaluatedTests, space: Space, bounds: FloatArray) -> FloatArray:
    """Largest minus smallest possible ``Z``: it lies between plus and minus ``max |B|`` times what outcomes move."""
    low, high = space.bounds
    if tests.scalar:
        return 2 * bounds * np.tile(high - low, tests.n_tests)
    movement = 2.0 if isinstance(space, Simplex) else float((high - low).sum())
    return 2 * bounds * movement


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
