"""From measured moments to one of four verdicts, in a sentence that follows from the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.ambiguity import Ambiguity, Slack, build_ambiguity
from prudent.arrays import FloatArray
from prudent.auditing.labelled import Labelled
from prudent.guarantees import UtilityCalibrated
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments import POWER, MomentEstimates, largest_integrands
from prudent.policies import RobustPolicy, SafetyPolicy
from prudent.policies.robust import fit_worlds
from prudent.problem import DecisionProblem
from prudent.solvers import Game, Solution, solve
from prudent.spaces import Simplex, Space

__all__ = ["DEFAULT_TOLERANCE", "Verdict", "VerdictKind", "decide", "without_problem"]

#: What matters unless the user says so: this share of the utility range, or of the width of outcomes.
DEFAULT_TOLERANCE = 0.05


class VerdictKind(Enum):
    """What to do with a forecaster."""

    TRUST = "trust"
    HEDGE = "hedge"
    REPAIR = "repair"
    NOT_ENOUGH_DATA = "not_enough_data"


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the audit comes to; ``str()`` is the sentence.

    Attributes
    ----------
    kind : VerdictKind
    sentence : str
    tolerance : float or None
        What matters, in units of utility (without a problem, of slack); None where every moment has its own.
    loss : float or None
        At most this much guaranteed utility is lost by best responding instead of playing the best policy, in the
        worst world within the measured slack: ``V_S - worst_S(plug-in)``, certified.
    bound : float or None
        How far best responding may fall short of the utility that it promises, ``sum_a eps_a |r_a|``; it bounds the
        loss.
    undetected : float or None
        What the smallest violation of that promise that this sample could have detected would cost.
    policy : RobustPolicy or None
        The hedge: optimal for everything that was measured, with its slack.
    guaranteed : float or None
        What the hedge guarantees.
    nominal_cost : float or None
        What the hedge costs if the forecasts are right.
    """

    kind: VerdictKind
    sentence: str
    tolerance: float | None
    loss: float | None = None
    bound: float | None = None
    undetected: float | None = None
    policy: RobustPolicy | None = None
    guaranteed: float | None = None
    nominal_cost: float | None = None

    def __str__(self) -> str:
        return self.sentence


def without_problem(
    estimates: MomentEstimates, rejected: tuple[str, ...], space: Space, tolerance: float | None
) -> Verdict:
    """Judge a guarantee alone: whether it is violated, and whether that could have been seen."""
    tests = estimates.tests
    largest = largest_integrands(tests, space)
    low, high = space.bounds
    # A test that nobody has bounded is measured by the width of outcomes, as if it reached one.
    largest = np.where(np.isfinite(largest), largest, float((high - low).max())) / tests.scales
    matters = DEFAULT_TOLERANCE * largest if tolerance is None else np.full(largest.size, tolerance)
    if rejected:
        return Verdict(VerdictKind.REPAIR, f"repair: {_violation(estimates)}.", tolerance)
    detectable = estimates.detectable / tests.scales
    unseen = np.flatnonzero(detectable > matters)
    if unseen.size:
        worst = int(unseen[np.argmax(detectable[unseen] / np.maximum(matters[unseen], 1e-300))])
        sentence = (
            f"not enough data: a violation of {tests.names[worst]!r} by up to {detectable[worst]:.3g} could go "
            f"unnoticed, and {matters[worst]:.3g} matters."
        )
        return Verdict(VerdictKind.NOT_ENOUGH_DATA, sentence, tolerance)
    seen = f"one of {detectable.max():.3g} would have been" if detectable.size else "it asks for nothing"
    sentence = (
        f"trust the guarantee: no violation is found, and {seen}. Whether to best respond depends on the decision: "
        f"pass problem=."
    )
    return Verdict(VerdictKind.TRUST, sentence, tolerance)


def decide(
    problem: DecisionProblem,
    guarantee: Guarantee,
    sample: Labelled,
    estimates: MomentEstimates,
    confidence: float,
    method: str,
    tolerance: float,
) -> Verdict:
    """Judge what to do in one decision problem. The guarantee is resolved; ``estimates`` are its own.

    Best responding is right if the utility that it promises is right on average, so that moment is measured along
    with the guarantee's own, unless they contain it. All losses are at the measured slack of all of them.
    """
    multipliers = guarantee.plug_in_multipliers(problem, sample.forecasts)
    everything, measured = guarantee, estimates
    if multipliers is None:
        everything = guarantee & UtilityCalibrated((problem,))
        measured = sample.estimate(everything, confidence, method)
        multipliers = np.zeros(measured.tests.n_moments)
        multipliers[-1] = -1.0
    known = _Known(problem, everything, sample, measured, confidence)
    line = multipliers != 0
    line_broken = bool((measured.p_values[line] < 1 - confidence).any())
    broken = bool((estimates.p_values < 1 - confidence).any())
    bound = known.shortfall(multipliers)
    hedge = known.hedge()
    best_responding = known.worst_of_best_responding()
    loss = max(hedge.certificate_.upper - best_responding, 0.0)
    undetected = known.cost_of_undetected(line)
    numbers: dict[str, Any] = {"tolerance": tolerance, "loss": loss, "bound": bound, "undetected": undetected}
    level = f"{100 * confidence:g}% confidence; {tolerance:.2g} matters"
    if bound <= tolerance or (not line_broken and max(loss, undetected) <= tolerance):
        sentence = (
            f"trust it: best responding guarantees {best_responding:.4g}, at most {bound:.2g} less than it promises "
            f"and {loss:.2g} less than the best policy would guarantee ({level})."
        )
        return Verdict(VerdictKind.TRUST, sentence, **numbers)
    nominal = _nominal_cost(problem, hedge, sample)
    numbers |= {"policy": hedge, "guaranteed": hedge.value_, "nominal_cost": nominal}
    cost = f"best responding may fall {bound:.2g} short of what it promises ({level})"
    if broken:
        return Verdict(VerdictKind.REPAIR, f"repair: {_violation(estimates)}; {cost}.", **numbers)
    if line_broken and loss <= tolerance:
        sentence = (
            f"repair: {_violation(measured)}; {cost}, and no other policy would guarantee more than {loss:.2g} on top."
        )
        return Verdict(VerdictKind.REPAIR, sentence, **numbers)
    own = np.ones(measured.tests.n_moments, dtype=bool) if estimates is measured else ~line
    unseen = known.cost_of_undetected(own)
    safe = SafetyPolicy(problem).certificate_.lower
    informed = line_broken or (unseen <= tolerance and hedge.value_ > safe + tolerance)
    if loss > tolerance and informed:
        sentence = (
            f"hedge: {cost}, and guarantees {best_responding:.4g}. The robust policy for what was measured guarantees "
            f"{hedge.value_:.4g} and costs {nominal:.2g} if the forecasts are right."
        )
        return Verdict(VerdictKind.HEDGE, sentence, **numbers)
    sentence = (
        f"not enough data: a violation that {len(sample.forecasts):,} rows would miss more often than "
        f"{1 - POWER:.0%} could cost {max(unseen, undetected):.2g} of guaranteed utility ({level})."
    )
    return Verdict(VerdictKind.NOT_ENOUGH_DATA, sentence, **numbers)


@dataclass(frozen=True, eq=False)
class _Known:
    """Everything that was measured, and what it means for one decision."""

    problem: DecisionProblem
    guarantee: Guarantee
    sample: Labelled
    measured: MomentEstimates
    confidence: float

    @cached_property
    def tests(self) -> EvaluatedTests:
        return self.sample.evaluate(self.guarantee)

    @cached_property
    def ambiguity(self) -> Ambiguity:
        return self._with(Slack("audit").measure(self.measured, self.confidence))

    def _with(self, slack: Slack) -> Ambiguity:
        rows = self.sample
        return build_ambiguity(self.problem, self.guarantee, rows.forecasts, rows.weights, slack, tests=self.tests)

    def shortfall(self, multipliers: FloatArray) -> float:
        """``sum_a eps_a |r_a|``: how far best responding may fall short of its promise.

        Regions without rows cost nothing here, nor does what no outcome difference sees: on the simplex a constant
        may be taken off each action's rewards, and the cheapest is a weighted median.
        """
        tests, radius = self.measured.tests, self.ambiguity.slack.radius
        if not tests.scalar:
            return self.ambiguity.slack.support(multipliers)
        seen = np.repeat(np.abs(self.ambiguity.tests.values).max(axis=0) > 0, tests.dimension)
        rewards = np.where(seen, multipliers, 0.0).reshape(-1, tests.dimension)
        if isinstance(self.problem.space, Simplex):
            rewards = rewards - _weighted_medians(rewards, radius.reshape(rewards.shape))
        return self.ambiguity.slack.support(rewards.reshape(-1))

    def hedge(self) -> RobustPolicy:
        """The best policy in the worst world within the measured slack."""
        return fit_worlds(self.problem, self.guarantee, self.ambiguity)

    def worst_of_best_responding(self) -> float:
        played = self.problem.best_mixtures(self.sample.forecasts)
        return solve(Game.of_mixtures(self.problem, played), self.ambiguity).lower

    def cost_of_undetected(self, which: NDArray[np.bool_]) -> float:
        """Guaranteed utility lost if these moments are off by the smallest violation that would have been seen.

        The others are left as they were measured.
        """
        tests = self.measured.tests

        def value(radius: FloatArray) -> Solution:
            shaped = (radius / tests.scales).reshape(tests.multiplier_shape)
            return solve(Game.of_problem(self.problem), self._with(Slack(shaped, "linf")))

        radius = np.abs(self.measured.estimates) + self.measured.radii
        exact = value(np.where(which, 0.0, radius))
        loose = value(np.where(which, self.measured.detectable, radius))
        return max(exact.upper - loose.lower, 0.0)


def _nominal_cost(problem: DecisionProblem, policy: RobustPolicy, sample: Labelled) -> float:
    played = problem.expected_utility(policy.predict_proba(sample.forecasts), sample.forecasts, sample.weights)
    best = problem.best_mixtures(sample.forecasts)
    return problem.expected_utility(best, sample.forecasts, sample.weights) - played


def _violation(estimates: MomentEstimates) -> str:
    """Say which moment is off most clearly, by how much, and how many others are."""
    worst = int(np.lexsort((-np.abs(estimates.estimates) / np.maximum(estimates.radii, 1e-300), estimates.p_values))[0])
    value, radius = float(estimates.estimates[worst]), float(estimates.radii[worst])
    others = int((np.abs(estimates.estimates) > estimates.radii).sum()) - 1
    more = f" (and {others} more)" if others > 0 else ""
    side = "above" if value > 0 else "below"
    return (
        f"the moment {estimates.tests.names[worst]!r} is {value:+.3g}, between {value - radius:.3g} and "
        f"{value + radius:.3g}, and not zero{more}: weighted by this test, outcomes lie {side} forecasts"
    )


def _weighted_medians(values: FloatArray, weights: FloatArray) -> FloatArray:
    """A weighted median of each row, shape ``(rows, 1)``."""
    order = np.argsort(values, axis=1)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    middle = (reached >= reached[:, -1:] / 2).argmax(axis=1)
    return np.take_along_axis(values, np.take_along_axis(order, middle[:, None], axis=1), axis=1)
