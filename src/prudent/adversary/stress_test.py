"""Stress test: every policy in the best of worlds, the real one, and the worst (docs/theory.md, section 8)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from prudent.adversary.worst_case import Sample, gather_sample, gather_table, mixtures_of
from prudent.arrays import Backend, FloatArray, data_frame, frozen
from prudent.cases.scan import Columns
from prudent.errors import InputError
from prudent.formatting import format_table
from prudent.guarantees import Guarantee
from prudent.policies import TableSample
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, Solution, solve


@frozen
class StressTest:
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

    Notes
    -----
    A worst world need not be unique; the one used is the one that
    :func:`prudent.worst_case` returns for that policy, and for a policy that is optimal on this sample the one that is
    worst for the best policy. On a lazy table it is constant on cells of rows.
    """

    names: tuple[str, ...]
    nominal: FloatArray
    realised: FloatArray | None
    worst: FloatArray
    saddle: FloatArray
    under: FloatArray
    optimum: Certificate

    @property
    def columns(self) -> dict[str, FloatArray]:
        """The table by column, in the order shown."""
        table = {"nominal": self.nominal}
        if self.realised is not None:
            table["realised"] = self.realised
        table["own worst case"] = self.worst
        table["worst world q*"] = self.saddle
        for j, name in enumerate(self.names):
            table[f"worst for {name}"] = self.under[:, j]
        return table

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return the table as a data frame, one row per policy ("pandas", "polars" or "pyarrow")."""
        return data_frame({"policy": list(self.names), **self.columns}, backend)

    def __str__(self) -> str:
        table = format_table(
            {"policy": self.names, **self.columns},
            range(len(self.names)),
            lambda utility: f"{round(float(utility), 4) + 0.0:8.4f}",
        )
        return (
            f"{table}\nThe best possible policy guarantees {self.optimum.lower:.4f} here "
            f"(and none more than {self.optimum.upper:.4f})."
        )


def stress_test(
    policies: Mapping[str, Any],
    forecasts: Any,
    outcomes: Any = None,
    *,
    guarantee: Guarantee | str,
    slack: Any = 0.0,
    problem: DecisionProblem | None = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> StressTest:
    """Compare policies on a sample: nominal, realised, own worst case, and in each other's worst world.

    Parameters
    ----------
    policies : mapping of name to policy or probabilities ``(n, m)``
    forecasts : array of shape (n,) or (n, d), or Columns
        A lazy table stays in its engine; policies must be the library's, and outcomes and weights are named in
        ``columns``.
    outcomes : array, optional
        Adds the realised column; a table that names its outcomes has it.
    guarantee, slack
        What worlds are allowed.
    problem : DecisionProblem, optional
        Defaults to that of the first policy that has one.
    sample_weight : array of shape (n,), optional
    confidence : float
        Of slack that is measured (``slack="audit"``).

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(1000) + 0.5) / 1000
    >>> guarantee = prudent.guarantees.SelfOrthogonal()
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
    if problem is None:
        problem = next((policy.problem for policy in policies.values() if hasattr(policy, "problem")), None)
    given = problem, forecasts, guarantee, slack, outcomes, sample_weight, confidence
    if isinstance(forecasts, Columns):
        measured = bool(forecasts.outcomes)
        return _in_table(names, gather_table(list(policies.values()), *given, measured=measured), measured)
    sample = gather_sample(*given)
    mixtures = [mixtures_of(policy, forecasts, sample) for policy in policies.values()]
    return compare(sample, names, mixtures, outcomes)


def compare(
    sample: Sample, names: tuple[str, ...], mixtures: list[FloatArray], outcomes: Any, optimum: Solution | None = None
) -> StressTest:
    """Make the stress test of checked mixtures; ``optimum`` is the best policy's solution, if it was found before."""
    if optimum is None:
        optimum = solve(Game.of_problem(sample.problem), sample.ambiguity)
    worlds = [sample.worst(mixture, optimum) for mixture in mixtures]
    played_in = [sample.forecasts, sample.spread(optimum.beliefs), *(world.beliefs for world in worlds)]
    if outcomes is not None:
        played_in.append(sample.problem.space.place_outcome_of_each(outcomes, len(sample.forecasts)))
    scores = sample.problem.expected_utilities(mixtures, played_in, sample.weights)
    return StressTest(
        names,
        scores[:, 0],
        None if outcomes is None else scores[:, -1],
        np.array([world.value for world in worlds]),
        scores[:, 1],
        scores[:, 2 : 2 + len(worlds)],
        optimum.certificate,
    )


def _in_table(names: tuple[str, ...], sample: TableSample, measured: bool) -> StressTest:
    """Compare policies on the rows of a lazy table; where it has outcomes, on the rows that have one."""
    utilities = sample.utilities(measured=measured)
    worlds = [sample.worst(number) for number in range(len(names))]
    saddle = sample.optimum()
    return StressTest(
        names,
        utilities.nominal,
        utilities.realised,
        np.array([world.certificate.lower for world in worlds]),
        saddle.utilities,
        np.stack([world.utilities for world in worlds], axis=1),
        saddle.certificate,
    )
