"""What each of several guarantees is worth on these data, and which is best."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from prudent.arrays import frozen, probability
from prudent.arrays.chunks import one_blas_thread
from prudent.cases.cases import read_cases
from prudent.errors import InputError
from prudent.formatting import Printable, Table, format_number, format_table
from prudent.guarantees import Guarantee, Nothing, SelfOrthogonal
from prudent.guarantees.names import read_guarantee
from prudent.policies import RobustPolicy, require_problem
from prudent.policies.play import play
from prudent.problem import DecisionProblem

_COLUMNS = {
    "guarantee": "name",
    "holds": "holds",
    "p-value": "p_value",
    "slack": "slack",
    "guaranteed": "guaranteed",
    "nominal": "nominal",
    "given up": "given_up",
    "realised": "realised",
}


@frozen
class Rung(Printable):
    """What one guarantee is worth.

    Attributes
    ----------
    name : str
    guarantee : Guarantee
    p_value : float
        Adjusted for all moments of this guarantee and for the number of guarantees.
    holds : bool
        No violation is found.
    slack : float
        The largest measured radius, in the guarantee's units of slack.
    guaranteed : float
        What the best policy under this guarantee, with its measured slack, gets in its worst world.
    nominal : float
        What that policy gets if the forecasts are right.
    given_up : float
        Nominal utility lost against best responding.
    realised : float
        What that policy got on these outcomes.
    policy : RobustPolicy
    """

    name: str
    guarantee: Guarantee
    p_value: float
    holds: bool
    slack: float
    guaranteed: float
    nominal: float
    given_up: float
    realised: float
    policy: RobustPolicy = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{self.name!r} guarantees {format_number(self.guaranteed, 4)} and gives up "
            f"{format_number(self.given_up, 2)} if the forecasts are right"
        )


@frozen
class GuaranteeLadder(Table):
    """Guarantees from weak to strong, each with what it is worth here; ``best`` is the one to choose.

    That is the one with the highest utility guaranteed under its measured
    slack. A stronger guarantee that merely was not rejected has a large slack
    on a small sample, and so a low guarantee.

    Attributes
    ----------
    rungs : tuple of Rung
    confidence : float
        The slacks of all guarantees hold at once with this confidence.
    rung_confidence : float
        That of each slack alone. The best guarantee is chosen by the same rows, so its audit needs this one.
    n_rows : int
    """

    rungs: tuple[Rung, ...]
    confidence: float
    rung_confidence: float
    n_rows: int

    @property
    def best(self) -> Rung:
        """The highest guaranteed utility; of those that are equal up to rounding the first."""
        guaranteed = np.array([rung.guaranteed for rung in self.rungs])
        rounding = 1e-12 * self.rungs[0].policy.problem.utility_range
        return self.rungs[int(np.argmax(guaranteed >= guaranteed.max() - rounding))]

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown: one row per guarantee."""
        found = {title: [getattr(rung, name) for rung in self.rungs] for title, name in _COLUMNS.items()}
        return found | {"holds": ["yes" if rung.holds else "no" for rung in self.rungs]}

    def __str__(self) -> str:
        best = self.best
        return (
            f"{format_table(self.columns)}\n"
            f"Best choice: {best}.\n"
            f"{self.n_rows:,} rows; all slacks hold at once with {100 * self.confidence:g}% confidence."
        )


@one_blas_thread()
def guarantee_ladder(
    problem: DecisionProblem,
    forecasts: Any,
    outcomes: Any = None,
    *,
    guarantees: Sequence[Guarantee | str] | Mapping[str, Guarantee | str] | None = None,
    confidence: float = 0.95,
    weights: Any = None,
    periods: Any = None,
    context: Any = None,
    missing: str = "refuse",
    progress: Callable[[str], None] | None = None,
) -> GuaranteeLadder:
    """Audit several guarantees and compare what they are worth for a decision.

    Parameters
    ----------
    problem : DecisionProblem
    forecasts, outcomes : arrays
        Or Cases.
    guarantees : sequence or mapping of name to Guarantee or str, optional
        By default: nothing, unbiased, self-orthogonal, bins, utility-calibrated, decision-calibrated.
    confidence : float
        With which the slacks of all guarantees hold at once.
    weights, periods, context, missing
        As in :func:`prudent.audit`.
    progress : callable, optional
        Called with the name of each guarantee before it is worked on.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts = rng.random(5000)
    >>> outcomes = (rng.random(5000) < forecasts).astype(float)
    >>> prudent.guarantee_ladder(problem, forecasts, outcomes).best.name
    'utility-calibrated'
    """
    require_problem(problem)
    if guarantees is None:
        guarantees = usual_guarantees(problem)
    elif isinstance(guarantees, (str, Guarantee)):
        guarantees = [guarantees]
    pairs = guarantees.items() if isinstance(guarantees, Mapping) else [(each, each) for each in guarantees]
    named = {str(name): read_guarantee(guarantee, problem, finite=True) for name, guarantee in pairs}
    if not named or len(named) < len(guarantees):
        raise InputError("guarantees must be a non-empty collection of different guarantees.")
    given = {"weights": weights, "periods": periods, "context": context, "missing": missing}
    rows: Any = read_cases(forecasts, outcomes, **given).on(problem.space)
    level = probability(confidence, "confidence")
    measuring = sum(not isinstance(guarantee, Nothing) for guarantee in named.values())
    each = 1 - (1 - level) / max(1, measuring)  # the error is shared by all guarantees that measure something
    fitted, n_rows = [], 0
    for name, guarantee in named.items():
        if progress is not None:
            progress(name)
        resolved = rows.resolve(guarantee)
        measurement = rows.measure(resolved, each)
        measured, n_rows = measurement.estimates, measurement.n_rows
        slack = replace(measured.slack(), confidence=level).settle(measured.tests, measured.estimates)
        fitted.append((measured, RobustPolicy(problem, resolved, slack=slack, confidence=level).fit_rows(rows)))
    utilities = play([policy for _, policy in fitted], rows, problem).utilities()
    assert utilities.realised is not None  # noqa: S101  # what is measured has outcomes
    rungs = [
        Rung(
            name,
            policy.guarantee_,
            min(1.0, (1 - level) / (1 - each) * float(measured.p_values.min(initial=1.0))),
            not (measured.p_values < 1 - each).any(),
            float(np.max(policy.slack_.radius, initial=0.0)),
            policy.certificate_.lower,
            float(nominal),
            utilities.best - float(nominal),
            float(realised),
            policy,
        )
        for name, (measured, policy), nominal, realised in zip(
            named, fitted, utilities.nominal, utilities.realised, strict=True
        )
    ]
    return GuaranteeLadder(tuple(rungs), level, each, n_rows)


def usual_guarantees(problem: DecisionProblem) -> dict[str, Guarantee]:
    """The guarantees that are compared by default, weak to strong; only the last two depend on the decision."""
    bins = "bins:10" if problem.dimension == 1 else "classwise:5"
    special = {"self-orthogonal": SelfOrthogonal(intercept=True), "bins": bins}
    names = "nothing", "unbiased", "self-orthogonal", "bins", "utility-calibrated", "decision-calibrated"
    return {name: read_guarantee(special.get(name, name), problem) for name in names}
