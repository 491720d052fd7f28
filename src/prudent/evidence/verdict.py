"""From measured moments to one of four verdicts, in a sentence that follows from the numbers."""

from dataclasses import field
from enum import Enum
from typing import Any

import numpy as np

from prudent.arrays import BoolArray, FloatArray, frozen
from prudent.cases.intervals import POWER, Measurement, MomentEstimates
from prudent.cases.moment_sums import largest_integrands
from prudent.formatting import Printable, format_number
from prudent.guarantees import Guarantee, UtilityCalibrated
from prudent.policies import PlugInPolicy, RobustPolicy, SafetyPolicy
from prudent.policies.play import play
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import TOLERANCE, Certificate
from prudent.solvers.solve import best_policy
from prudent.spaces import Space

#: What matters unless the user says so: this share of the utility range, or of the width of outcomes.
DEFAULT_TOLERANCE = 0.05
# Says under what the numbers hold: a policy with other slack, or with slack around what was measured, has others.
_ALLOWED = "with errors up to the size measured, in either direction,"


class VerdictKind(Enum):
    """What to do with a forecaster."""

    TRUST = "trust"
    HEDGE = "hedge"
    REPAIR = "repair"
    NOT_ENOUGH_DATA = "not_enough_data"


@frozen
class Verdict(Printable):
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
        What the smallest violation of that promise that this sample could have detected would cost, where the verdict
        depends on it.
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
    policy: RobustPolicy | None = field(default=None, repr=False)
    guaranteed: float | None = None
    nominal_cost: float | None = None

    def __str__(self) -> str:
        return self.sentence


def without_problem(estimates: MomentEstimates, broken: bool, space: Space, tolerance: float | None) -> Verdict:
    """Judge a guarantee alone: whether it is violated, and whether that could have been seen."""
    tests = estimates.tests
    largest = largest_integrands(tests, space)
    # A test without a declared bound is measured by the width of outcomes, as if it reached one.
    largest = np.where(np.isfinite(largest), largest, float(space.widths.max())) / tests.scales
    matters = DEFAULT_TOLERANCE * largest if tolerance is None else np.full(largest.size, tolerance)
    if broken:
        return Verdict(VerdictKind.REPAIR, f"repair: {_violation(estimates)}.", tolerance)
    detectable = estimates.detectable / tests.scales
    unseen = np.flatnonzero(detectable > matters)
    if unseen.size:
        worst = int(unseen[np.argmax(detectable[unseen] / np.maximum(matters[unseen], 1e-300))])
        sentence = (
            f"not enough data: a violation of {tests.names[worst]!r} by up to {format_number(detectable[worst], 3)} "
            f"could go unnoticed, and {format_number(matters[worst], 3)} matters."
        )
        return Verdict(VerdictKind.NOT_ENOUGH_DATA, sentence, tolerance)
    seen = f"one of {format_number(detectable.max(), 3)} would have been" if detectable.size else "it asks for nothing"
    sentence = (
        f"trust the guarantee: no violation is found, and {seen}. Whether to best respond depends on the decision: "
        f"pass problem=."
    )
    return Verdict(VerdictKind.TRUST, sentence, tolerance)


def decide(
    problem: DecisionProblem,
    guarantee: Guarantee,
    rows: Any,
    measurement: Measurement,
    confidence: float,
    method: str,
    tolerance: float,
) -> Verdict:
    """Judge what to do in one decision problem. The guarantee is resolved; ``measurement`` is its own.

    Best responding is right if the utility that it promises is right on average, so that moment is measured along
    with the guarantee's own, unless they contain it. All losses are at the measured slack of all of them.
    """
    estimates = measurement.estimates
    multipliers = guarantee.plug_in_multipliers(problem)
    everything, measured = guarantee, estimates
    if multipliers is None:
        everything = guarantee & UtilityCalibrated((problem,))
        measured = rows.measure(everything, confidence, method).estimates
        multipliers = np.zeros(measured.tests.n_moments)
        multipliers[-1] = -1.0
    slack = measured.slack("zero")
    known = _Known(problem, everything, rows, measured)
    line = multipliers != 0
    line_broken = bool((measured.p_values[line] < 1 - confidence).any())
    broken = bool((estimates.p_values < 1 - confidence).any())
    bound = known.shortfall(multipliers, slack)
    hedge = RobustPolicy(problem, everything, slack=slack).fit_rows(rows)
    played = play([PlugInPolicy(problem)], rows, problem)
    best_responding = played.worst(0, played.rows.worlds(problem, everything, slack)).certificate.lower
    loss = max(hedge.certificate_.upper - best_responding, 0.0)
    numbers: dict[str, Any] = {"tolerance": tolerance, "loss": loss, "bound": bound}
    level = f"{100 * confidence:g}% confidence; {format_number(tolerance, 2)} matters"
    trusted = bound <= tolerance
    if not trusted and not line_broken and loss <= tolerance:
        numbers["undetected"] = known.cost_of_undetected(line)
        trusted = numbers["undetected"] <= tolerance
    if trusted:
        # Within the tolerance of the certificates there is no loss to report.
        behind = f"and {format_number(loss, 2)} less than the best policy would guarantee then"
        if loss <= TOLERANCE * problem.utility_range:
            behind = "and as much as any policy could guarantee then"
        sentence = (
            f"trust it: {_ALLOWED} best responding guarantees {format_number(best_responding, 4)}, at most "
            f"{format_number(bound, 2)} less than it promises {behind} ({level})."
        )
        return Verdict(VerdictKind.TRUST, sentence, **numbers)
    utilities = play([hedge], rows, problem).utilities()
    nominal = utilities.best - float(utilities.nominal[0])
    numbers |= {"policy": hedge, "guaranteed": hedge.certificate_.lower, "nominal_cost": nominal}
    cost = f"{_ALLOWED} best responding may fall {format_number(bound, 2)} short of what it promises ({level})"
    if broken:
        return Verdict(VerdictKind.REPAIR, f"repair: {_violation(estimates)}; {cost}.", **numbers)
    if line_broken and loss <= tolerance:
        sentence = (
            f"repair: {_violation(measured)}; {cost}, and no other policy would guarantee more than "
            f"{format_number(loss, 2)} on top."
        )
        return Verdict(VerdictKind.REPAIR, sentence, **numbers)
    own = np.ones(measured.tests.n_moments, dtype=bool) if estimates is measured else ~line
    unseen = known.cost_of_undetected(own)
    safe = SafetyPolicy(problem).certificate_.lower
    informed = line_broken or (unseen <= tolerance and hedge.certificate_.lower > safe + tolerance)
    if loss > tolerance and informed:
        sentence = (
            f"hedge: {cost}, and guarantees {format_number(best_responding, 4)}. The robust policy for such errors "
            f"guarantees {format_number(hedge.certificate_.lower, 4)} and costs {format_number(nominal, 2)} if the "
            f"forecasts are right."
        )
        return Verdict(VerdictKind.HEDGE, sentence, **numbers)
    if "undetected" not in numbers:
        numbers["undetected"] = known.cost_of_undetected(line)
    sentence = (
        f"not enough data: a violation that {measurement.n_rows:,} rows would miss more often than "
        f"{1 - POWER:.0%} could cost {format_number(max(unseen, numbers['undetected']), 2)} of guaranteed utility "
        f"({level})."
    )
    return Verdict(VerdictKind.NOT_ENOUGH_DATA, sentence, **numbers)


@frozen
class _Known:
    """Everything that was measured, and what it means for one decision."""

    problem: DecisionProblem
    guarantee: Guarantee
    rows: Any
    measured: MomentEstimates

    def _best(self, slack: Slack) -> Certificate:
        """Certify what the best policy guarantees, with slack in numbers."""
        return best_policy(self.problem, self.rows.worlds(self.problem, self.guarantee, slack)).certificate

    def shortfall(self, multipliers: FloatArray, allowance: Slack) -> float:
        """``sum_a eps_a |r_a|``: how far best responding may fall short of its promise.

        Regions without rows cost nothing here, nor does what no outcome difference sees: on the simplex a constant
        may be taken off each action's rewards, and the cheapest is a weighted median.
        """
        tests = self.measured.tests
        slack = allowance.resolve(tests, None)
        if not tests.scalar:
            return slack.support(multipliers)
        seen = self.rows.worlds(self.problem, self.guarantee, Slack(0.0)).tests.seen  # tests that are not always zero
        rewards = np.where(seen, multipliers, 0.0).reshape(-1, tests.dimension)
        if self.problem.space.is_simplex:
            radius = slack.radius.reshape(rewards.shape)
            weights = np.where(radius.sum(axis=1, keepdims=True) > 0, radius, 1.0)
            median: dict[str, Any] = {"method": "inverted_cdf", "axis": 1, "keepdims": True}
            rewards = rewards - np.quantile(rewards, 0.5, weights=weights, **median)
        return slack.support(rewards.reshape(-1))

    def cost_of_undetected(self, which: BoolArray) -> float:
        """Guaranteed utility lost if these moments are off by the smallest violation that would have been seen.

        The others are left as they were measured.
        """
        tests = self.measured.tests

        def with_radius(radius: FloatArray) -> Slack:
            return Slack((radius / tests.scales).reshape(tests.multiplier_shape), "linf")

        radius = np.abs(self.measured.estimates) + self.measured.radii
        exact = self._best(with_radius(np.where(which, 0.0, radius)))
        loose = self._best(with_radius(np.where(which, self.measured.detectable, radius)))
        return max(exact.upper - loose.lower, 0.0)


def _violation(estimates: MomentEstimates) -> str:
    """Say which moment is off most clearly, by how much, and how many others are."""
    worst = int(np.lexsort((-np.abs(estimates.estimates) / np.maximum(estimates.radii, 1e-300), estimates.p_values))[0])
    value, radius = float(estimates.estimates[worst]), float(estimates.radii[worst])
    others = int((np.abs(estimates.estimates) > estimates.radii).sum()) - 1
    more = f" (and {others} more)" if others > 0 else ""
    side = "above" if value > 0 else "below"
    return (
        f"the moment {estimates.tests.names[worst]!r} is {format_number(value, 3, '+')}, between "
        f"{format_number(value - radius, 3)} and "
        f"{format_number(value + radius, 3)}, and not zero{more}: weighted by this test, outcomes lie {side} forecasts"
    )
