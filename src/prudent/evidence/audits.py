"""The audit: what a sample says about every moment of a guarantee."""

from dataclasses import field
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, frozen, non_negative, probability
from prudent.cases.cases import outcome_space, read_cases
from prudent.cases.intervals import MomentEstimates
from prudent.errors import InputError
from prudent.evidence.verdict import DEFAULT_TOLERANCE, Verdict, decide, without_problem
from prudent.formatting import Table, format_table
from prudent.guarantees import Guarantee
from prudent.guarantees.names import read_guarantee
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
    verdict : Verdict
        ``verdict.kind``, and the sentence as ``str(verdict)``.
    n_rows : int
        Rows that took part.
    n_dropped : int
        Rows left out because their outcome is missing.
    """

    _shown = ("p_value", "rejected", "columns")

    guarantee: Guarantee
    measured: MomentEstimates = field(repr=False)
    confidence: float
    verdict: Verdict
    n_rows: int
    n_dropped: int

    @property
    def moment_names(self) -> tuple[str, ...]:
        """Names of the moments."""
        return self.measured.tests.names

    @property
    def estimates(self) -> FloatArray:
        """Measured moments, shape ``(K,)``."""
        return self.measured.estimates

    @property
    def intervals(self) -> FloatArray:
        """Lower and upper ends of the simultaneous intervals, shape ``(K, 2)``."""
        return np.stack([self.estimates - self.measured.radii, self.estimates + self.measured.radii], axis=1)

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
        return self.measured.slack().settle(self.measured.tests, self.estimates)

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown: one row per moment."""
        return self.measured.columns

    def __str__(self) -> str:
        lines = [str(self.verdict)]
        if self.moment_names:
            lines.append(format_table(self.columns, np.argsort(self.p_values, kind="stable")[:_SHOWN].tolist()))
        hidden = len(self.moment_names) - _SHOWN
        if hidden > 0:
            lines.append(f"... and {hidden} moments with larger p-values; to_frame() has all.")
        dropped = f", {self.n_dropped:,} without outcome left out" if self.n_dropped else ""
        level = f"{100 * self.confidence:g}% confidence"
        lines.append(f"{self.n_rows:,} rows{dropped}; intervals hold for all moments at once with {level}.")
        return "\n".join(lines)


def audit(
    problem_or_space: DecisionProblem | Space | None,
    forecasts: Any,
    outcomes: Any = None,
    *,
    guarantee: Guarantee | str,
    confidence: float = 0.95,
    tolerance: float | None = None,
    method: str = "auto",
    weights: Any = None,
    periods: Any = None,
    missing: str = "refuse",
) -> Audit:
    """Measure whether a guarantee holds, and say what to do: trust, hedge, repair, or gather data.

    Parameters
    ----------
    problem_or_space : DecisionProblem, Box, Simplex or None
        With a problem the verdict is about this decision, and violations have a price; without, the guarantee alone is
        judged. None stands for outcomes in [0, 1].
    forecasts : array of shape (n,) or (n, d), or Cases
        Those of a table are measured in their engine.
    outcomes : array
        On the simplex also class labels.
    guarantee : Guarantee or str
    confidence : float
    tolerance : float, optional
        What matters, in units of utility (without a problem, of slack). By default 5% of the utility range (of the
        largest size that each moment can have).
    method : {"auto", "bernstein"}
        "auto" takes the normal approximation (Student's t with the effective number of rows, Bonferroni) for
        moments that rest on many rows, and empirical Bernstein intervals, valid at any size, for the others.
    weights : array of shape (n,), optional
    periods : array of shape (n,), optional
        Rows of one period depend on each other; periods do not. Intervals are then cluster-robust.
    missing : {"refuse", "drop"}
        What to do with rows whose outcome is missing.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts = rng.random(5000)
    >>> outcomes = (rng.random(5000) < forecasts).astype(float)
    >>> result = prudent.audit(problem, forecasts, outcomes, guarantee="self-orthogonal")
    >>> result.verdict.kind
    <VerdictKind.TRUST: 'trust'>
    """
    problem = problem_or_space if isinstance(problem_or_space, DecisionProblem) else None
    read = read_guarantee(guarantee, problem)
    cases = read_cases(forecasts, outcomes, weights=weights, periods=periods, missing=missing)
    rows = cases.on(outcome_space(problem_or_space, cases.width))
    return audit_rows(rows, read, problem, probability(confidence, "confidence"), tolerance, method)


def audit_rows(
    rows: Any,
    guarantee: Guarantee,
    problem: DecisionProblem | None,
    confidence: float,
    tolerance: float | None = None,
    method: str = "auto",
) -> Audit:
    """Audit rows, of memory or of a table."""
    if guarantee.full:
        raise InputError("FullyCalibrated has infinitely many tests and cannot be audited; use bins or another family.")
    matters = None if tolerance is None else non_negative(tolerance, "tolerance")
    resolved = rows.resolve(guarantee)
    measurement = rows.measure(resolved, confidence, method)
    measured = measurement.estimates
    if problem is None:
        broken = bool((measured.p_values < 1 - confidence).any())
        verdict = without_problem(measured, broken, rows.space, matters)
    else:
        matters = DEFAULT_TOLERANCE * problem.utility_range if matters is None else matters
        verdict = decide(problem, resolved, rows, measurement, confidence, method, matters)
    return Audit(resolved, measured, confidence, verdict, measurement.n_rows, measurement.n_dropped)
