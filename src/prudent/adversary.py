"""The worst world for any policy, and the stress test, every policy in the worst world of each (docs/theory.md)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, frozen, probability
from prudent.arrays.chunks import one_blas_thread
from prudent.cases.cases import Cases, read_cases
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.formatting import Printable, Table, format_number, format_table
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


@frozen
class StressTest(Table):
    """Expected utilities of several policies in several worlds.

    Attributes
    ----------
    names : tuple of str
        The policies, in the order given.
    nominal : array of shape (p,)
        If every forecast were right.
    realised : array of shape (p,) or None
        On the outcomes, where there are any.
    worst : array of shape (p,)
        Each policy in its own worst world: what it guarantees.
    saddle : array of shape (p,)
        In the world that is worst for the best policy (a minimiser of ``E val``).
    under : array of shape (p, p)
        ``under[i, j]``: policy i in the worst world of policy j.
    optimum : Certificate
        What the best possible policy guarantees on this sample.
    margin : float
        Realised utilities are means that may be off by this much by chance: twice the largest standard error possible.

    Notes
    -----
    A worst world need not be unique; the one used is the one that
    :func:`prudent.worst_case` returns for that policy, and for a policy that is optimal on this sample the one that is
    worst for the best policy. On a table it is constant on cells of rows.
    """

    names: tuple[str, ...]
    nominal: FloatArray
    realised: FloatArray | None
    worst: FloatArray
    saddle: FloatArray
    under: FloatArray
    optimum: Certificate
    margin: float = 0.0

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown: one row per policy."""
        realised = {} if self.realised is None else {"realised": self.realised}
        known = {"policy": self.names, "nominal": self.nominal, **realised, "own worst case": self.worst}
        names = [f"worst for {name}" for name in self.names]
        return {**known, "worst world q*": self.saddle, **dict(zip(names, self.under.T, strict=True))}

    def __str__(self) -> str:
        table = format_table(self.columns, number=lambda utility: f"{round(float(utility), 4) + 0.0:8.4f}")
        return (
            f"{table}\nThe best possible policy guarantees {self.optimum.lower:.4f} here "
            f"(and none more than {self.optimum.upper:.4f}).{self.contradiction}"
        )

    @property
    def contradiction(self) -> str:
        """Name the policies that earned less on these outcomes than in their own worst world; empty if none did."""
        if self.realised is None:
            return ""
        below = self.realised < self.worst - self.margin
        names = ", ".join(name for name, less in zip(self.names, below, strict=True) if less)
        if not names:
            return ""
        return (
            f"\nOn these outcomes less was earned than in the worst case ({names}): they contradict the guarantee with "
            f"this slack, so the worst cases are not to be relied on. Measure the slack, or ask for advice."
        )


@one_blas_thread()
def stress_test(
    policies: Mapping[str, Any],
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
) -> StressTest:
    """Compare policies on a sample: nominal, realised, own worst case, and in each other's worst world.

    Parameters
    ----------
    policies : mapping of name to policy or probabilities ``(n, m)``
    forecasts : array of shape (n,) or (n, d), or Cases
        Those of a table stay in their engine; policies must then be the library's.
    outcomes : array, optional
        Adds the realised column.
    guarantee, slack
        What worlds are allowed.
    problem : DecisionProblem, optional
        Defaults to that of the first policy that has one.
    weights, periods : arrays of shape (n,), optional
    context : frame or mapping of columns, optional
        Where the guarantee or a policy looks at more than forecasts.
    confidence : float
        Of slack that is measured (``slack="audit"``).

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(1000) + 0.5) / 1000
    >>> guarantee = "self-orthogonal"
    >>> print(prudent.stress_test({"plug-in": prudent.PlugInPolicy(problem),
    ...                            "robust": prudent.RobustPolicy(problem, guarantee).fit(forecasts)},
    ...                           forecasts, guarantee=guarantee))  # doctest: +NORMALIZE_WHITESPACE
    policy    nominal  own worst case  worst world q*  worst for plug-in  worst for robust
    plug-in    0.7500          0.2362          0.5918             0.2362            0.5918
    robust     0.5930          0.5918          0.5918             0.5918            0.5918
    The best possible policy guarantees 0.5918 here (and none more than 0.5918).
    """
    if not isinstance(policies, Mapping) or not policies:
        raise InputError("policies must be a non-empty mapping from names to policies.")
    names = tuple(str(name) for name in policies)
    if len(set(names)) < len(names):
        raise InputError(f"policies must have distinct names; got {list(policies)}.")
    cases = read_cases(forecasts, outcomes, weights=weights, periods=periods, context=context)
    played, worlds = play_in_worlds(list(policies.values()), cases, guarantee, slack, problem, confidence)
    utilities, saddle = played.utilities(), played.optimum(worlds)
    found = [played.worst(number, worlds, beside_optimum=True) for number in range(len(names))]
    return StressTest(
        names,
        utilities.nominal,
        utilities.realised,
        np.array([world.certificate.lower for world in found]),
        saddle.utilities,
        np.stack([world.utilities for world in found], axis=1),
        saddle.certificate,
        played.problem.utility_range / float(np.sqrt(played.rows.n_units)),
    )
