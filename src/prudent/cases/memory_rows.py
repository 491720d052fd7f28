"""Rows in memory on an outcome space: what is evaluated and added up on them, the cache of both, and their worlds.

An ambiguity set is ``Q_S = { q : q(v) in P, M(q) in S }`` with ``M(q) = E[B(f) . (q(f) - f)]``: weighted rows, their
tests and the slack.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from prudent.arrays import (
    AnyArray,
    BoolArray,
    Context,
    FloatArray,
    IntArray,
    context_rows,
    frozen,
    require_context,
    row_weights,
    sums_of_rows,
)
from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.cases.moment_sums import Measurement, MomentEstimates, estimate_moments, means_of_moments
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, parts_of
from prudent.guarantees.elementary import Nothing
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.within import Values, Within
from prudent.problem import DecisionProblem
from prudent.slack import Slack, SlackSet
from prudent.spaces import Space

#: Segments with fewer rows, or rows of fewer than four periods, are pooled.
FEWEST_ROWS = 30

# One decision takes about 16 times the bytes of the forecasts: the six worst worlds of a ladder, and the tests of its
# guarantees. What does not depend on the decision must outlast the next one.
_TIMES_FORECASTS, _MIN_BYTES, _MAX_BYTES = 32, 32 << 20, 512 << 20

_Group = tuple[int, int, float, "MemoryRows", IntArray]


@frozen
class MemoryRows:
    """Rows that take part: of positive weight, with an outcome where rows without one are dropped.

    Attributes
    ----------
    space : Box or Simplex
    forecasts : array of shape (n, d)
    outcomes : array of shape (n, d) or None
        Where there are none, policies can be fitted and nothing can be measured.
    weights : array of shape (n,)
        Sum to one.
    periods : array of shape (n,) or None
        Numbers from 0. Rows of one period depend on each other.
    everything : array of shape (N, d)
        The forecasts of all rows, those that take no part included.
    used : slice or array of shape (N,)
        Which of all rows take part.
    n_dropped : int
        Rows left out because their outcome is missing.
    n_snapped : int
        Rows moved onto the space by at most 1e-6 of its width.
    context : dict of arrays of shape (n,)
        What else is known at decision time, by name.
    """

    owns_cache: ClassVar[bool] = True

    space: Space
    forecasts: FloatArray
    outcomes: FloatArray | None
    weights: FloatArray
    periods: IntArray | None
    everything: FloatArray
    used: slice | AnyArray
    n_dropped: int = 0
    n_snapped: int = 0
    context: Context = field(default_factory=dict, repr=False)

    @cached_property
    def cache(self) -> BoundedCache:
        """Results on these rows, by everything else that they depend on."""
        wanted = _TIMES_FORECASTS * self.forecasts.nbytes
        return BoundedCache(64, min(max(wanted, _MIN_BYTES), _MAX_BYTES), owned=True)

    @property
    def known_outcomes(self) -> FloatArray:
        """The outcomes; an error where there are none."""
        if self.outcomes is None:
            raise InputError("outcomes must be given: without them nothing can be measured.")
        return self.outcomes

    @property
    def n_units(self) -> int:
        """Number of independent units: of rows, or of periods."""
        return len(self.forecasts) if self.periods is None else len(set(self.periods.tolist()))

    def some(self) -> FloatArray:
        """Copy a few evenly spaced forecasts, to tell later whether rows are those of a fit."""
        return self.everything[:: max(1, -(-len(self.everything) // 1_000))].copy()

    def spread(self, beliefs: FloatArray) -> FloatArray:
        """Put a world of the rows that take part back among all rows; the others keep their forecast."""
        world = self.everything.copy()
        world[self.used] = beliefs
        return world

    def groups(self, guarantee: Within, columns: tuple[str, ...]) -> Iterator[_Group]:
        """Rows of every group that has some, with these columns of context.

        The place of the group, the number and share of the weight of its rows, they, and which they are.
        """
        numbers = guarantee.numbers(self.context, len(self.forecasts), self._groups(guarantee))
        known = replace(self, periods=None, context={name: self.context[name] for name in columns})
        for place, own in guarantee.split(numbers):
            yield place, own.size, float(self.weights[own].sum()), known.take(own), own

    def take(self, which: Any) -> MemoryRows:
        """Keep some rows; their weights sum to one again."""
        points, equal = self.forecasts[which], self.weights.strides == (0,)
        outcomes = None if self.outcomes is None else self.outcomes[which]
        weights, _ = row_weights(None if equal else self.weights[which], len(points))
        periods = None if self.periods is None else np.unique(self.periods[which], return_inverse=True)[1]
        context = context_rows(self.context, which) or {}
        return MemoryRows(self.space, points, outcomes, weights, periods, points, slice(None), context=context)

    @property
    def segment_columns(self) -> list[str]:
        """Columns of context whose values are segments: all but numbers that are not whole."""
        return [name for name, column in self.context.items() if column.dtype.kind != "f"]

    def values(self, name: str) -> tuple[list[Any], IntArray, BoolArray]:
        """Return the values of a column of context, the place of every row's, and which are looked at alone."""
        groups, places = self._groups(Within(name, Nothing()))
        large = np.bincount(places) >= FEWEST_ROWS
        if self.periods is not None:
            count = int(self.periods.max()) + 1
            large &= np.bincount(np.unique(places * count + self.periods) // count) >= FEWEST_PERIODS
        return [value for (value,) in groups], places, large

    def pooled_context(self, columns: Iterable[str]) -> dict[str, AnyArray]:
        """Return some columns of context as text, in which values of few rows or periods have one name."""
        found = {}
        for name in columns:
            values, places, large = self.values(name)
            if len(values) == 1:
                raise InputError(f"context must tell rows apart; all have the same {name}. Leave the column out.")
            self.resolve(Within(name, Nothing()))  # refuses what says when, and not what
            names = [str(value) if alone else "other" for value, alone in zip(values, large, strict=True)]
            found[name] = np.array(names)[places]
        return found

    def segments(self, columns: Iterable[str]) -> list[tuple[str, IntArray]]:
        """Name the values of some columns of context, each with its rows; those of few rows are one segment."""
        found = self.pooled_context(columns).items()
        return [(f"{name}={value}", np.flatnonzero(own == value)) for name, own in found for value in sorted({*own})]

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        context = require_context(self.context, guarantee.context_columns, len(self.forecasts))
        for part in parts_of(guarantee):
            if isinstance(part, Within) and self.periods is not None:
                part.require_recurring(context, self.periods)
        if isinstance(guarantee, Within) and guarantee.groups is None:
            guarantee = Within(guarantee.columns, guarantee.guarantee, sorted(self._groups(guarantee)[0]))
        return guarantee.resolve(self.forecasts, self.weights, self.space, context)

    def _groups(self, guarantee: Within) -> tuple[list[Values], IntArray]:
        """The groups that occur, and that of every row."""
        given = self.context, len(self.forecasts)
        return self.cache.get(("groups", guarantee.columns), lambda: guarantee.occurring(*given))

    def evaluate(self, guarantee: Guarantee) -> EvaluatedTests:
        """Evaluate a resolved guarantee."""
        rows = self.forecasts, self.space, self.context
        return self.cache.get(("tests", guarantee), lambda: evaluate_rows(guarantee, *rows))

    def layout(self, guarantee: Guarantee) -> EvaluatedTests:
        """Names and units of the tests of a resolved guarantee, without rows."""
        first = self.forecasts[:1], self.space, context_rows(self.context, slice(1))
        return guarantee.evaluate(*first).without_rows()

    def measure(self, guarantee: Guarantee, confidence: float) -> Measurement:
        """Measure the moments of a resolved guarantee."""
        rows = self.space, self.forecasts, self.known_outcomes, self.weights, self.periods, self.context
        # Sums do not depend on the confidence.
        means = self.cache.get(("moments", guarantee), lambda: means_of_moments(guarantee, *rows))
        estimates = estimate_moments(self.layout(guarantee), means, confidence)
        return Measurement(estimates, len(self.forecasts), self.n_dropped)

    def worlds(
        self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack, confidence: float = 0.95
    ) -> Ambiguity:
        """Build the worlds that a resolved guarantee allows; slack that is measured has the given confidence."""
        if slack.needs_outcomes and self.outcomes is None:
            raise InputError("slack that is measured (slack='audit', center='measured') needs outcomes.")
        if guarantee.full and slack != Slack(0.0):
            raise InputError("slack has no meaning for FullyCalibrated; use a finite guarantee or slack=0.")
        audited, measured, member = None, None, None
        if slack.audited:
            audited = self.measure(guarantee, confidence).estimates
            slack = audited.slack()
        finite = Nothing() if guarantee.full else guarantee
        tests = self.evaluate(finite)
        if slack.needs_outcomes:
            member = self.known_outcomes
            measured = tests.moments(member - self.forecasts, self.weights)
        allowance = slack.settle(tests, measured)
        return Ambiguity(
            self.space,
            self.forecasts,
            self.weights,
            tests,
            slack.resolve(tests, measured),
            full=guarantee.full,
            plug_in_multipliers=finite.plug_in_multipliers(problem),
            member=member,
            allowance=allowance,
            n_snapped=self.n_snapped,
            cache=self.cache,
            key=(problem, guarantee, allowance),
            measured=audited,
        )


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
