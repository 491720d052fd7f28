"""Whether the guarantee of a policy is still true (docs/theory.md, section 7).

With multipliers fixed, ``E u(pi, Y) >= E[phi(s) - s.v] - E[s.(Y - v)]`` in any
world. Two scalars carry the guarantee: the first needs no outcomes and moves
when forecasts drift, the second moves when calibration breaks. Both are
watched, and realised utility with them.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import BoolArray, FloatArray, describe_rows, non_negative, probability
from prudent.cases.cases import read_cases
from prudent.cases.scan import TableCases
from prudent.errors import FileFormatError, InputError
from prudent.evidence.confidence import certified_range, certified_utilities, slack_cost, tilt_range
from prudent.files import Saved
from prudent.files.records import Document, Record
from prudent.formatting import Printable, format_number
from prudent.monitoring.betting import BettingProcess
from prudent.monitoring.ledger import Ledger, read_ids
from prudent.policies import RobustPolicy, policy_from_dict, policy_to_dict

_FIELDS = (
    *("policy", "tolerance", "confidence", "evidence", "alarms", "totals"),
    *("done", "pending", "early", "n_duplicates"),
)
_STREAMS = {
    "forecast drift": "forecasts have drifted to where less is guaranteed",
    "calibration": "the forecaster does not keep its guarantee any more",
    "utility": "realised utility is below what was guaranteed",
}


class MonitorState(Enum):
    """What the monitor says now."""

    HOLDING = "holding"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True, repr=False)
class Alarm(Printable):
    """One guarantee-carrying quantity that was shown to be off.

    Attributes
    ----------
    stream : str
        "forecast drift", "calibration" or "utility".
    row : int
        After so many rows of that stream the evidence sufficed.
    since : int
        Rows before the likely start: an estimate.
    size : float
        How far beyond the tolerance, in units of utility, since then: an estimate.
    time : str or None
        The time given with the batch in which it was shown.
    """

    stream: str
    row: int
    since: int
    size: float
    time: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.stream}: {_STREAMS[self.stream]}, by about {format_number(self.size, 3)} more than tolerated "
            f"since about row "
            f"{self.since:,}; shown at row {self.row:,}" + (f", {self.time}" if self.time else "")
        )


class PolicyMonitor(Printable, Saved):
    """Watch a fitted policy in production, looking as often as you like.

    Parameters
    ----------
    policy : RobustPolicy
        Fitted, with tests of known bounds.
    tolerance : float, optional
        In units of utility: changes up to this size do not matter. By default 5% of the utility range.
    confidence : float
        One minus the probability of ever raising a false alarm, over any number of rows and looks.

    Attributes
    ----------
    alarms : tuple of Alarm
        Everything that was shown to be off, in the order of time.

    Notes
    -----
    What was guaranteed is ``policy.certificate_.lower``, which is optimistic by as much as few fitting rows allow:
    choose a tolerance that covers the difference to :func:`prudent.confidence_certificate`.

    Feed rows in time order with :meth:`update`; outcomes that come later, in
    any order, with :meth:`add_outcomes`. Ids that come twice count once.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> rng = np.random.default_rng(0)
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal()).fit(rng.random(2000))
    >>> monitor = prudent.PolicyMonitor(policy, tolerance=0.05)
    >>> forecasts = rng.random(3000)
    >>> outcomes = (rng.random(3000) < forecasts).astype(float)
    >>> monitor.update(forecasts, outcomes).state
    <MonitorState.HOLDING: 'holding'>
    >>> monitor.update(forecasts, 0.5 * outcomes).state
    <MonitorState.BROKEN: 'broken'>
    >>> monitor.alarms[0].stream
    'calibration'
    """

    _format = "prudent-monitor"
    _shown = ("state", "n_forecasts", "n_outcomes", "n_pending", "tolerance", "confidence", "evidence", "alarms")

    def __init__(
        self,
        policy: RobustPolicy,
        *,
        tolerance: float | None = None,
        confidence: float = 0.95,
    ) -> None:
        if not isinstance(policy, RobustPolicy) or (hasattr(policy, "fitted_") and policy.fitted_.per_row):
            raise InputError(
                f"policy must be a RobustPolicy without rewards or costs per row; got {type(policy).__name__}."
            )
        if policy.criterion != "utility":
            raise InputError("policy must have criterion='utility': its certificate is what is watched.")
        check_is_fitted(policy)
        reach, width = tilt_range(policy), policy._problem.utility_range
        if not np.isfinite(reach):
            raise InputError(
                "policy must have a guarantee whose tests are bounded, or evidence cannot be weighed; declare "
                "FromFunctions(bounds=...), or use bins instead of log-odds."
            )
        self.policy = deepcopy(policy)  # what is watched stays what it was, if the policy is fitted again
        self.confidence = probability(confidence, "confidence")
        self.tolerance = 0.05 * width if tolerance is None else non_negative(tolerance, "tolerance")
        floor, (least, most) = policy.certificate_.lower - self.tolerance, certified_range(policy)
        self._bets = {
            "forecast drift": BettingProcess(-most, -least, -(floor + policy.fitted_.slack_cost)),
            "calibration": BettingProcess(-reach, reach, slack_cost(policy) + self.tolerance),
            "utility": BettingProcess(-most, width - most, -floor),
        }
        self.alarms: tuple[Alarm, ...] = ()
        self._ledger = Ledger()
        self._totals = np.zeros((2, policy.fitted_.tests.n_moments))  # sums and sums of squares of every moment's rows

    @property
    def n_forecasts(self) -> int:
        """Forecasts so far."""
        return self._bets["forecast drift"].n_rows

    @property
    def n_outcomes(self) -> int:
        """Outcomes so far that belong to a known forecast."""
        return self._bets["calibration"].n_rows

    @property
    def n_pending(self) -> int:
        """Forecasts whose outcome is awaited."""
        return len(self._ledger.awaiting(1))

    @property
    def n_duplicates(self) -> int:
        """Forecasts and outcomes left out because their id had one before."""
        return self._ledger.n_duplicates

    @property
    def state(self) -> MonitorState:
        """Broken once an alarm was raised; warning while the evidence is half-way there, in logarithms."""
        if self.alarms:
            return MonitorState.BROKEN
        strongest = max(self.evidence.values())
        return MonitorState.WARNING if strongest >= self._threshold / 2 else MonitorState.HOLDING

    @property
    def evidence(self) -> dict[str, float]:
        """Logarithm of the evidence against each stream; an alarm needs ``log(3 / (1 - confidence))``."""
        return {name: bets.log_value for name, bets in self._bets.items()}

    @property
    def _threshold(self) -> float:
        """Each of the streams may err with an equal share of the error probability."""
        return float(np.log(len(self._bets) / (1 - self.confidence)))

    def update(self, forecasts: Any, outcomes: Any = None, ids: Any = None, time: str | None = None) -> PolicyMonitor:
        """Add rows in time order.

        Parameters
        ----------
        forecasts : array of shape (n,) or (n, d), or Cases
            Rows of a table are read by increasing id, a part at a time: ids must grow with time. Outcomes and ids
            are those of the cases; where an outcome is NULL it may follow later.
        outcomes : array, optional
            Missing ones may follow later, if there are ids.
        ids : sequence of length n, optional
            Names of the rows; one that was seen before is left out.
        time : str, optional
            When these rows came; an alarm that they raise carries it.
        """
        cases = read_cases(forecasts, outcomes, ids=ids)
        if isinstance(cases, TableCases):
            return self._update_from_table(cases, time)
        placed, ids = self.policy._place(cases.forecasts), cases.ids
        advice = "give ids, so that they can follow later" if ids is None else None
        known, present = self._outcomes(cases.outcomes, len(placed), advice)
        if ids is None:
            return self._take_in(placed, placed[present], known, time)
        names = read_ids(ids)
        if len(names) != len(placed):
            raise InputError(f"ids must have one entry per forecast, {len(placed)}; got {len(names)}.")
        return self._take_in(*self._ledger.add(names, placed, known, present), time)

    def _update_from_table(self, columns: TableCases, time: str | None) -> PolicyMonitor:
        """Add the rows of a lazy table, all or none."""
        trial = deepcopy(self, {id(self.policy): self.policy})  # all but the policy, which does not change
        for forecasts, outcomes, ids in columns.on(self.policy._problem.space).in_order():
            trial.update(forecasts, outcomes, ids, time)
        # Nothing failed, whatever part it was in.
        vars(self).update(vars(trial))
        return self

    def add_outcomes(self, ids: Any, outcomes: Any, time: str | None = None) -> PolicyMonitor:
        """Add outcomes of forecasts by their ids, in any order; those whose forecast is not known yet wait for it.

        The promise about false alarms needs delays that do not depend on the outcome: where, say, losses are known
        sooner than gains, hold outcomes back until all of their day are known.
        """
        names = read_ids(ids)
        known, present = self._outcomes(outcomes, len(names), "leave these ids out")
        return self._take_in(*self._ledger.add(names, None, known, present), time)

    def moments(self) -> dict[str, Any]:
        """Return where the guarantee fails, for diagnosis: each moment with an interval valid at any time.

        The intervals are asymptotic (a Gaussian mixture with the estimated
        variance) and hold for all moments at once.
        """
        n, names = self.n_outcomes, self.policy.fitted_.tests.names
        means = radius = np.full(len(names), np.nan)
        if n >= 2:
            means, squares = self._totals / n
            deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
            # Robbins' Gaussian mixture for each mean; tightest near a thousand rows.
            error, spread = (1 - self.confidence) / max(len(names), 1), n / 1_000 + 1
            radius = deviations * np.sqrt(2 * spread / (n**2 / 1_000) * np.log(np.sqrt(spread) / error))
        return {"moment": list(names), "estimate": means, "lower": means - radius, "upper": means + radius}

    def __str__(self) -> str:
        summary = (
            f"{self.state.value}: {self.n_forecasts:,} forecasts, {self.n_outcomes:,} outcomes, {self.n_pending:,} "
            f"awaited; tolerance {format_number(self.tolerance, 3)}, {100 * self.confidence:g}% confidence "
            f"over all looks"
        )
        if self.alarms:
            return "\n".join([summary, *map(str, self.alarms)])
        shares = [f"{name} {max(value, 0.0) / self._threshold:.0%}" for name, value in self.evidence.items()]
        return f"{summary}\nevidence: {', '.join(shares)}"

    def _content(self) -> Document:
        return {
            "policy": policy_to_dict(self.policy),
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "evidence": {name: bets.to_dict() for name, bets in self._bets.items()},
            "alarms": [alarm.to_dict() for alarm in self.alarms],
            "totals": self._totals.tolist(),
            **self._ledger.to_dict(),
        }

    @classmethod
    def _rebuild(cls, content: Document) -> Self:
        record = Record(content, "monitor", *_FIELDS)
        policy = policy_from_dict(record["policy"])
        if not isinstance(policy, RobustPolicy):
            raise FileFormatError("a monitor watches a robust policy.")
        monitor = cls(policy, tolerance=record["tolerance"], confidence=record["confidence"])
        streams = Record(record["evidence"], "evidence", *monitor._bets)
        for name, bets in monitor._bets.items():
            bets.restore(streams[name])
        monitor.alarms = tuple(_alarm(alarm) for alarm in record.typed("alarms", list))
        monitor._ledger = Ledger.from_record(record, policy._problem.space)
        monitor._totals = record.array("totals", *monitor._totals.shape)
        return monitor

    def _outcomes(self, outcomes: Any, n: int, advice: str | None) -> tuple[FloatArray, BoolArray]:
        """Return the outcomes that are known, and which rows they are; with an advice none may be missing."""
        space = self.policy._problem.space
        if outcomes is None:
            return np.zeros((0, space.dimension)), np.zeros(n, dtype=bool)
        known, present = space.place_known_outcomes(outcomes)
        if len(present) != n:
            raise InputError(f"outcomes must have one row per forecast or id, {n}; got {len(present)}.")
        if advice and not present.all():
            raise InputError(f"outcomes are missing in {describe_rows(np.flatnonzero(~present))}; {advice}.")
        return known, present

    def _take_in(self, new: Any, forecasts: Any, outcomes: Any, time: str | None) -> PolicyMonitor:
        """Bet on new forecasts, and on forecasts whose outcome is now known; nothing is refused any more."""
        policy, problem, values = self.policy, self.policy._problem, {}
        fresh, v, y = (np.array(rows, dtype=np.float64) for rows in (new, forecasts, outcomes))
        if fresh.size:
            values["forecast drift"] = -certified_utilities(policy, fresh)
        if v.size:
            tilts: Any = policy._tilts(v)
            z = policy.guarantee_.evaluate(v, problem.space).row_moments(y - v)
            values["calibration"] = (tilts * (y - v)).sum(axis=1)
            values["utility"] = -(policy._mixtures(v) * problem.linear_utility(y)).sum(axis=1)
            self._totals += [z.sum(axis=0), (z**2).sum(axis=0)]
        for name, rows in values.items():
            bets = self._bets[name]
            shown = bets.n_rows + 1 + np.flatnonzero(bets.extend(rows) >= self._threshold)
            if shown.size and name not in {alarm.stream for alarm in self.alarms}:
                row = int(shown[0])
                self.alarms += (Alarm(name, row, min(bets.lowest_at, row), bets.size, time and str(time)),)
        return self


def _alarm(content: Any) -> Alarm:
    record = Record(content, "alarm", *Alarm.__dataclass_fields__)
    row = record.count("row")
    if record.typed("stream", str) not in _STREAMS:
        raise FileFormatError(f"alarm.stream must be one of {list(_STREAMS)}; got {record['stream']!r}.")
    time = None if record["time"] is None else record.typed("time", str)
    return Alarm(record["stream"], row, record.count("since", row), record.number("size"), time)
