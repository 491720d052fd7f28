"""The audit: what a sample says about every moment of a guarantee; the ladder: what each of several is worth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, frozen, listed, probability
from prudent.arrays.chunks import one_blas_thread
from prudent.cases.cases import outcome_space, read_cases
from prudent.cases.moment_sums import MomentEstimates
from prudent.errors import InputError
from prudent.formatting import Printable, Table, format_number, format_table
from prudent.guarantees import Guarantee, Nothing, SelfOrthogonal, Unbiased, UtilityCalibrated, Within
from prudent.guarantees.base import And, parts_of
from prudent.guarantees.names import read_guarantee
from prudent.policies import RobustPolicy, require_problem
from prudent.policies.play import play
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.spaces import Space

_SHOWN = 12


@frozen
class Audit(Table):
    """Measured moments of a guarantee with simultaneous intervals, and what they come to.

    Attributes
    ----------
    guarantee : Guarantee
        With everything fixed that depends on the sample.
    measured : MomentEstimates
        In the units of the unscaled tests.
    confidence : float
        All moments lie in their intervals at once with this confidence.
    n_rows : int
        Rows that took part.
    n_dropped : int
        Rows left out because their outcome is missing.
    """

    _shown = ("p_value", "rejected", "columns")

    guarantee: Guarantee
    measured: MomentEstimates = field(repr=False)
    confidence: float
    n_rows: int
    n_dropped: int

    @property
    def moment_names(self) -> tuple[str, ...]:
        """Names of the moments."""
        return self.measured.tests.names

    @property
    def estimates(self) -> FloatArray:
        """Measured moments in units of outcomes, as slack is, shape ``(K,)``."""
        return self.measured.estimates / self.measured.tests.scales

    @property
    def intervals(self) -> FloatArray:
        """Lower and upper ends of the simultaneous intervals, shape ``(K, 2)``."""
        return np.stack([self.columns["lower"], self.columns["upper"]], axis=1)

    @property
    def p_values(self) -> FloatArray:
        """One per moment, adjusted for their number."""
        return self.measured.p_values

    @property
    def p_value(self) -> float:
        """For the guarantee as a whole: the smallest adjusted one."""
        return float(self.p_values.min(initial=1.0))

    @property
    def rejected(self) -> tuple[str, ...]:
        """Names of the moments that are not zero."""
        return tuple(np.array(self.moment_names, dtype=object)[self.p_values < 1 - self.confidence])

    @property
    def slack(self) -> FloatArray:
        """Radii around zero that hold all moments, in the units that policies take slack in.

        ``(k, d)`` for scalar tests, else one per moment ``(K, 1)``.
        """
        return np.asarray(self.measured.slack("zero").radius, dtype=np.float64)

    @property
    def centered_slack(self) -> Slack:
        """The smaller set, centred at the measured moments."""
        return self.measured.slack().settle(self.measured.tests, self.measured.estimates)

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown: one row per moment."""
        return self.measured.columns

    @property
    def sentence(self) -> str:
        """Say whether a violation is found, and which is the clearest."""
        if not self.rejected:
            return "No violation of the guarantee is found."
        worst = int(np.argmin(self.p_values))
        value, (lower, upper) = float(self.estimates[worst]), self.intervals[worst]
        others = f" (and {len(self.rejected) - 1} more)" if len(self.rejected) > 1 else ""
        return (
            f"The guarantee is violated: the moment {self.moment_names[worst]!r}{others} is "
            f"{format_number(value, 3, '+')}, between {format_number(lower, 3)} and "
            f"{format_number(upper, 3)}: weighted by this test, outcomes lie "
            f"{'above' if value > 0 else 'below'} forecasts."
        )

    def __str__(self) -> str:
        lines = [self.sentence]
        if self.moment_names:
            lines.append(format_table(self.columns, np.argsort(self.p_values, kind="stable")[:_SHOWN].tolist()))
        hidden = len(self.moment_names) - _SHOWN
        if hidden > 0:
            lines.append(f"... and {hidden} moments with larger p-values; to_frame() has all.")
        dropped = f", {self.n_dropped:,} without outcome left out" if self.n_dropped else ""
        level = f"{100 * self.confidence:g}% confidence"
        lines.append(f"{self.n_rows:,} rows{dropped}; intervals hold for all moments at once with {level}.")
        return "\n".join([*lines, *filter(None, [self.measured.about_periods])])


def audit(
    problem_or_space: DecisionProblem | Space | None,
    forecasts: Any,
    outcomes: Any = None,
    *,
    guarantee: Guarantee | str | None = None,
    by: Any = None,
    confidence: float = 0.95,
    weights: Any = None,
    periods: Any = None,
    context: Any = None,
    missing: str = "refuse",
) -> Audit:
    """Measure whether a guarantee holds. What to do about it depends on the decision: :func:`prudent.advise`.

    Parameters
    ----------
    problem_or_space : DecisionProblem, Box, Simplex or None
        None stands for outcomes in [0, 1].
    forecasts : array of shape (n,) or (n, d), or Cases
        Those of a table are measured in their engine.
    outcomes : array
        On the simplex also class labels.
    guarantee : Guarantee or str, optional
        By default that forecasts are right on average, and of a problem also the utility that they promise.
    by : str or sequence of str, optional
        Columns of context: the moments, and of a problem the utility that it promises, are measured within
        each value of each column, too; values of few rows or periods are ``other``. As with bins, moments are means
        over all rows: what a segment is off by, times its share.
    confidence : float
    weights : array of shape (n,), optional
    periods : array of shape (n,), optional
        Rows of one period depend on each other; periods do not, and are then the independent units.
    context : frame or mapping of columns, optional
        Where the guarantee looks at more than forecasts.
    missing : {"refuse", "drop"}
        What to do with rows whose outcome is missing.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(5000)
    >>> outcomes = (rng.random(5000) < forecasts**2).astype(float)
    >>> prudent.audit(prudent.Box(0, 1), forecasts, outcomes, guarantee="self-orthogonal").rejected
    ('v',)
    """
    problem = problem_or_space if isinstance(problem_or_space, DecisionProblem) else None
    if guarantee is None:
        guarantee = Unbiased() if problem is None else Unbiased() & UtilityCalibrated((problem,))
    read = read_guarantee(guarantee, problem)
    if read.full:
        raise InputError("FullyCalibrated has infinitely many tests and cannot be audited; use bins or another family.")
    level = probability(confidence, "confidence")
    cases = read_cases(forecasts, outcomes, weights=weights, periods=periods, context=context, missing=missing)
    rows: Any = cases.on(outcome_space(problem_or_space, cases.width))
    if by is not None:
        rows = cases.in_memory(rows.space).on(rows.space)
        names = [by] if isinstance(by, str) else listed(by, "by")
        known = rows.pooled_context([name for name in names if name not in read.context_columns])
        rows = replace(rows, context=dict(rows.context) | known)
        parts = dict.fromkeys([*parts_of(read), UtilityCalibrated((problem,))] if problem else parts_of(read))
        read = And((*parts, *(Within(name, part) for name in known for part in parts)))
    resolved = rows.resolve(read)
    measurement = rows.measure(resolved, level)
    return Audit(resolved, measurement.estimates, level, measurement.n_rows, measurement.n_dropped)


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
