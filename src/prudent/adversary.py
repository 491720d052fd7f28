"""The worst world for any policy (docs/theory.md, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.ambiguity import Ambiguity, Slack, build_ambiguity
from prudent.arrays import FloatArray, probability, row_weights, rows
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.narrow import sums_of_rows
from prudent.policies import Policy
from prudent.policies.worst_in_tables import TableSample, gather_table_sample
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, Solution, shared_saddle, solve
from prudent.tables.columns import Columns
from prudent.writing import written

__all__ = ["Sample", "WorstCase", "gather_sample", "gather_table", "worst_case"]


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The least expected utility that a guarantee allows a policy, and a world that attains it.

    Attributes
    ----------
    value : float
        The policy gets at least this in every allowed world; ``certificate.lower``.
    beliefs : array of shape (n, d)
        An allowed world ``q`` in which the policy gets ``certificate.upper``; of a lazy table on cells of it.
    certificate : Certificate
        Here ``upper`` speaks of this policy only.
    """

    value: float
    beliefs: FloatArray
    certificate: Certificate

    def __str__(self) -> str:
        return (
            f"worst case {written(self.value, 6)}: at least this in every world that the guarantee allows, "
            f"and {written(self.certificate.upper, 6)} in the one found (gap {self.certificate.gap:.1e})"
        )


@dataclass(frozen=True, eq=False)
class Sample:
    """Validated forecasts of one problem with the worlds that a guarantee allows on them.

    Rows of weight zero take no part in ``ambiguity``.
    """

    problem: DecisionProblem
    forecasts: FloatArray
    weights: FloatArray
    used: Any
    ambiguity: Ambiguity

    def spread(self, beliefs: FloatArray) -> FloatArray:
        """Put a world of the used rows back among all rows; unused rows keep their forecast."""
        if len(beliefs) == len(self.forecasts):
            return beliefs.copy() if np.may_share_memory(beliefs, self.forecasts) else beliefs
        world = self.forecasts.copy()
        world[self.used] = beliefs
        return world

    def worst(self, mixtures: FloatArray, optimum: Solution | None = None) -> WorstCase:
        """Find the worst world for mixtures ``(n, m)``; ``optimum`` is the best policy's solution, if it is known."""
        game = Game.of_mixtures(self.problem, mixtures[self.used])
        solution = None
        if optimum is not None:
            every = len(optimum.beliefs) == self.ambiguity.n_rows
            known = optimum if every else replace(optimum, beliefs=optimum.beliefs[self.used])
            solution = shared_saddle(game, self.ambiguity, known)
        if solution is None:
            solution = solve(game, self.ambiguity)
        return WorstCase(solution.lower, self.spread(solution.beliefs), solution.certificate)


def worst_case(
    policy: Any,
    forecasts: Any,
    *,
    problem: DecisionProblem | None = None,
    guarantee: Guarantee,
    slack: Any = 0.0,
    outcomes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> WorstCase:
    """Find the worst world that a guarantee allows for a policy on a sample of forecasts.

    Parameters
    ----------
    policy : policy or array of shape (n, m)
        A fitted policy, anything with ``predict_proba``, or action probabilities per row.
    forecasts : array of shape (n,) or (n, d), or Columns
        A lazy table stays in its engine; the policy must be one of the library's, and outcomes and weights are named
        in ``columns``.
    problem : DecisionProblem, optional
        Defaults to the policy's own.
    guarantee : Guarantee
    slack : float, array, Slack or "audit"
    outcomes : array, optional
        Needed only where the slack is measured.
    sample_weight : array of shape (n,), optional
    confidence : float
        Of slack that is measured.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(1000) + 0.5) / 1000
    >>> result = prudent.worst_case(prudent.PlugInPolicy(problem), forecasts,
    ...                             guarantee=prudent.guarantees.SelfOrthogonal())
    >>> round(result.value, 3)
    0.236
    """
    if problem is None:
        problem = getattr(policy, "problem", None)
    if isinstance(forecasts, Columns):
        given = {"outcomes": outcomes, "sample_weight": sample_weight}
        found = gather_table([policy], forecasts, problem, guarantee, slack, given, confidence).worst(0)
        return WorstCase(found.certificate.lower, found.beliefs, found.certificate)
    sample = gather_sample(problem, forecasts, guarantee, slack, outcomes, sample_weight, confidence)
    return sample.worst(mixtures_of(policy, forecasts, sample))


def gather_sample(
    problem: Any,
    forecasts: Any,
    guarantee: Guarantee,
    slack: Any,
    outcomes: Any,
    sample_weight: Any,
    confidence: float = 0.95,
) -> Sample:
    """Validate what :func:`worst_case` and the stress test are given."""
    _require(problem, guarantee)
    placed, _ = problem.space.place(forecasts, "forecasts")
    weights, positive = row_weights(sample_weight, len(placed))
    used = slice(None) if positive.all() else positive
    known = None
    if Slack.read(slack).needs_outcomes:
        if outcomes is None:
            raise InputError("slack that is measured (slack='audit', center='measured') needs outcomes.")
        known = problem.space.place_outcomes(outcomes)
        if len(known) != len(placed):
            raise InputError(f"outcomes must have one row per forecast, {len(placed)}; got {len(known)}.")
        known = known[used]
    resolved = guarantee.resolve(placed[used], weights[used], problem.space)
    ambiguity = build_ambiguity(problem, resolved, placed[used], weights[used], slack, known, confidence)
    return Sample(problem, placed, weights, used, ambiguity)


def gather_table(
    policies: Sequence[Any],
    columns: Columns,
    problem: Any,
    guarantee: Guarantee,
    slack: Any,
    given: dict[str, Any],
    confidence: float = 0.95,
) -> TableSample:
    """Validate the same where the rows are in a lazy table; ``given`` is what its columns say already."""
    _require(problem, guarantee)
    twice = [name for name, value in given.items() if value is not None]
    if twice:
        raise InputError(f"{', '.join(twice)} of a table: say it in prudent.columns(), and pass None here.")
    return gather_table_sample(policies, columns, problem, guarantee, slack, probability(confidence, "confidence"))


def _require(problem: Any, guarantee: Any) -> None:
    if not isinstance(problem, DecisionProblem):
        raise InputError(
            f"problem must be a DecisionProblem (policies bring their own, probabilities do not); "
            f"got {type(problem).__name__}."
        )
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"guarantee must come from prudent.guarantees; got {guarantee!r}.")


def mixtures_of(policy: Any, forecasts: Any, sample: Sample) -> FloatArray:
    """Return the probabilities that a policy plays, or check those given."""
    problem, n = sample.problem, len(sample.forecasts)
    own = getattr(policy, "problem", None)
    if isinstance(policy, Policy) and own != problem:
        raise InputError("the policy was made for another problem than the one given.")
    given = policy.predict_proba(forecasts) if hasattr(policy, "predict_proba") else policy
    mixtures = rows(given, "probabilities", problem.n_actions)
    if mixtures.shape[0] != n:
        raise InputError(f"probabilities must have one row per forecast, {n}; got {mixtures.shape[0]}.")
    total = sums_of_rows(mixtures)
    off = max(float(total.max()) - 1.0, 1.0 - float(total.min()))
    if off > 1e-6 or mixtures.min() < -1e-9:
        wrong = np.flatnonzero((mixtures.min(axis=1) < -1e-9) | (np.abs(total - 1.0) > 1e-6))
        raise InputError(
            f"probabilities must be non-negative with sum 1 in every row; "
            f"row {wrong[0]} is {mixtures[wrong[0]].tolist()}."
        )
    if off <= 4 * np.finfo(np.float64).eps and mixtures.min() >= 0:
        return mixtures
    mixtures = np.maximum(mixtures, 0.0)
    return mixtures / mixtures.sum(axis=1, keepdims=True)
