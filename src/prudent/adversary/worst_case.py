"""The worst world for any policy (docs/theory.md, section 5)."""

from typing import Any

from prudent.arrays import FloatArray, frozen, probability
from prudent.arrays.chunks import one_blas_thread
from prudent.cases.cases import Cases, read_cases
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.formatting import Printable, format_number
from prudent.guarantees import Guarantee
from prudent.guarantees.names import read_guarantee
from prudent.policies.play import Play, play
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate


@frozen
class WorstCase(Printable):
    """The least expected utility that a guarantee allows a policy, and a world that attains it.

    Attributes
    ----------
    value : float
        The policy gets at least this in every allowed world; ``certificate.lower``.
    beliefs : array of shape (n, d)
        An allowed world ``q`` in which the policy gets ``certificate.upper``; of a table on cells of it.
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


@one_blas_thread()
def worst_case(
    policy: Any,
    forecasts: Any,
    outcomes: Any = None,
    *,
    guarantee: Guarantee | str,
    slack: Any = 0.0,
    problem: DecisionProblem | None = None,
    weights: Any = None,
    periods: Any = None,
    context: Any = None,
    confidence: float = 0.95,
) -> WorstCase:
    """Find the worst world that a guarantee allows for a policy on a sample of forecasts.

    Parameters
    ----------
    policy : policy or array of shape (n, m)
        A fitted policy, anything with ``predict_proba``, or action probabilities per row.
    forecasts : array of shape (n,) or (n, d), or Cases
        Those of a table stay in their engine; the policy must then be one of the library's.
    outcomes : array, optional
        Needed only where the slack is measured.
    guarantee : Guarantee or str
    slack : float, array, Slack or "audit"
    problem : DecisionProblem, optional
        Defaults to the policy's own.
    weights, periods : arrays of shape (n,), optional
    context : frame or mapping of columns, optional
        Where the guarantee or the policy looks at more than forecasts.
    confidence : float
        Of slack that is measured.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(1000) + 0.5) / 1000
    >>> result = prudent.worst_case(prudent.PlugInPolicy(problem), forecasts,
    ...                             guarantee="self-orthogonal")
    >>> round(result.value, 3)
    0.236
    """
    cases = read_cases(forecasts, outcomes, weights=weights, periods=periods, context=context)
    played, worlds = play_in_worlds([policy], cases, guarantee, slack, problem, confidence)
    found, rows = played.worst(0, worlds), played.rows
    beliefs = rows.spread(found.beliefs) if isinstance(rows, MemoryRows) else found.beliefs
    certificate = found.certificate.on_grid(played.problem.discretization)
    return WorstCase(certificate.lower, beliefs, certificate)


def play_in_worlds(
    policies: list[Any], cases: Cases, guarantee: Any, slack: Any, problem: Any, confidence: float
) -> tuple[Play, Any]:
    """What policies play on cases, and the worlds that a guarantee allows there; arguments as in the public functions.

    The problem is the one given, or that of the first policy that has one.
    """
    if problem is None:
        problem = next((policy.problem for policy in policies if hasattr(policy, "problem")), None)
    if not isinstance(problem, DecisionProblem):
        raise InputError(
            f"problem must be a DecisionProblem (policies bring their own, probabilities do not); "
            f"got {type(problem).__name__}."
        )
    read, rows = read_guarantee(guarantee, problem), cases.on(problem.space)
    if not isinstance(rows, MemoryRows) and (read.full or read.context_columns):
        rows = rows.in_memory().on(problem.space)
    level = probability(confidence, "confidence")
    played = play(policies, rows, problem)
    return played, played.rows.worlds(problem, played.rows.resolve(read), Slack.read(slack), level)
