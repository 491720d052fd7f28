"""What is watched of a policy: numbers per row whose mean is at most zero while its promise is kept.

With multipliers fixed, ``E u(pi, Y) >= E[phi(s) - s.v] - E[s.(Y - v)]`` in any world (docs/theory.md, section 7). Two
scalars carry the guarantee of a robust policy: the first needs no outcomes and moves when forecasts drift, the second
moves when calibration breaks. Both are watched, and realised utility with them. Other rules promise the utility that
they have at their own forecasts. Beside these, which are about less utility than promised, the moments of a guarantee
are watched on both sides.

Evidence is the wealth of bets at fair odds. One that stakes a share ``lambda`` of its capital multiplies it by
``1 + lambda X`` per row. While ``E[X | past] <= 0`` it is a supermartingale, so (Ville's inequality) it ever exceeds
``1 / alpha`` with probability at most ``alpha``, however often one looks. A stake may depend on what is known before
the outcome: it is as large as the least possible ``X`` of that row allows, so evidence grows with the variance that
outcomes have and not with the width of their space. The initial capital is spread over a grid of stakes, since size and
variance of a violation are unknown, over all starting times, since its start is, and over columns: quantities watched
together, whose wealth is averaged. All bets with one stake on one column are kept as a single sum.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, IntArray, frozen
from prudent.cases.moment_sums import largest_integrands
from prudent.errors import FileFormatError, InputError
from prudent.evidence.confidence import certified_range, certified_utilities, slack_cost, tilt_range
from prudent.files import Document, Record
from prudent.formatting import Printable, format_number
from prudent.guarantees import Guarantee
from prudent.guarantees.base import parts_of
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.names import read_guarantee
from prudent.policies import FixedRule, Policy, RecalibratedPolicy, RobustPolicy
from prudent.recalibration.base import Recalibrator
from prudent.slack import Slack

_STAKES = 2.0 ** np.arange(-10, 6)
_LARGEST_LOSS = 0.9  # of the capital, in one row
_NUMBERS_AT_ONCE = 1 << 17
_NOTHING = -1e300  # logarithm of the wealth of bets before any has started; files hold no infinity
#: What a file holds.
FIELDS = ("wealth", "n_rows", "excess", "lowest", "lowest_at")


class BettingProcess:
    """Wealth of bets that ``E X > 0`` in some of ``c`` columns, in time order.

    Parameters
    ----------
    scales : array of shape (c,)
        About the largest ``|X|`` of each column: stakes are multiples of one over it.

    Attributes
    ----------
    wealth : array of shape (c, stakes)
        Logarithms, one for each stake, of the bets that have started.
    n_rows : int
    excess : array of shape (c,)
        Sums of ``X``.
    lowest, lowest_at : arrays of shape (c,)
        The smallest ``excess`` so far, and after how many rows: the likely start of a violation.
    """

    def __init__(self, scales: Any) -> None:
        scales = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        self._stakes: FloatArray = _STAKES / np.maximum(scales, 1e-300)[:, None]
        self.wealth: FloatArray = np.full(self._stakes.shape, _NOTHING)
        self.n_rows = 0
        self.excess, self.lowest = np.zeros(scales.size), np.zeros(scales.size)
        self.lowest_at: IntArray = np.zeros(scales.size, dtype=np.int64)

    @property
    def log_value(self) -> float:
        """Logarithm of the wealth now; it starts at zero."""
        return float(_log_values(self.n_rows, self.wealth))

    @property
    def strongest(self) -> int:
        """The column whose bets have won most."""
        return int(np.logaddexp.reduce(self.wealth, axis=1).argmax())

    def size(self, column: int) -> float:
        """Mean of ``X`` since the likely start of a violation: an estimate of its size."""
        rows = self.n_rows - int(self.lowest_at[column])
        return float(self.excess[column] - self.lowest[column]) / rows if rows else 0.0

    def extend(self, values: FloatArray, least: Any) -> FloatArray:
        """Add rows in time order ``(n, c)``, with the least that each value could have been.

        Return the logarithm of the wealth after each of them.
        """
        least = np.broadcast_to(least, values.shape)
        inside = np.maximum(values, least)  # but for rounding they are
        step = max(1, _NUMBERS_AT_ONCE // self.wealth.size)
        parts = (slice(start, start + step) for start in range(0, len(values), step))
        return np.concatenate([np.zeros(0), *(self._extend(inside[part], least[part]) for part in parts)])

    def _extend(self, values: FloatArray, least: FloatArray) -> FloatArray:
        # With a stake of one over the largest loss wealth could become zero.
        allowed = np.divide(-_LARGEST_LOSS, least, out=np.full(least.shape, np.inf), where=least < 0)
        growth = np.cumsum(np.log1p(np.minimum(self._stakes, allowed[..., None]) * values[..., None]), axis=0)
        before = np.concatenate([np.zeros((1, *self.wealth.shape)), growth[:-1]])
        rows = self.n_rows + np.arange(len(values))
        starting = np.log(_waiting(rows) - _waiting(rows + 1))[:, None, None]
        wealth = growth + np.logaddexp.accumulate(np.concatenate([self.wealth[None], starting - before]), axis=0)[1:]
        path = self.excess + np.cumsum(values, axis=0)
        deepest = path.min(axis=0)
        self.lowest_at = np.where(deepest < self.lowest, self.n_rows + path.argmin(axis=0) + 1, self.lowest_at)
        self.lowest = np.minimum(self.lowest, deepest)
        self.wealth, self.excess = wealth[-1], path[-1]
        self.n_rows += len(values)
        return _log_values(rows + 1, wealth)

    def to_dict(self) -> Document:
        """Describe the state for a file."""
        return {name: np.asarray(getattr(self, name)).tolist() for name in FIELDS}

    def restore(self, content: Any) -> None:
        """Take over the state of a file."""
        record = Record(content, "evidence", *FIELDS)
        self.n_rows, self.wealth = record.count("n_rows"), record.array("wealth", *self.wealth.shape)
        self.excess, self.lowest, started = (record.array(name, len(self.excess)) for name in FIELDS[2:])
        self.lowest_at = np.clip(started, 0, self.n_rows).astype(np.int64)


def _waiting(rows: Any) -> Any:
    """Share of the capital whose bets have not started after so many rows: it falls slowly, from one to zero."""
    return np.log(2.0) / np.log(np.asarray(rows) + 2.0)


def _log_values(rows: Any, wealth: FloatArray) -> FloatArray:
    """Logarithm of the whole wealth after so many rows: what waits, and the mean over columns and stakes."""
    mean = np.logaddexp.reduce(wealth, axis=(-2, -1)) - np.log(wealth[..., 0].shape[-1] * _STAKES.size)
    return np.logaddexp(np.log(_waiting(rows)), mean)


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
