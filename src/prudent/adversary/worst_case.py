"""The worst world for any policy (docs/theory.md, section 5)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, frozen, probability, rows
from prudent.arrays.column_reductions import smallest_in_rows, sums_of_rows
from prudent.cases.ambiguity import Ambiguity
from prudent.cases.engine_rows import with_known_outcomes
from prudent.cases.scan import Columns
from prudent.errors import InputError
from prudent.formatting import format_number
from prudent.guarantees.base import Guarantee
from prudent.guarantees.names import read_guarantee
from prudent.policies import Policy, TableSample, gather_table_sample, read_sample
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, Solution, shared_saddle, solve


@frozen
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
            f"worst case {format_number(self.value, 6)}: at least this in every world that the guarantee allows, "
            f"and {format_number(self.certificate.upper, 6)} in the one found (gap {self.certificate.gap:.1e})"
        )


@frozen
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
        world = self.forecasts.copy()
        world[self.used if len(beliefs) < len(world) else ...] = beliefs
        return world

    def worst(self, mixtures: FloatArray, optimum: Solution | None = None) -> WorstCase:
        """Find the worst world for mixtures ``(n, m)``; ``optimum`` is the best policy's solution, if it is known."""
        game, solution = Game.of_mixtures(self.problem, mixtures[self.used]), None
        if optimum is not None:
            known = replace(optimum, beliefs=self.spread(optimum.beliefs)[self.used])
            solution = shared_saddle(game, self.ambiguity, known)
        solution = solution or solve(game, self.ambiguity)
        return WorstCase(solution.lower, self.spread(solution.beliefs), solution.certificate)


def worst_case(
    policy: Any,
    forecasts: Any,
    *,
    problem: DecisionProblem | None = None,
    guarantee: Guarantee | str,
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
    guarantee : Guarantee or str
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
    given = problem, forecasts, guarantee, slack, outcomes, sample_weight, confidence
    if isinstance(forecasts, Columns):
        found = gather_table([policy], *given).worst(0)
        return WorstCase(found.certificate.lower, found.beliefs, found.certificate)
    sample = gather_sample(*given)
    return sample.worst(mixtures_of(policy, forecasts, sample))


def gather_sample(
    problem: Any,
    forecasts: Any,
    guarantee: Guarantee | str,
    slack: Any,
    outcomes: Any,
    sample_weight: Any,
    confidence: float = 0.95,
) -> Sample:
    """Validate what :func:`worst_case` and the stress test are given."""
    guarantee = _read(problem, guarantee)
    read = read_sample(problem, guarantee, forecasts, slack, outcomes, sample_weight, confidence)
    return Sample(problem, read.forecasts, read.weights, read.used, read.ambiguity)


def gather_table(
    policies: Sequence[Any],
    problem: Any,
    columns: Columns,
    guarantee: Guarantee | str,
    slack: Any,
    outcomes: Any,
    sample_weight: Any,
    confidence: float,
    *,
    measured: bool = False,
) -> TableSample:
    """Validate the same where the rows are in a lazy table; where it is ``measured``, take rows with an outcome."""
    guarantee = _read(problem, guarantee)
    given = {"outcomes": outcomes, "sample_weight": sample_weight}
    twice = [name for name, value in given.items() if value is not None]
    if twice:
        raise InputError(f"{', '.join(twice)} of a table: say it in prudent.columns(), and pass None here.")
    if measured:
        columns = with_known_outcomes(columns, problem.space)
    return gather_table_sample(policies, columns, problem, guarantee, slack, probability(confidence, "confidence"))


def _read(problem: Any, guarantee: Any) -> Guarantee:
    if not isinstance(problem, DecisionProblem):
        raise InputError(
            f"problem must be a DecisionProblem (policies bring their own, probabilities do not); "
            f"got {type(problem).__name__}."
        )
    return read_guarantee(guarantee, problem)


def mixtures_of(policy: Any, forecasts: Any, sample: Sample) -> FloatArray:
    """Return the probabilities that a policy plays, or check those given."""
    problem, n = sample.problem, len(sample.forecasts)
    if isinstance(policy, Policy) and policy.problem != problem:
        raise InputError("the policy was made for another problem than the one given.")
    given = policy.predict_proba(forecasts) if hasattr(policy, "predict_proba") else policy
    mixtures = rows(given, "probabilities", problem.n_actions)
    if mixtures.shape[0] != n:
        raise InputError(f"probabilities must have one row per forecast, {n}; got {mixtures.shape[0]}.")
    total = sums_of_rows(mixtures)
    wrong = np.flatnonzero((smallest_in_rows(mixtures) < -1e-9) | (np.abs(total - 1.0) > 1e-6))
    if wrong.size:
        raise InputError(
            f"probabilities must be non-negative with sum 1 in every row; "
            f"row {wrong[0]} is {mixtures[wrong[0]].tolist()}."
        )
    mixtures = np.maximum(mixtures, 0.0)
    return mixtures / sums_of_rows(mixtures)[:, None]
