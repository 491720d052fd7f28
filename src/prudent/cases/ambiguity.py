"""The ambiguity set: weighted rows, their tests, the slack, and known structure.

``Q_S = { q : q(v) in P, M(q) in S }`` with ``M(q) = E[B(f) . (q(f) - f)]``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field, replace

import numpy as np

from prudent.arrays import Context, FloatArray, IntArray, frozen
from prudent.arrays.column_reductions import sums_of_rows
from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.intervals import MomentEstimates
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import Slack, SlackSet
from prudent.spaces import Space


@frozen
class Ambiguity:
    """All worlds that a guarantee allows on a weighted sample of forecasts.

    Attributes
    ----------
    space : Box or Simplex
    forecasts : array of shape (n, d)
    weights : array of shape (n,)
        Positive, sum one.
    tests : EvaluatedTests
    slack : SlackSet
    full : bool
        True if the only world is the forecast itself.
    plug_in_multipliers : array of shape (K,) or None
        Multipliers that make best responding optimal, where the tests contain them.
    member : array of shape (n, d) or None
        Outcomes that made the centre of the slack set: a world known to be in it.
    allowance : Slack
        The slack set in the units that users give it in, all numbers.
    merged : int
        The most rows that one row stands for; its weight and mean forecast are rounded as often.
    n_snapped : int
        Rows moved onto the space by at most 1e-6 of its width.
    cache : BoundedCache or None
        Of the rows.
    key : hashable or None
        What tells these worlds from others on the same rows.
    measured : MomentEstimates or None
        Where the slack was measured.
    """

    space: Space
    forecasts: FloatArray
    weights: FloatArray
    tests: EvaluatedTests
    slack: SlackSet
    full: bool = False
    plug_in_multipliers: FloatArray | None = None
    member: FloatArray | None = None
    allowance: Slack = field(default_factory=lambda: Slack(0.0))
    merged: int = 1
    n_snapped: int = 0
    cache: BoundedCache | None = None
    key: Hashable = None
    measured: MomentEstimates | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows with positive weight."""
        return int(self.forecasts.shape[0])

    def take(self, part: slice) -> Ambiguity:
        """Look at some rows; weights still add up with those of the others."""
        if part.indices(self.n_rows) == (0, self.n_rows, 1):
            return self
        return replace(
            self,
            forecasts=self.forecasts[part],
            weights=self.weights[part],
            tests=self.tests.take(part),
            member=None if self.member is None else self.member[part],
            cache=None,
            key=None,
        )

    def merge(self, index: IntArray, count: int) -> Ambiguity:
        """Collapse rows with equal tests into cells with total weight and mean forecast.

        Exact: a row enters the dual only through ``phi(s) - s.v``, and rows
        with equal tests have equal tilts, whatever the multipliers.
        """

        def sums(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(index, weights=values, minlength=count), dtype=np.float64)

        weights = sums(self.weights)

        low, high = self.space.bounds

        def means(values: FloatArray) -> FloatArray:
            if self.space.is_simplex:  # or sums beside one would cancel in the mean
                values = values / sums_of_rows(values)[:, None]
            found = np.stack([sums(self.weights * column) / weights for column in (values - low).T], axis=1)
            return np.clip(low + found, low, high)  # a mean of points at the bound may round past it

        return replace(
            self,
            forecasts=means(self.forecasts),
            weights=weights,
            tests=self.tests.take(first_rows(index, count)),
            member=None if self.member is None else means(self.member),
            merged=self.merged + int(np.bincount(index).max()),
            cache=None,
            key=None,
        )


def evaluate_rows(
    guarantee: Guarantee, forecasts: FloatArray, space: Space, context: Context | None = None
) -> EvaluatedTests:
    """Evaluate a resolved guarantee; tests whose squares leave the range of floats are refused."""
    tests = guarantee.evaluate(forecasts, space, context)
    sizes = tests.sizes
    if sizes.size and (sizes.max() > 1e100 or ((sizes > 0) & (sizes < 1e-100)).any()):
        odd = sizes.max() if sizes.max() > 1e100 else sizes[sizes > 0].min()
        raise InputError(
            f"tests must have sizes between 1e-100 and 1e100 (or be zero); one reaches {odd:.3g}. Rescale the test."
        )
    return tests


def first_rows(index: IntArray, count: int) -> IntArray:
    """First row of every cell."""
    first = np.zeros(count, dtype=np.int64)
    first[index[::-1]] = np.arange(index.size)[::-1]
    return first
