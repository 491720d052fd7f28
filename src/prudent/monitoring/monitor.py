"""Whether the guarantee of a policy is still true (docs/theory.md, section 7).

With multipliers fixed, ``E u(pi, Y) >= E[phi(s) - s.v] - E[s.(Y - v)]`` in any
world. Two scalars carry the guarantee: the first needs no outcomes and moves
when forecasts drift, the second moves when calibration breaks. Both are
watched, and realised utility with them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, describe_rows, finite_array, listed, non_negative, probability
from prudent.auditing import movement, penalty, pledge_range, pledges
from prudent.errors import FileFormatError, InputError
from prudent.files import read_document, write_document
from prudent.moments import integrands
from prudent.monitoring.alarms import Alarm, MonitorState
from prudent.monitoring.evidence import Evidence
from prudent.monitoring.ledger import Ledger, News, Outcomes
from prudent.policies import PureRobustPolicy, RobustPolicy, policy_from_dict, policy_to_dict
from prudent.spaces import Space, place_known_outcomes
from prudent.tables.columns import Columns
from prudent.tables.in_order import rows_in_order
from prudent.writing import written

__all__ = ["PolicyMonitor"]

_FORMAT = "prudent-monitor"
_VERSION = 1
_DEFAULT_TOLERANCE = 0.05


@dataclass(frozen=True, eq=False)
class _Learnt:
    streams: dict[str, FloatArray]
    sums: FloatArray
    squares: FloatArray


class PolicyMonitor:
    """Watch a fitted policy in production, as often as you like.

    Parameters
    ----------
    policy : RobustPolicy or PureRobustPolicy
        Fitted, with tests of known bounds.
    tolerance : float, optional
        In units of utility: changes up to this size do not matter. By default 5% of the utility range.
    confidence : float
        One minus the probability of ever raising a false alarm, over any number of rows and looks.

    Notes
    -----
    What was guaranteed is ``policy.value_``, which is optimistic by as much as few fitting rows allow: choose a
    tolerance that covers the difference to :func:`prudent.confidence_certificate`.

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

    def __init__(
        self,
        policy: RobustPolicy | PureRobustPolicy,
        *,
        tolerance: float | None = None,
        confidence: float = 0.95,
    ) -> None:
        if not isinstance(policy, (RobustPolicy, PureRobustPolicy)):
            raise InputError(f"policy must be a RobustPolicy or PureRobustPolicy; got {type(policy).__name__}.")
        check_is_fitted(policy)
        if not np.isfinite(movement(policy)):
            raise InputError(
                "policy must have a guarantee whose tests are bounded, or evidence cannot be weighed; declare "
                "FromFunctions(bounds=...), or use bins instead of log-odds."
            )
        problem = policy._problem
        self.policy = deepcopy(policy)  # what is watched stays what it was, if the policy is fitted again
        self.confidence = probability(confidence, "confidence")
        self.tolerance = _DEFAULT_TOLERANCE * problem.utility_range
        if tolerance is not None:
            self.tolerance = non_negative(tolerance, "tolerance")
        cost, reach = penalty(policy), movement(policy)
        least, most = pledge_range(policy)
        utilities = [
            problem.space.support_minimum(problem.rewards) - problem.costs,
            -problem.space.support_minimum(-problem.rewards) - problem.costs,
        ]
        floor = policy.value_ - self.tolerance
        self._evidence = {
            "forecast drift": Evidence(-most, -least, -(floor + policy.slack_penalty_)),
            "calibration": Evidence(-reach, reach, cost + self.tolerance),
            "utility": Evidence(-float(utilities[1].max()), -float(utilities[0].min()), -floor),
        }
        self._alarms: list[Alarm] = []
        self._ledger = Ledger()
        count = policy.tests_.n_moments
        self._sums, self._squares = np.zeros(count), np.zeros(count)

    @property
    def n_forecasts(self) -> int:
        """Forecasts so far."""
        return self._evidence["forecast drift"].n_rows

    @property
    def n_outcomes(self) -> int:
        """Outcomes so far that belong to a known forecast."""
        return self._evidence["calibration"].n_rows

    @property
    def n_pending(self) -> int:
        """Forecasts whose outcome is awaited."""
        return len(self._ledger.pending)

    @property
    def n_duplicates(self) -> int:
        """Forecasts and outcomes left out because their id had one before."""
        return self._ledger.n_duplicates

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """Everything that was shown to be off, the first first."""
        return tuple(self._alarms)

    @property
    def state(self) -> MonitorState:
        """Broken once an alarm was raised; warning while the evidence is half-way there, in logarithms."""
        if self._alarms:
            return MonitorState.BROKEN
        strongest = max(evidence.log_value for evidence in self._evidence.values())
        return MonitorState.WARNING if strongest >= self._threshold / 2 else MonitorState.HOLDING

    @property
    def evidence(self) -> dict[str, float]:
        """Logarithm of the evidence against each stream; an alarm needs ``log(3 / (1 - confidence))``."""
        return {name: evidence.log_value for name, evidence in self._evidence.items()}

    @property
    def _threshold(self) -> float:
        """Each of the streams may err with an equal share of the error probability."""
        return float(np.log(len(self._evidence) / (1 - self.confidence)))

    def update(self, forecasts: Any, outcomes: Any = None, ids: Any = None, time: str | None = None) -> PolicyMonitor:
        """Add rows in time order.

        Parameters
        ----------
        forecasts : array of shape (n,) or (n, d), or Columns
            Rows of a lazy table are read by increasing id, a part at a time: ids must grow with time. Outcomes and ids
            are named in ``columns``; where an outcome is NULL it may follow later.
        outcomes : array, optional
            Missing ones may follow later, if there are ids.
        ids : sequence of length n, optional
            Names of the rows; one that was seen before is left out.
        time : str, optional
            When these rows came; an alarm that they raise carries it.
        """
        if isinstance(forecasts, Columns):
            return self._update_from_table(forecasts, outcomes, ids, time)
        placed = self.policy._place(forecasts)
        known, present = _outcomes(outcomes, len(placed), self.policy._problem.space)
        when = _time(time)
        if ids is None:
            if outcomes is not None and not present.all():
                raise InputError(
                    f"outcomes are missing in {describe_rows(np.flatnonzero(~present))}; give ids, so that they can "
                    f"follow later."
                )
            news = News(list(range(len(placed))), placed[present], known)
        else:
            news = self._ledger.sort(_ids(ids, len(placed)), placed, Outcomes(known, present))
        # Whatever can be refused has been refused before anything is remembered.
        drift = -pledges(self.policy, placed)[news.fresh] if news.fresh else np.zeros(0)
        learnt = self._learn(news.forecasts, news.outcomes)
        self._ledger.remember(news)
        self._watch({"forecast drift": drift, **learnt.streams}, when)
        self._sums += learnt.sums
        self._squares += learnt.squares
        return self

    def _update_from_table(self, columns: Columns, outcomes: Any, ids: Any, time: str | None) -> PolicyMonitor:
        """Add the rows of a lazy table, all or none."""
        if outcomes is not None or ids is not None:
            raise InputError("outcomes and ids of a table are named in prudent.columns(); pass the columns alone.")
        trial = copy(self)
        for name, value in vars(self).items():
            if name != "policy":
                setattr(trial, name, deepcopy(value))
        for part in rows_in_order(columns, self.policy._problem.space):
            trial.update(part.forecasts, part.outcomes, part.ids, time)
        # Nothing failed, whatever part it was in.
        vars(self).update(vars(trial))
        return self

    def add_outcomes(self, ids: Any, outcomes: Any, time: str | None = None) -> PolicyMonitor:
        """Add outcomes of forecasts by their ids, in any order; those whose forecast is not known yet wait for it.

        The promise about false alarms needs delays that do not depend on the outcome: where, say, losses are known
        sooner than gains, hold outcomes back until all of their day are known.
        """
        names = _ids(ids, None)
        known, present = _outcomes(outcomes, len(names), self.policy._problem.space)
        if not present.all():
            raise InputError(f"outcomes are missing in {describe_rows(np.flatnonzero(~present))}; leave these ids out.")
        when = _time(time)
        news = self._ledger.sort_late(names, known)
        learnt = self._learn(news.forecasts, news.outcomes)
        self._ledger.remember(news)
        self._watch(learnt.streams, when)
        self._sums += learnt.sums
        self._squares += learnt.squares
        return self

    def moments(self) -> dict[str, Any]:
        """Return where the guarantee fails, for diagnosis: each moment with an interval valid at any time.

        The intervals are asymptotic (a Gaussian mixture with the estimated
        variance) and hold for all moments at once.
        """
        n, count = self.n_outcomes, self._sums.size
        if n < 2:
            unknown = np.full(count, np.nan)
            return {"moment": list(self.policy.moment_names_), "estimate": unknown, "lower": unknown, "upper": unknown}
        means = self._sums / n
        variances = np.maximum(self._squares / n - means**2, 0.0)
        radius = np.sqrt(variances) * _mixture_radius(n, (1 - self.confidence) / max(count, 1))
        return {
            "moment": list(self.policy.moment_names_),
            "estimate": means,
            "lower": means - radius,
            "upper": means + radius,
        }

    def __str__(self) -> str:
        summary = (
            f"{self.state.value}: {self.n_forecasts:,} forecasts, {self.n_outcomes:,} outcomes, {self.n_pending:,} "
            f"awaited; tolerance {written(self.tolerance, 3)}, {100 * self.confidence:g}% confidence over all looks"
        )
        lines = [summary, *(str(alarm) for alarm in self._alarms)]
        if not self._alarms:
            share = {name: max(value, 0.0) / self._threshold for name, value in self.evidence.items()}
            lines.append("evidence: " + ", ".join(f"{name} {value:.0%}" for name, value in share.items()))
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write policy and state to one JSON file, whole or not at all."""
        content = {
            "policy": policy_to_dict(self.policy),
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "evidence": {name: evidence.to_dict() for name, evidence in self._evidence.items()},
            "alarms": [asdict(alarm) for alarm in self._alarms],
            **self._ledger.to_dict(),
            "sums": self._sums.tolist(),
            "squares": self._squares.tolist(),
        }
        write_document(path, _FORMAT, _VERSION, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PolicyMonitor:
        """Read a monitor that was saved; it goes on where the other stopped."""
        content = read_document(path, _FORMAT, _VERSION)
        try:
            return cls._rebuild(content)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise FileFormatError(f"{str(path)!r} has a field with a wrong value: {error}") from error

    @classmethod
    def _rebuild(cls, content: dict[str, Any]) -> PolicyMonitor:
        policy = policy_from_dict(content["policy"])
        if not isinstance(policy, (RobustPolicy, PureRobustPolicy)):
            raise FileFormatError("a monitor watches a robust policy.")
        monitor = cls(policy, tolerance=content["tolerance"], confidence=content["confidence"])
        if set(content["evidence"]) != set(monitor._evidence):
            raise FileFormatError(f"evidence must be that of {sorted(monitor._evidence)}.")
        monitor._evidence = {name: Evidence.from_dict(content["evidence"][name]) for name in monitor._evidence}
        monitor._alarms = [Alarm(**alarm) for alarm in content["alarms"]]
        monitor._ledger = Ledger.from_dict(content, policy._problem.dimension)
        shape = monitor._sums.shape
        monitor._sums = finite_array(content["sums"], "sums").reshape(shape)
        monitor._squares = finite_array(content["squares"], "squares").reshape(shape)
        return monitor

    def _learn(self, forecasts: Any, outcomes: Any) -> _Learnt:
        """Compute what outcomes show; nothing is changed."""
        count = self._sums.size
        if not len(forecasts):
            return _Learnt({}, np.zeros(count), np.zeros(count))
        policy, problem = self.policy, self.policy._problem
        v, y = np.array(forecasts, dtype=np.float64), np.array(outcomes, dtype=np.float64)
        residuals, tilts = y - v, self._tilts(v)
        z = integrands(policy.guarantee_.evaluate(v, problem.space), residuals)
        streams = {
            "calibration": (tilts * residuals).sum(axis=1),
            "utility": -(policy._mixtures(v) * problem.linear_utility(y)).sum(axis=1),
        }
        return _Learnt(streams, z.sum(axis=0), (z**2).sum(axis=0))

    def _tilts(self, forecasts: FloatArray) -> FloatArray:
        tilts = self.policy._tilts(forecasts)
        return np.zeros_like(forecasts) if tilts is None else tilts  # none only without tests

    def _watch(self, values: Mapping[str, FloatArray], time: str | None) -> None:
        for name, rows in values.items():
            if not rows.size:
                continue
            evidence = self._evidence[name]
            before = evidence.n_rows
            shown = np.flatnonzero(evidence.extend(rows) >= self._threshold)
            if shown.size and name not in {alarm.stream for alarm in self._alarms}:
                row = before + int(shown[0]) + 1
                self._alarms.append(Alarm(name, row, min(evidence.since, row), evidence.excess, time))


def _outcomes(outcomes: Any, n: int, space: Space) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the outcomes that are known, and which rows they are."""
    if outcomes is None:
        return np.zeros((0, space.dimension)), np.zeros(n, dtype=bool)
    known, present = place_known_outcomes(space, outcomes)
    if len(present) != n:
        raise InputError(f"outcomes must have one row per forecast or id, {n}; got {len(present)}.")
    return known, present


def _time(time: Any) -> str | None:
    if time is not None and not isinstance(time, str):
        raise InputError(f"time must be text, such as '2026-01-31'; got {type(time).__name__}.")
    return time


def _ids(ids: Any, n: int | None) -> list[Any]:
    names = listed(ids, "ids")
    if n is not None and len(names) != n:
        raise InputError(f"ids must have one entry per forecast, {n}; got {len(names)}.")
    for position, name in enumerate(names):
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise InputError(f"ids must be strings or whole numbers; got {name!r} at position {position}.")
    return names


def _mixture_radius(n: int, error: float) -> float:
    """Radius, in standard deviations, of Robbins' Gaussian mixture for one mean; tightest near a thousand rows."""
    tuned = 1.0 / 1_000
    spread = n * tuned + 1
    return float(np.sqrt(2 * spread / (n**2 * tuned) * np.log(np.sqrt(spread) / error)))
