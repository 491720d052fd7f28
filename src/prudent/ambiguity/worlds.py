"""The ambiguity set: weighted rows, their tests, the slack, and known structure.

``Q_S = { q : q(v) in P, M(q) in S }`` with ``M(q) = E[B(f) . (q(f) - f)]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from prudent.ambiguity.slack import Slack, SlackSet
from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments import MomentEstimates, estimate_moments
from prudent.problem import DecisionProblem
from prudent.remembering import remembered_for_arrays
from prudent.spaces import Space

__all__ = ["Ambiguity", "build_ambiguity", "evaluate_rows", "first_rows", "of_usual_size"]


@dataclass(frozen=True, eq=False)
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

    @property
    def n_rows(self) -> int:
        """Number of rows with positive weight."""
        return int(self.forecasts.shape[0])

    def moments(self, beliefs: FloatArray) -> FloatArray:
        """Compute the flat moments ``M(q)`` of a world."""
        return self.tests.moments(beliefs - self.forecasts, self.weights)

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
        )

    def merge(self, index: IntArray, count: int) -> Ambiguity:
        """Collapse rows with equal tests into cells with total weight and mean forecast.

        Exact: a row enters the dual only through ``phi(s) - s.v``, and rows
        with equal tests have equal tilts, whatever the multipliers.
        """
        weights = _cell_weights(self.weights, index, count)

        def means(values: FloatArray) -> FloatArray:
            # A mean of points at the bound may round past it.
            return np.clip(_cell_means(values, self.weights, index, weights), *self.space.bounds)

        return replace(
            self,
            forecasts=means(self.forecasts),
            weights=weights,
            tests=self.tests.take(first_rows(index, count)),
            member=None if self.member is None else means(self.member),
        )


def build_ambiguity(
    problem: DecisionProblem,
    guarantee: Guarantee,
    forecasts: FloatArray,
    weights: FloatArray,
    slack: Any,
    outcomes: FloatArray | None = None,
    confidence: float = 0.95,
    tests: EvaluatedTests | None = None,
    estimates: MomentEstimates | None = None,
) -> Ambiguity:
    """Evaluate a resolved guarantee on rows of positive weight and put slack around it.

    Slack that is to be measured holds with the given confidence, for all moments at once. Who has evaluated the
    guarantee on these rows before (:func:`evaluate_rows`) passes ``tests``, and who has measured it ``estimates``.
    """
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"guarantee must come from prudent.guarantees; got {type(guarantee).__name__} {guarantee!r}.")
    allowance = Slack.read(slack)
    space = problem.space
    if guarantee.full:
        if (
            allowance.audited
            or np.any(np.asarray(allowance.radius))
            or not (isinstance(allowance.center, str) and allowance.center == "zero")
        ):
            raise InputError("slack has no meaning for FullyCalibrated; use a finite guarantee or slack=0.")
        nothing = EvaluatedTests.from_scalar(np.zeros((len(forecasts), 0)), [], np.zeros(0), space.coordinate_names)
        empty = SlackSet(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), ball=False)
        return Ambiguity(space, forecasts, weights, nothing, empty, full=True)
    if tests is None:
        tests = evaluate_rows(guarantee, forecasts, space)
    if allowance.audited:
        if outcomes is None:
            raise InputError("slack='audit' is measured on outcomes: pass y to fit.")
        if estimates is None:
            estimates = estimate_moments(guarantee, space, forecasts, outcomes, weights, confidence=confidence)
        allowance = allowance.measure(estimates, confidence)
    measured = None
    if outcomes is not None and allowance.needs_outcomes:
        measured = tests.moments(outcomes - forecasts, weights)
    return Ambiguity(
        space,
        forecasts,
        weights,
        tests,
        allowance.resolve(tests, measured),
        plug_in_multipliers=guarantee.plug_in_multipliers(problem, forecasts),
        member=outcomes if measured is not None else None,
        allowance=allowance.settle(tests, measured),
    )


def evaluate_rows(guarantee: Guarantee, forecasts: FloatArray, space: Space) -> EvaluatedTests:
    """Evaluate a resolved guarantee; tests whose squares leave the range of floats are refused."""
    return of_usual_size(guarantee.evaluate(forecasts, space))


def of_usual_size(tests: EvaluatedTests) -> EvaluatedTests:
    """Refuse tests whose squares leave the range of floats."""
    sizes = tests.sizes
    if sizes.size and (sizes.max() > 1e100 or ((sizes > 0) & (sizes < 1e-100)).any()):
        odd = sizes.max() if sizes.max() > 1e100 else sizes[sizes > 0].min()
        raise InputError(
            f"tests must have sizes between 1e-100 and 1e100 (or be zero); one reaches {odd:.3g}. Rescale the test."
        )
    return tests


@remembered_for_arrays
def first_rows(index: IntArray, count: int) -> IntArray:
    """First row of every cell."""
    first = np.zeros(count, dtype=np.int64)
    first[index[::-1]] = np.arange(index.size)[::-1]
    return first


@remembered_for_arrays
def _cell_weights(weights: FloatArray, index: IntArray, count: int) -> FloatArray:
    """Total weight of every cell."""
    return np.bincount(index, weights=weights, minlength=count).astype(np.float64)


@remembered_for_arrays
def _cell_means(values: FloatArray, weights: FloatArray, index: IntArray, totals: FloatArray) -> FloatArray:
    """Weighted means of points ``(n, d)`` in every cell; many decisions meet the same cells of the same rows."""
    means = np.empty((totals.size, values.shape[1]))
    for j in range(values.shape[1]):
        means[:, j] = np.bincount(index, weights=weights * values[:, j], minlength=totals.size) / totals
    return means
