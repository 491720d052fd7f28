"""What a rule earns on cases at hand, without their outcomes (docs/theory.md, section 13).

What a rule earns is what it promises at its forecasts plus an error, ``u(pi, Y) - u(pi, v)``, which past outcomes show:
its mean, and how much it varies from period to period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.cases.cases import read_cases
from prudent.cases.memory_rows import MemoryRows
from prudent.cases.past_errors import PastErrors
from prudent.errors import InputError
from prudent.formatting import Printable, format_number

if TYPE_CHECKING:
    from prudent.policies.base import Policy
    from prudent.problem import DecisionProblem


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


def rows_in_memory(policy: Policy, cases: Any, weights: Any = None) -> MemoryRows:
    """Place cases on the space of a policy; those of a table are read."""
    read: Any = read_cases(cases, weights=weights)
    if hasattr(read, "table"):
        read = read.on(policy._problem.space).in_memory()
    found: MemoryRows = read.on(policy._problem.space)
    return found


def own_of_rows(problem: DecisionProblem, rows: MemoryRows, own: dict[str, Any]) -> dict[str, FloatArray]:
    """Read rewards and costs of all rows, and keep those of the rows that take part."""
    if not own:
        return {}
    tables = problem.of_rows(len(rows.everything), **own)
    return {name: table[rows.used] for name, table in zip(("rewards", "costs"), tables, strict=True)}


def play_rule(policy: Policy, rows: MemoryRows, own: dict[str, Any]) -> FloatArray:
    """Play a rule on the rows that take part.

    A rule that does not look at stakes is not told those of rows; one that lists what was done lists it for all rows.
    """
    from prudent.policies.recalibrated import FixedRule
    from prudent.policies.reference import SafetyPolicy

    if isinstance(policy, (FixedRule, SafetyPolicy)):
        return policy.predict_proba(rows.everything)[rows.used]
    return policy.predict_proba(rows.forecasts, **own)


def utility_bound(
    policy: Policy,
    past: PastErrors | None,
    cases: Any,
    *,
    horizon: str = "average",
    realised: bool = False,
    weights: Any = None,
    own: dict[str, Any],
) -> UtilityBound:
    """Bound what a rule earns on cases from below; ``past`` are its errors in utility."""
    if past is None:
        raise InputError(
            "this rule does not know past outcomes, so nothing is certain about it: take the policy of prudent.advise."
        )
    problem, rows = policy._problem, rows_in_memory(policy, cases, weights)
    own = own_of_rows(problem, rows, own)
    mixtures = play_rule(policy, rows, own)
    promised = problem.utilities_of_rows(policy.acts_on(rows.forecasts), **own)
    n_cases = 1 / float(rows.weights @ rows.weights) if realised else None
    error = float(past.estimates[0] - past.radii_for(horizon, n_cases)[0])
    rewards, costs = own.get("rewards", problem.rewards[None]), own.get("costs", problem.costs[None])
    least = problem.space.support_minimum((mixtures[:, :, None] * rewards).sum(axis=1)) - (mixtures * costs).sum(axis=1)
    # Nothing can be worse than the worst outcome of every case.
    lower = max(float(rows.weights @ (mixtures * promised).sum(axis=1)) + error, float(rows.weights @ least))
    return UtilityBound(lower, past.confidence, horizon, None if n_cases is None else int(np.floor(n_cases + 1e-9)))
