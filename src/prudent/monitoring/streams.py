"""What is watched of a policy: numbers per row whose mean is at most zero while its promise is kept.

With multipliers fixed, ``E u(pi, Y) >= E[phi(s) - s.v] - E[s.(Y - v)]`` in any world (docs/theory.md, section 7). Two
scalars carry the guarantee of a robust policy: the first needs no outcomes and moves when forecasts drift, the second
moves when calibration breaks. Both are watched, and realised utility with them. Other rules promise the utility that
they have at their own forecasts. Beside these, which are about less utility than promised, the moments of a guarantee
are watched on both sides.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, frozen
from prudent.cases.moment_sums import largest_integrands
from prudent.errors import FileFormatError, InputError
from prudent.evidence.confidence import certified_range, certified_utilities, slack_cost, tilt_range
from prudent.files.records import Record
from prudent.formatting import Printable, format_number
from prudent.guarantees import Guarantee
from prudent.guarantees.base import parts_of
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.names import read_guarantee
from prudent.monitoring.betting import BettingProcess
from prudent.policies import FixedRule, Policy, RecalibratedPolicy, RobustPolicy
from prudent.recalibration.base import Recalibrator
from prudent.slack import Slack

#: By stream, values ``(n, c)`` that are at most zero on average, and the least that each could have been.
Values = dict[str, tuple[FloatArray, Any]]


_STREAMS = {
    "forecast drift": "forecasts have drifted to where less is guaranteed",
    "calibration": "the forecaster does not keep its guarantee any more",
    "utility": "realised utility is below what was promised",
    "moments": "outcomes are {side} than forecast",
}
SIDES = ("higher", "lower")


@dataclass(frozen=True, repr=False)
class Alarm(Printable):
    """One quantity that was shown to be off.

    Attributes
    ----------
    stream : str
        "forecast drift", "calibration", "utility" or "moments".
    row : int
        After so many rows of that stream the evidence sufficed.
    since : int
        Rows before the likely start: an estimate.
    size : float
        An estimate of how far it is off since then: of utility how much beyond the tolerance; of a moment how far from
        what was promised, in units of the outcome.
    time : str or None
        The time given with the batch in which it was shown.
    moment, side : str or None
        Which moment, by its test, and whether outcomes are "higher" or "lower" than forecast.
    """

    stream: str
    row: int
    since: int
    size: float
    time: str | None = None
    moment: str | None = None
    side: str | None = None

    def __str__(self) -> str:
        weighted = "" if self.moment in (None, "1") else f", weighted by {self.moment},"
        beyond = " more than tolerated" if self.moment is None else ""
        return (
            f"{self.stream}: {_STREAMS[self.stream].format(side=self.side)}{weighted} by about "
            f"{format_number(self.size, 3)}{beyond} since about row {self.since:,}; shown at row {self.row:,}"
            + (f", {self.time}" if self.time else "")
        )

    @classmethod
    def from_dict(cls, content: Any) -> "Alarm":
        """Read an alarm from a file."""
        record = Record(content, "alarm", *Alarm.__dataclass_fields__)
        row = record.count("row")
        for name, known in (("stream", (*_STREAMS,)), ("side", (None, *SIDES))):
            if record[name] not in known:
                raise FileFormatError(f"alarm.{name} must be one of {list(known)}; got {record[name]!r}.")
        time, moment = (None if record[name] is None else record.typed(name, str) for name in ("time", "moment"))
        return cls(
            record["stream"], row, record.count("since", row), record.number("size"), time, moment, record["side"]
        )


@frozen
class Streams:
    """What is watched of one policy.

    Attributes
    ----------
    rule : Policy
        What decides, behind recalibrations.
    recalibrators : list of Recalibrator
        In the order in which they are applied.
    tolerance : float
    guarantee : Guarantee
        Whose moments are watched.
    tests : EvaluatedTests
        Its tests, without rows.
    reach, center, limits : arrays of shape (K,)
        How large a moment can be in a row; where it should be, and how far from there it may be.
    """

    rule: Any
    recalibrators: list[Recalibrator]
    tolerance: float
    guarantee: Guarantee
    tests: EvaluatedTests
    reach: FloatArray
    center: FloatArray
    limits: FloatArray

    @classmethod
    def of(cls, policy: Policy, tolerance: float, guarantee: Guarantee | None) -> "Streams":
        """Choose what to watch; refuse tests without bounds."""
        rule, recalibrators = deciding_rule(policy)
        space, slack = rule._problem.space, Slack(0.0)
        if guarantee is None and isinstance(rule, RobustPolicy):
            guarantee, slack = rule.guarantee_, rule.slack_
        guarantee = guarantee or read_guarantee("unbiased")
        if guarantee.full or any(getattr(part, "of_sample", False) for part in parts_of(guarantee)):
            raise InputError(
                f"guarantee must be finite and not depend on a sample; got {guarantee!r}. Give the edges of bins; "
                f"where forecasts are trusted entirely, watch a PlugInPolicy."
            )
        tests = guarantee.evaluate(space.middle, space).without_rows()
        reach = largest_integrands(tests, space)
        if not np.isfinite(reach).all():
            raise InputError(
                "policy and guarantee must have tests that are bounded, or evidence cannot be weighed; declare "
                "FromFunctions(bounds=...), or use bins instead of log-odds."
            )
        allowed = slack.resolve(tests, None)
        limits = allowed.radius_of_moments + np.minimum(_harmless(rule, tolerance, tests), reach)
        return cls(rule, recalibrators, tolerance, guarantee, tests, reach, allowed.center, limits)

    def processes(self) -> dict[str, BettingProcess]:
        """Bets on each stream, before any row."""
        rule, scales = self.rule, dict[str, Any]()
        if isinstance(rule, RobustPolicy):
            scales = {"forecast drift": np.ptp(certified_range(rule)), "calibration": tilt_range(rule)}
        scales["utility"] = rule._problem.utility_range
        if self.reach.size:
            scales["moments"] = np.repeat(self.reach, 2)
        return {name: BettingProcess(scale) for name, scale in scales.items()}

    def of_forecasts(self, forecasts: FloatArray) -> Values:
        """How far forecasts are below what was certified, for a robust policy."""
        rule = self.rule
        if not isinstance(rule, RobustPolicy):
            return {}
        floor = rule.certificate_.lower - self.tolerance + rule.fitted_.slack_cost
        beyond = floor - certified_utilities(rule, self._decided_on(forecasts))
        return {"forecast drift": (beyond[:, None], floor - certified_range(rule)[1])}

    def of_outcomes(self, forecasts: FloatArray, outcomes: FloatArray) -> Values:
        """How far rows are beyond what is allowed."""
        rule, own = self.rule, self._decided_on(forecasts)
        problem, errors, mixtures = rule._problem, outcomes - own, rule._mixtures(own)
        tests, limits = self.guarantee.evaluate(own, problem.space), np.repeat(self.limits, 2)
        values: Values = {}
        if isinstance(rule, RobustPolicy):
            # Its guarantee is about averages over forecasts: a stake must not depend on the forecast of its own row.
            tilts: Any = rule.fitted_.tilts(own)
            limit, floor = slack_cost(rule) + self.tolerance, rule.certificate_.lower - self.tolerance
            earned = (mixtures * problem.linear_utility(outcomes)).sum(axis=1)
            values["calibration"] = ((tilts * errors).sum(axis=1) - limit)[:, None], -tilt_range(rule) - limit
            values["utility"] = (floor - earned)[:, None], floor - certified_range(rule)[1]
            least = -np.repeat(self.reach + np.abs(self.center), 2)
        else:
            lost = -(mixtures @ problem.rewards)  # what is promised minus what is realised is linear in the error
            possible = problem.space.support_minimum(lost) - (lost * own).sum(axis=1) - self.tolerance
            values["utility"] = ((lost * errors).sum(axis=1) - self.tolerance)[:, None], possible[:, None]
            directions = _both_sides(tests.vectors)
            least = problem.space.support_minimum(directions) - _both_sides(tests.row_moments(own) + self.center)
        if self.reach.size:
            values["moments"] = _both_sides(tests.row_moments(errors) - self.center) - limits, least - limits
        return values

    def _decided_on(self, forecasts: FloatArray) -> FloatArray:
        """The forecasts that the rule gets."""
        for recalibrator in self.recalibrators:
            forecasts = recalibrator.transform(forecasts)
        return forecasts


def deciding_rule(policy: Any) -> tuple[Policy, list[Recalibrator]]:
    """Return the rule behind recalibrations, and these; refuse rules that cannot be watched."""
    rule, recalibrators = policy, []
    while isinstance(rule, RecalibratedPolicy):
        recalibrators.append(rule.recalibrator)
        rule = rule.policy
    if not isinstance(rule, Policy):
        raise InputError(f"policy must be a Policy, such as PlugInPolicy; got {type(policy).__name__}.")
    if isinstance(rule, FixedRule) and rule.labels is not None:
        raise InputError("policy must decide by the forecast; a FixedRule of labels says nothing about new cases.")
    if isinstance(rule, RobustPolicy) and hasattr(rule, "fitted_") and rule.fitted_.per_row:
        raise InputError(
            "policy must be without rewards or costs per row; fit one for the problem that all rows share."
        )
    if isinstance(rule, RobustPolicy) and rule.criterion != "utility":
        raise InputError("policy must have criterion='utility': its certificate is what is watched.")
    check_is_fitted(rule)
    if policy.columns:
        raise InputError(f"policy must decide by the forecast; this one looks at context, {', '.join(policy.columns)}.")
    return rule, recalibrators


def _harmless(rule: Policy, tolerance: float, tests: EvaluatedTests) -> FloatArray:
    """How far each moment may be off ``(K,)`` before what one action gets over another changes by the tolerance."""
    rewards, simplex = rule._problem.rewards, rule._problem.space.is_simplex
    spread = np.ptp(rewards - rewards.mean(axis=1, keepdims=True) * simplex, axis=0)
    moments = np.full(tests.bounds.shape, np.inf)
    np.divide(tolerance * tests.bounds, spread, out=moments, where=(tests.bounds > 0) & (spread > 0))
    return moments.min(axis=1, initial=np.inf)


def _both_sides(values: FloatArray) -> FloatArray:
    """Every moment, followed by its negative, along the second axis."""
    return np.stack([values, -values], axis=2).reshape(len(values), -1, *values.shape[2:])
