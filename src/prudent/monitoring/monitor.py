"""Whether what a policy promises is still true: evidence from rows in production, by tests valid at any time."""

from collections.abc import Sequence
from copy import deepcopy
from enum import Enum
from typing import Any, Self

import numpy as np

from prudent.arrays import FloatArray, non_negative, probability
from prudent.cases.cases import read_cases
from prudent.cases.scan import TableCases
from prudent.errors import InputError
from prudent.files import Document, Record, Saved
from prudent.formatting import Printable, format_number
from prudent.guarantees import Guarantee
from prudent.guarantees.base import count_moments, guarantee_from_dict
from prudent.guarantees.names import read_guarantee
from prudent.monitoring.streams import FIELDS as EVIDENCE_FIELDS
from prudent.monitoring.streams import SIDES, Alarm, Streams, deciding_rule
from prudent.policies import Policy, policy_from_dict, policy_to_dict
from prudent.recalibration.ledger import FIELDS as LEDGER_FIELDS
from prudent.recalibration.ledger import Batch, Ledger, read_ids, read_outcomes

_FIELDS = ("policy", "tolerance", "confidence", "guarantee", "n_forecasts", "evidence", "alarms", *LEDGER_FIELDS)
_WHAT_TO_DO = "Ask prudent.advise on recent cases, or recalibrate online (OnlineDecisionCalibrator)."
_ROWS_AT_ONCE = 1 << 12


class MonitorState(Enum):
    """What the monitor says now."""

    HOLDING = "holding"
    WARNING = "warning"
    BROKEN = "broken"


class PolicyMonitor(Printable, Saved):
    """Watch a policy in production, looking as often as you like.

    Parameters
    ----------
    policy : Policy
        Any rule that decides by the forecast alone; a robust policy fitted, with tests of known bounds.
    tolerance : float, optional
        In units of utility: changes up to this size do not matter. By default 5% of the utility range: before any row
        came nothing else is known. That range grows with the declared outcome space and with actions that are
        never taken; ``prudent.advise(...).tolerance``, a tenth of what is at stake, does not.
    confidence : float
        One minus the probability of ever raising a false alarm, over any number of rows and looks.
    guarantee : Guarantee or str, optional
        Whose moments are watched. By default that of a robust policy with its slack, else "unbiased".
    hand_on : sequence of objects with ``update(ids, outcomes)``
        They get every outcome that the monitor learns, once its forecast is known too: an online calibrator, say. Not
        part of the file: set the attribute again after loading.

    Attributes
    ----------
    alarms : tuple of Alarm
        Everything that was shown to be off, in the order of time.

    Notes
    -----
    What a robust policy guarantees is ``policy.certificate_.lower``, which is optimistic by as much as few fitting rows
    allow: choose a tolerance that covers the difference to :func:`prudent.confidence_certificate`. Its guarantee is
    about averages over forecasts, given the past. Other rules believe their forecasts: what is watched is that these
    are right given the past and the forecast itself, so their stakes may be larger, and alarms come sooner.

    A moment is off if it is by more than its slack, and by errors that change what one action gets over another by more
    than the tolerance.

    Feed rows in time order with :meth:`update`; outcomes that come later, in any order, with :meth:`add_outcomes`. Ids
    that come twice count once.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> rng = np.random.default_rng(0)
    >>> monitor = prudent.PolicyMonitor(prudent.PlugInPolicy(problem), tolerance=0.1)
    >>> forecasts = rng.random(3000)
    >>> outcomes = (rng.random(3000) < forecasts).astype(float)
    >>> monitor.update(forecasts, outcomes).state
    <MonitorState.HOLDING: 'holding'>
    >>> monitor.update(forecasts, 0.5 * outcomes).state
    <MonitorState.BROKEN: 'broken'>
    >>> [(alarm.stream, alarm.side) for alarm in monitor.alarms]
    [('utility', None), ('moments', 'lower')]
    """

    _format = "prudent-monitor"
    _version = 3
    _shown = (
        *("state", "n_forecasts", "n_outcomes", "n_pending", "n_early", "n_repeated", "n_conflicting"),
        *("tolerance", "confidence", "evidence", "alarms"),
    )

    def __init__(
        self,
        policy: Policy,
        *,
        tolerance: float | None = None,
        confidence: float = 0.95,
        guarantee: Guarantee | str | None = None,
        hand_on: Sequence[Any] = (),
    ) -> None:
        problem = deciding_rule(policy)[0]._problem
        self.confidence = probability(confidence, "confidence")
        self.tolerance = 0.05 * problem.utility_range if tolerance is None else non_negative(tolerance, "tolerance")
        self.guarantee = None if guarantee is None else read_guarantee(guarantee, problem)
        self.policy = deepcopy(policy)  # what is watched stays what it was, if the policy is fitted again
        self.hand_on = hand_on
        self._streams = Streams.of(self.policy, self.tolerance, self.guarantee)
        self._bets = self._streams.processes()
        self.alarms: tuple[Alarm, ...] = ()
        self.n_forecasts = 0
        self._ledger = Ledger(early=True)

    @property
    def hand_on(self) -> tuple[Any, ...]:
        """Objects that get every outcome that the monitor learns."""
        return self._hand_on

    @hand_on.setter
    def hand_on(self, targets: Sequence[Any]) -> None:
        if (
            isinstance(targets, str)
            or not isinstance(targets, Sequence)
            or not all(callable(getattr(target, "update", None)) for target in targets)
        ):
            raise InputError(f"hand_on must be a list of objects with update(ids, outcomes); got {targets!r}.")
        self._hand_on = tuple(targets)

    @property
    def n_outcomes(self) -> int:
        """Outcomes so far that belong to a known forecast."""
        return self._bets["utility"].n_rows

    @property
    def n_pending(self) -> int:
        """Forecasts whose outcome is awaited."""
        return len(self._ledger.awaiting(1))

    @property
    def n_early(self) -> int:
        """Outcomes whose forecast is awaited: if it never comes, their id is wrong."""
        return len(self._ledger.awaiting(0))

    @property
    def n_repeated(self) -> int:
        """Rows that brought nothing new, because their id had forecast and outcome before."""
        return self._ledger.n_repeated

    @property
    def n_conflicting(self) -> int:
        """Outcomes left out because their id had another one before."""
        return self._ledger.n_conflicting

    @property
    def state(self) -> MonitorState:
        """Broken once an alarm was raised; warning while the evidence is half-way there, in logarithms."""
        if self.alarms:
            return MonitorState.BROKEN
        strongest = max(self.evidence.values())
        return MonitorState.WARNING if strongest >= self._threshold / 2 else MonitorState.HOLDING

    @property
    def evidence(self) -> dict[str, float]:
        """Logarithm of the evidence against each stream; an alarm needs ``log(streams / (1 - confidence))``."""
        return {name: bets.log_value for name, bets in self._bets.items()}

    @property
    def _threshold(self) -> float:
        """Each of the streams may err with an equal share of the error probability."""
        return float(np.log(len(self._bets) / (1 - self.confidence)))

    def update(self, forecasts: Any, outcomes: Any = None, ids: Any = None, time: str | None = None) -> "PolicyMonitor":
        """Add rows in time order.

        Parameters
        ----------
        forecasts : array of shape (n,) or (n, d), or Cases
            As the policy takes them. Outcomes and ids are those of the cases.
        outcomes : array, optional
            Missing ones may follow later, if there are ids.
        ids : sequence of length n, optional
            Names of the rows; one that was seen before is left out.
        time : str, optional
            When these rows came; an alarm that they raise carries it.
        """
        cases = read_cases(forecasts, outcomes, ids=ids)
        if isinstance(cases, TableCases):
            raise InputError("forecasts must be rows in memory, in the order of time; read a table a part at a time.")
        placed, ids = self.policy._place(cases.forecasts), cases.ids
        advice = None if ids is not None or cases.outcomes is None else "give ids, so that they can follow later"
        known = read_outcomes(self.policy._problem.space, cases.outcomes, len(placed), advice)
        points = placed.tolist()
        if ids is None:
            if self.hand_on and cases.outcomes is not None:
                raise InputError("ids must be given where outcomes are handed on: they are handed on by their ids.")
            pairs = [([point], outcome) for point, outcome in zip(points, known, strict=True) if outcome is not None]
            return self._take_in(Batch(fresh=points, pairs=pairs), time)
        names = read_ids(ids)
        if len(names) != len(placed):
            raise InputError(f"ids must have one entry per forecast, {len(placed)}; got {len(names)}.")
        return self._take_in(self._ledger.match(names, points, known), time)

    def add_outcomes(self, ids: Any, outcomes: Any, time: str | None = None) -> "PolicyMonitor":
        """Add outcomes of forecasts by their ids, in any order; those whose forecast is not known yet wait for it.

        The promise about false alarms needs delays that do not depend on the outcome: where, say, losses are known
        sooner than gains, hold outcomes back until all of their day are known.
        """
        names = read_ids(ids)
        known = read_outcomes(self.policy._problem.space, outcomes, len(names), "leave these ids out")
        return self._take_in(self._ledger.match(names, None, known), time)

    def __str__(self) -> str:
        summary = (
            f"{self.state.value}: {self.n_forecasts:,} forecasts, {self.n_outcomes:,} outcomes, {self.n_pending:,} "
            f"awaited; tolerance {format_number(self.tolerance, 3)}, {100 * self.confidence:g}% confidence "
            f"over all looks"
        )
        if self.n_early or self.n_conflicting:
            summary += (
                f"\nids: {self.n_early:,} outcomes without a forecast so far, {self.n_conflicting:,} second outcomes "
                f"that differ from the first"
            )
        if self.alarms:
            return "\n".join([summary, *map(str, self.alarms), _WHAT_TO_DO])
        shares = [f"{name} {max(value, 0.0) / self._threshold:.0%}" for name, value in self.evidence.items()]
        return f"{summary}\nevidence: {', '.join(shares)}"

    def _content(self) -> Document:
        if self.guarantee is not None and not self.guarantee.savable:
            raise InputError("a monitor of a guarantee whose tests are Python functions cannot be saved.")
        return {
            "policy": policy_to_dict(self.policy),
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "n_forecasts": self.n_forecasts,
            "evidence": {name: bets.to_dict() for name, bets in self._bets.items()},
            "alarms": [alarm.to_dict() for alarm in self.alarms],
            **self._ledger.to_dict(),
        }

    @classmethod
    def _rebuild(cls, content: Document) -> Self:
        record = Record(content, "monitor", *_FIELDS)
        policy, given = policy_from_dict(record["policy"]), record["guarantee"]
        guarantee = None if given is None else guarantee_from_dict(given)
        evidence, space = record.typed("evidence", dict), policy._problem.space
        count = 0 if guarantee is None else count_moments(guarantee, space)
        if count:  # before anything is made for its moments
            Record(evidence.get("moments"), "evidence", *EVIDENCE_FIELDS).array("excess", 2 * count)
        monitor = cls(
            policy,
            tolerance=record.number("tolerance"),
            confidence=record["confidence"],
            guarantee=guarantee,
        )
        streams = Record(evidence, "evidence", *monitor._bets)
        for name, bets in monitor._bets.items():
            bets.restore(streams[name])
        monitor.n_forecasts = record.count("n_forecasts")
        monitor.alarms = tuple(Alarm.from_dict(alarm) for alarm in record.typed("alarms", list))
        monitor._ledger = Ledger.from_record(record, space, early=True)
        return monitor

    def _take_in(self, batch: Batch, time: str | None) -> "PolicyMonitor":
        """Bet on new forecasts, and on forecasts whose outcome is now known.

        What can fail comes before any change: rules that are functions, and objects that outcomes are handed on to.
        """
        fresh = np.array(batch.fresh, dtype=np.float64)
        pairs = np.array([(forecast[0], outcome) for forecast, outcome in batch.pairs], dtype=np.float64)
        parts = [pairs[i : i + _ROWS_AT_ONCE] for i in range(0, len(pairs), _ROWS_AT_ONCE)]
        found = [self._streams.of_forecasts(fresh)] if len(fresh) else []
        found += [self._streams.of_outcomes(part[:, 0], part[:, 1]) for part in parts]
        for target in self.hand_on if batch.learned else ():
            target.update(list(batch.learned), list(batch.learned.values()))
        self.n_forecasts += len(fresh)
        for values in found:
            for name, (beyond, least) in values.items():
                self._bet(name, beyond, least, time)
        self._ledger.note(batch)
        return self

    def _bet(self, name: str, beyond: FloatArray, least: Any, time: str | None) -> None:
        """Add rows to a stream; raise its alarm if that is shown for the first time."""
        bets = self._bets[name]
        shown = bets.n_rows + 1 + np.flatnonzero(bets.extend(beyond, least) >= self._threshold)
        if not shown.size or name in {alarm.stream for alarm in self.alarms}:
            return
        row, column = int(shown[0]), bets.strongest
        size, moment, side = bets.size(column), None, None
        if name == "moments":
            k, below = divmod(column, 2)
            moment, side = self._streams.tests.names[k], SIDES[below]
            size = (size + float(self._streams.limits[k])) / float(self._streams.tests.scales[k])
        since = min(int(bets.lowest_at[column]), row)
        self.alarms += (Alarm(name, row, since, size, time and str(time), moment, side),)
