"""One pass over rows: everything additive that estimates of moments need.

Rows are visited in parts that fit the cache, so memory does not grow with
their number. Independent units are rows, or clusters of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.compiled import compiled
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.joining import join
from prudent.moments import sum_loops
from prudent.moments.spread import Spread, per_unit
from prudent.narrow import largest_in_rows
from prudent.spaces import Simplex, Space

__all__ = ["MomentSums", "integrands", "join_sums", "largest_integrands", "moment_sums"]

_ROWS_AT_ONCE = 1 << 14
_NUMBERS_AT_ONCE = 1 << 22
_NARROW = 16


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
        Where outcomes are all at the ends of the space: what second and fourth would be (at most) if forecasts were
        right. Rare outcomes that happened not to occur show here, and nowhere else.
    chance_known : array of shape (K,)
        Moments whose outcomes are of that kind.
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
    chance_known: NDArray[np.bool_]
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
            expected = _ratio(self.chance_second**2, self.chance_fourth)
            counts = np.where(self.chance_known, np.minimum(counts, expected), counts)
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
    written_out: bool = False,
    evaluated: EvaluatedTests | None = None,
) -> MomentSums:
    """Visit all rows once. Weights sum to one; clusters are numbers from zero, one per row.

    Scalar tests that stand beside vector tests are ``written_out`` as such. Who has evaluated the guarantee on these
    rows before passes ``evaluated``.
    """
    extreme = _at_the_ends(space, outcomes)

    def evaluate(chosen: Any) -> EvaluatedTests:
        if evaluated is not None:
            part = evaluated.take(chosen)
            if part.scalar:
                part = replace(part, values=part.values.copy(order="K"))  # laid out as if evaluated alone
        else:
            part = guarantee.evaluate(np.ascontiguousarray(forecasts[chosen]), space)
        return part if part.scalar and not written_out else part.as_vector()

    one = evaluate(slice(0, 1))
    per_row = max(1, one.as_vector().values.size)
    step = min(_ROWS_AT_ONCE, max(64, _NUMBERS_AT_ONCE // per_row))
    if clusters is None:
        slices = [slice(first, first + step) for first in range(0, len(forecasts), step)]
        order, edges = None, None
    else:
        order = np.argsort(clusters, kind="stable")
        edges = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        cuts = edges[np.unique(np.searchsorted(edges, np.arange(0, len(order), step)).clip(0, edges.size - 1))]
        slices = [slice(first, last) for first, last in zip(cuts, [*cuts[1:], len(order)], strict=True)]

    written = sum_loops.add_up_scalar_tests if one.scalar else sum_loops.add_up_vector_tests
    loop = None if products or clusters is not None else compiled(written, forecasts.size)

    def add(which: slice) -> dict[str, Any]:
        part = slices[which.start]
        chosen: Any = part if order is None else order[part]
        starts = None
        if edges is not None:
            inside = slice(*np.searchsorted(edges, [part.start, part.stop]))
            starts = edges[inside] - part.start
        v, w = np.ascontiguousarray(forecasts[chosen]), weights[chosen]
        tests = evaluate(chosen)
        if loop is not None:
            return _looped(loop, tests, space, v, outcomes[chosen], w)
        integrand = _for_sums(integrands(tests, outcomes[chosen] - v)) * w[:, None]
        values = _centred_values(tests, v, space)
        size = _for_sums(_largest_coordinates(values, tests))
        totals, shares = per_unit(integrand, starts), per_unit(w, starts)
        reach = per_unit(size * w[:, None], starts)
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
            "tests": tests.without_rows(),
        }
        if products:
            sums["products"] = totals.T @ totals
        if extreme.any():
            sums |= _chance(values, tests, space, v, w, starts)
        return sums

    try:
        parts = over_rows(add, len(slices), rows=1, threads_from=1 << 5)
    except InputError:
        guarantee.evaluate(forecasts, space)  # all rows at once, so that the error names the caller's rows
        raise

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
        total("chance_second") if extreme.any() else None,
        total("chance_fourth") if extreme.any() else None,
        np.tile(extreme, tests.n_tests) if tests.scalar else np.full(tests.n_moments, extreme.all()),
        2 * largest_integrands(tests, space),
    )


def _looped(
    loop: Callable[..., Any],
    tests: EvaluatedTests,
    space: Space,
    forecasts: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
) -> dict[str, Any]:
    """Add up rows that are units in one pass."""
    kind = () if tests.scalar else (isinstance(space, Simplex),)
    given = (np.ascontiguousarray(array) for array in (tests.values, forecasts, outcomes, weights))
    sums = loop(*given, *space.bounds, *kind)
    return {
        "units": len(weights),
        "largest": float(weights.max()),
        "squared_weights": float(weights @ weights),
        "tests": tests.without_rows(),
        **dict(zip(sum_loops.SUMS, sums.T, strict=True)),
    }


def join_sums(parts: Sequence[MomentSums]) -> MomentSums:
    """Put sums of several guarantees over the same rows side by side; without products, which would need the rows.

    The parts are all of scalar tests or all of vector tests, as :func:`prudent.guarantees.evaluated.join` makes them.
    """
    if len(parts) == 1:
        return parts[0]
    one = parts[0]

    def joined(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else np.concatenate(found)

    return MomentSums(
        join([part.tests for part in parts]),
        one.n_rows,
        one.n_units,
        one.largest_unit,
        one.squared_weights,
        joined("first"),
        joined("second"),
        joined("fourth"),
        joined("cross"),
        None,
        joined("reach"),
        joined("squared_reach"),
        joined("chance_second"),
        joined("chance_fourth"),
        joined("chance_known"),
        joined("widths"),
    )


def integrands(tests: EvaluatedTests, residuals: FloatArray) -> FloatArray:
    """``B_j(v_i) . (y_i - v_i)``, shape ``(n, K)``."""
    if not tests.scalar:
        return np.einsum("nkd,nd->nk", tests.values, residuals)
    if tests.dimension == 1:
        return tests.values * residuals
    return (tests.values[:, :, None] * residuals[:, None, :]).reshape(tests.n_rows, -1)


def _for_sums(table: FloatArray) -> FloatArray:
    """Lay the rows of a narrow table next to each other in memory: sums over rows then run along it."""
    return np.asfortranarray(table) if table.shape[1] <= _NARROW else table


def _largest_coordinates(values: FloatArray, tests: EvaluatedTests) -> FloatArray:
    """Largest ``|B|`` of every row and test, ``(n, K)``; scalar tests have one."""
    size = np.abs(values)
    if tests.scalar:
        return size
    return largest_in_rows(size)


def _per_moment(values: FloatArray, tests: EvaluatedTests) -> FloatArray:
    return np.repeat(values, tests.dimension) if tests.scalar else values


def _centred_values(tests: EvaluatedTests, forecasts: FloatArray, space: Space) -> FloatArray:
    """Test values without what no difference of outcomes sees: on the simplex, their mean under the forecast."""
    if tests.scalar or not isinstance(space, Simplex):
        return tests.values
    return tests.values - np.einsum("nkd,nd->nk", tests.values, forecasts)[:, :, None]


def _chance(
    values: FloatArray,
    tests: EvaluatedTests,
    space: Space,
    forecasts: FloatArray,
    weights: FloatArray,
    starts: IntArray | None,
) -> dict[str, FloatArray]:
    """Second and fourth moments of errors if outcomes are at the ends and forecasts right.

    An outcome at the ends with mean ``v`` has variance ``a b`` for ``a = v - low``, ``b = high - v``, and fourth
    moment ``a b (a^2 - a b + b^2)``; classes are drawn with the forecast's probabilities. Coordinates of a box that
    are added up, and rows of one unit, may all go together: standard deviations add, and the fourth moment is at most
    the variance times the square of the largest error.
    """
    low, high = space.bounds
    below, above = forecasts - low, high - forecasts
    variance, far = below * above, np.maximum(below, above)
    n = len(forecasts)
    if tests.scalar and starts is None:
        squares = values**2 * (weights**2)[:, None]
        fourth = variance * (below**2 - variance + above**2)
        return {
            "chance_second": (squares.T @ variance).reshape(-1),
            "chance_fourth": ((squares**2).T @ fourth).reshape(-1),
        }
    if tests.scalar:
        size = np.abs(values)[:, :, None]
        deviation = (size * np.sqrt(variance)[:, None, :]).reshape(n, -1)
        reach = (size * far[:, None, :]).reshape(n, -1)
    elif isinstance(space, Simplex):
        squares = values * values
        deviation = np.sqrt(np.einsum("nkd,nd->nk", squares, forecasts))
        if starts is None:
            second = (deviation * weights[:, None]) ** 2
            squares *= squares
            fourth = np.einsum("nkd,nd->nk", squares, forecasts) * np.square(weights * weights)[:, None]
            return {"chance_second": second.sum(axis=0), "chance_fourth": fourth.sum(axis=0)}
        reach = largest_in_rows(np.abs(values))
    else:
        deviation = np.einsum("nkd,nd->nk", np.abs(values), np.sqrt(variance))
        reach = np.einsum("nkd,nd->nk", np.abs(values), far)
    deviation, reach = (per_unit(_for_sums(rows) * weights[:, None], starts) for rows in (deviation, reach))
    squares = deviation**2
    return {"chance_second": squares.sum(axis=0), "chance_fourth": (squares * reach**2).sum(axis=0)}


def _at_the_ends(space: Space, outcomes: FloatArray) -> NDArray[np.bool_]:
    """For each coordinate, whether every outcome is an extreme point of the space: classes, or yes and no."""
    if isinstance(space, Simplex):
        return np.full(space.dimension, (largest_in_rows(outcomes) == 1.0).all())
    low, high = space.bounds
    ends: NDArray[np.bool_] = ((outcomes == low) | (outcomes == high)).all(axis=0)
    return ends


def largest_integrands(tests: EvaluatedTests, space: Space) -> FloatArray:
    """Largest possible ``|Z|`` of each moment: ``max |B|`` times how far outcomes can be from forecasts."""
    low, high = space.bounds
    with np.errstate(invalid="ignore"):
        reach: FloatArray = np.where(tests.bounds > 0, tests.bounds * (high - low), 0.0).sum(axis=1)
    if isinstance(space, Simplex):
        reach = np.minimum(reach, 2 * tests.bounds.max(axis=1, initial=0.0))
    return reach


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
