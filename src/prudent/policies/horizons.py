"""What a rule earns on cases at hand, without their outcomes (docs/theory.md, section 13).

What a rule earns is what it promises at its forecasts plus an error, ``u(pi, Y) - u(pi, v)``, which past outcomes show:
its mean, and how much it varies from period to period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import Context, FloatArray, frozen
from prudent.cases.cases import read_cases
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.cases.memory_rows import MemoryRows
from prudent.cases.past_errors import PastErrors
from prudent.errors import InputError
from prudent.formatting import Printable, format_number

if TYPE_CHECKING:
    from prudent.policies.base import Policy
    from prudent.problem import DecisionProblem

#: Rows for which robust policies are certified where files are decided.
MOST_CERTIFIED = 1_000_000


@frozen
class UtilityBound(Printable):
    """A rule earns at least ``lower`` per case, with ``confidence``.

    Attributes
    ----------
    lower : float
    confidence : float
    horizon : {"average", "next period"}
        Over the long run, or in the one period that comes next.
    n_cases : int or None
        For the realised mean of so many cases; None for the expected one.
    """

    lower: float
    confidence: float
    horizon: str = "average"
    n_cases: int | None = None

    def __str__(self) -> str:
        when = "on average" if self.horizon == "average" else "in the next period"
        what = "" if self.n_cases is None else f", realised over {self.n_cases:,} cases"
        return f"at least {format_number(self.lower, 4)} a case {when}{what} ({100 * self.confidence:g}% confidence)"


def rows_in_memory(policy: Policy, cases: Any, weights: Any = None, context: Any = None) -> MemoryRows:
    """Place cases on the space of a policy; those of a table are read."""
    space = policy._problem.space
    return read_cases(cases, weights=weights, context=context).in_memory(space).on(space)


def given_own(rewards: Any, costs: Any) -> dict[str, Any]:
    """Rewards and costs of rows, where there are any."""
    return {name: own for name, own in (("rewards", rewards), ("costs", costs)) if own is not None}


def own_of_rows(problem: DecisionProblem, rows: MemoryRows, own: dict[str, Any]) -> dict[str, FloatArray]:
    """Read rewards and costs of all rows, and keep those of the rows that take part."""
    if not own:
        return {}
    tables = problem.of_rows(len(rows.everything), **own)
    return {name: table[rows.used] for name, table in zip(("rewards", "costs"), tables, strict=True) if name in own}


def play_rule(policy: Policy, rows: MemoryRows, own: dict[str, Any]) -> FloatArray:
    """Play a rule on the rows that take part; one that lists what was done lists it for all rows."""
    if getattr(policy, "labels", None) is not None:
        return policy.predict_proba(rows.everything)[rows.used]
    return play_at(policy, rows.forecasts, rows.context, own)


def play_at(policy: Policy, forecasts: FloatArray, context: Context | None, own: dict[str, Any]) -> FloatArray:
    """Play a rule at forecasts with rewards and costs of rows; one that does not look at stakes is not told them."""
    from prudent.policies.recalibrated import FixedRule
    from prudent.policies.reference import SafetyPolicy

    known = {} if isinstance(policy, (FixedRule, SafetyPolicy)) else {"context": context, **own}
    return policy.predict_proba(forecasts, **known)


def utility_bound(
    policy: Policy,
    past: PastErrors | None,
    cases: Any,
    *,
    horizon: str = "average",
    realised: bool = False,
    weights: Any = None,
    context: Any = None,
    own: dict[str, Any],
) -> UtilityBound:
    """Bound what a rule earns on cases from below; ``past`` are its errors in utility."""
    if past is None:
        raise InputError(
            "this rule does not know past outcomes, so nothing is certain about it: take the policy of prudent.advise."
        )
    rows = rows_in_memory(policy, cases, weights, context)
    own = own_of_rows(policy._problem, rows, own)
    points = policy.acts_on(rows.forecasts, rows.context)
    promised, least = _promises(policy._problem, points, play_rule(policy, rows, own), own)
    n_cases = 1 / float(rows.weights @ rows.weights)
    return _bound(past, float(rows.weights @ promised), float(rows.weights @ least), n_cases, horizon, realised)


def _promises(
    problem: DecisionProblem, points: FloatArray, mixtures: FloatArray, own: dict[str, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """What mixtures promise at the forecasts that a rule acts on, and at their worst outcomes."""
    promised = (mixtures * problem.utilities_of_rows(points, **own)).sum(axis=1)
    rewards, costs = own.get("rewards", problem.rewards[None]), own.get("costs", problem.costs[None])
    mixed = (mixtures[:, :, None] * rewards).sum(axis=1)
    return promised, problem.space.support_minimum(mixed) - (mixtures * costs).sum(axis=1)


def _bound(
    past: PastErrors, promised: float, least: float, n_cases: float, horizon: str, realised: bool
) -> UtilityBound:
    error = float(past.estimates[0] - past.radii_for(horizon, n_cases if realised else None)[0])
    # Nothing can be worse than the worst outcome of every case.
    lower, count = max(promised + error, least), int(n_cases + 1e-9)
    return UtilityBound(lower, past.confidence, horizon, count if realised else None)


class RunningBounds:
    """Bounds of what a rule earns on cases that are decided a part at a time."""

    def __init__(self, policy: Policy) -> None:
        fitted = getattr(policy, "fitted_", None)
        self._policy, self._past = policy, policy.past_ if fitted is None else None
        self._totals, self._count = np.zeros(2), 0
        certified = fitted is not None and fitted.unseen is None and not fitted.guarantee.full
        self._points: list[tuple[FloatArray, Context | None]] | None = [] if certified else None

    def add(self, forecasts: FloatArray, mixtures: FloatArray, context: Context | None = None) -> None:
        """Take in what was played at some forecasts."""
        self._count += len(forecasts)
        if self._past is not None:
            points = self._policy.acts_on(forecasts, context)
            self._totals += [column.sum() for column in _promises(self._policy._problem, points, mixtures, {})]
        if self._points is not None:
            self._points = [*self._points, (forecasts, context)] if self._count <= MOST_CERTIFIED else None

    def certificates(self) -> tuple[Any, ...]:
        """What is certain about these cases: on average, and in the next period where periods are known."""
        if self._points:
            points, known = zip(*self._points, strict=True)
            context = {name: np.concatenate([part[name] for part in known]) for name in self._policy.columns}
            return (self._policy.certify(np.concatenate(points), context=context),)
        if self._past is None or not self._count:
            return ()
        promised, least = (self._totals / self._count).tolist()
        soon = self._past.between is not None and self._past.n_units >= FEWEST_PERIODS
        wanted = [("average", False), *([("next period", True)] if soon else [])]
        return tuple(_bound(self._past, promised, least, self._count, *each) for each in wanted)
