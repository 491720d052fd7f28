"""What a policy gets in every allowed world, with confidence, from forecasts that it was not fitted on.

With multipliers fixed, ``E u(pi, Y) >= E[phi(s) - s.v] - sigma_S(L)`` in every world of ``Q_S`` (docs/theory.md,
section 7). The right-hand side is a mean over forecasts, so fresh forecasts estimate it; on the rows that chose the
multipliers it is biased upward.
"""

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import clone

from prudent.arrays import Context, FloatArray, context_rows, frozen, probability
from prudent.cases.cases import read_cases
from prudent.cases.mean_bounds import Means
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.formatting import Printable, format_number
from prudent.policies import RobustPolicy

_TRUSTS = "a policy for FullyCalibrated trusts its forecasts entirely; there is nothing to certify or to watch."
_DISTINCT = 0.9
_RECOGNISED = 0.1


@frozen
class ConfidenceCertificate(Printable):
    """A lower bound of a policy's mean utility in every world that its guarantee allows.

    Attributes
    ----------
    lower : float
        With ``confidence`` the mean utility is at least this in every allowed world.
    confidence : float
        Less than was asked for where the policy's slack was itself measured: both must hold.
    estimate : float
        The bound without its safety margin: an unbiased estimate from fresh rows.
    in_sample : float
        What the rows that the policy was fitted on show: optimistic, since they chose the policy.
    n_rows : int
        Fresh rows.
    policies : tuple
        What is certified: one policy, or several from cross-fitting, one of which is to be drawn for each decision.
    shares : tuple of float
        With these probabilities.
    """

    lower: float
    confidence: float
    estimate: float
    in_sample: float
    n_rows: int
    policies: tuple[RobustPolicy, ...] = field(repr=False)
    shares: tuple[float, ...] = (1.0,)

    def predict_proba(self, X: Any) -> FloatArray:
        """Mixture of what is certified, shape ``(n, m)``: the mean over the policies, by their shares."""
        played: FloatArray = np.average([policy.predict_proba(X) for policy in self.policies], 0, self.shares)
        return played

    def __str__(self) -> str:
        return (
            f"at least {format_number(self.lower, 6)} in every world that the guarantee allows, with "
            f"{100 * self.confidence:g}% "
            f"confidence ({self.n_rows:,} fresh rows; estimate {format_number(self.estimate, 6)}). "
            f"In sample: {format_number(self.in_sample, 6)}, which is optimistic."
        )


def confidence_certificate(
    policy: RobustPolicy,
    forecasts: Any,
    *,
    confidence: float = 0.95,
    weights: Any = None,
    periods: Any = None,
    context: Any = None,
    cv: int | None = None,
    outcomes: Any = None,
    assume_fresh: bool = False,
) -> ConfidenceCertificate:
    """Certify a policy on forecasts that it was not fitted on.

    Parameters
    ----------
    policy : RobustPolicy
        Fitted; with ``cv`` it is cloned and fitted here.
    forecasts : array of shape (n,) or (n, d), or Cases in memory
        Of fresh rows from the population that the policy is for. No outcomes are needed.
    confidence : float
    weights, periods : arrays of shape (n,), optional
    context : frame or mapping of columns, optional
        Where the guarantee looks at more than forecasts.
    cv : int, optional
        Cross-fitting: split the rows into so many parts, fit on all but one and certify on that one. What is
        certified is to draw one of the policies for each decision.
    outcomes : array, optional
        For cross-fitting a policy whose slack is measured.
    assume_fresh : bool
        Rows are compared with those of the fit, and refused if they are the same. Set this where other rows merely
        have the same forecasts.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> rng = np.random.default_rng(0)
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal()).fit(rng.random(1000))
    >>> certificate = prudent.confidence_certificate(policy, rng.random(1000))
    >>> certificate.lower < policy.certificate_.lower
    True
    """
    if not isinstance(policy, RobustPolicy) or policy.criterion != "utility":
        raise InputError(f"policy must be a RobustPolicy with criterion='utility'; got {policy!r}.")
    level = probability(confidence, "confidence")
    rows = read_cases(forecasts, outcomes, weights=weights, periods=periods, context=context).on(policy._problem.space)
    if cv is None:
        policy._place(forecasts)
        if not assume_fresh:
            _refuse_fitted_rows(policy, rows)
        parts = [(policy, slice(None), 1.0)]
    else:
        parts = _cross_fitted(policy, rows, cv)
    policies, _, shares = zip(*parts, strict=True)
    # All bounds, and the slack of all policies that measured theirs, hold at once.
    bounds = [_bound(part, rows, inside, (1 - level) / len(parts)) for part, inside, _ in parts]
    lower, estimates = zip(*bounds, strict=True)
    measured = [part.slack_.confidence for part in policies]
    total = level - sum(1 - each for each in measured if each is not None)
    if total <= 0:
        raise InputError(
            f"confidence {level:g} and that of the measured slack, {measured}, leave nothing together; raise one of "
            f"them, or take fewer folds (cv)."
        )
    size = np.array(shares)
    return ConfidenceCertificate(
        float(size @ lower),
        total,
        float(size @ estimates),
        float(size @ [part.certificate_.lower for part in policies]),
        len(rows.forecasts),
        policies,
        shares,
    )


def certified_utilities(policy: RobustPolicy, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
    """Compute ``g = min_p [u(pi, p) + s.(p - v)]`` of each row: what is certified before slack, ``(n,)``."""
    problem = policy._problem
    low, widths = problem.space.bounds[0], problem.space.widths
    mixtures, tilts = policy._mixtures(forecasts, context), policy._tilts(forecasts, context)
    assert tilts is not None  # noqa: S101  # the range, which is asked for first, refuses full calibration
    # Measured from the lower corner of the space, where products are small.
    constant = mixtures @ (problem.rewards @ low - problem.costs) - (tilts * (forecasts - low)).sum(axis=1)
    direction = mixtures @ problem.rewards + tilts
    least = direction.min(axis=1) if problem.space.is_simplex else np.minimum(direction, 0.0) @ widths
    return constant + least


def slack_cost(policy: RobustPolicy) -> float:
    """Compute ``sigma_S`` at the policy's multipliers: what slack costs."""
    multipliers = _multipliers(policy)
    return policy.slack_.resolve(policy.fitted_.tests, None).support(multipliers.reshape(-1))


def tilt_range(policy: RobustPolicy) -> float:
    """Largest ``|s.(p - v)|`` at any forecast and belief, from the declared bounds of the tests."""
    sizes = np.abs(_multipliers(policy)).reshape(-1, 1)
    bounds, space = policy.fitted_.tests.bounds, policy._problem.space
    reach = np.multiply(sizes, bounds, out=np.zeros_like(bounds), where=(sizes > 0) & (bounds > 0))
    # In each coordinate at most one of disjoint tests is not zero.
    tilts = reach.max(axis=0, initial=0.0) if policy.fitted_.tests.disjoint else reach.sum(axis=0)
    return float(2 * tilts.max()) if space.is_simplex else float(tilts @ space.widths)


def certified_range(policy: RobustPolicy) -> tuple[float, float]:
    """Smallest and largest certified utility at any forecast, known before any row is seen."""
    least, most = policy._problem.utility_bounds
    return float(least.max()) - tilt_range(policy), float(most.max())


def _multipliers(policy: RobustPolicy) -> FloatArray:
    if policy.multipliers_ is None:
        raise InputError(_TRUSTS)
    return policy.multipliers_


def _bound(policy: RobustPolicy, rows: MemoryRows, inside: Any, error: float) -> tuple[float, float]:
    """Lower bound and estimate, on some of the rows."""
    low, high = certified_range(policy)
    weights, periods = rows.weights[inside], rows.periods
    clusters = None if periods is None else np.unique(periods[inside], return_inverse=True)[1]
    utilities = certified_utilities(policy, rows.forecasts[inside], context_rows(rows.context, inside))
    means = Means.of_rows(utilities, weights / weights.sum(), low, high, clusters)
    if means.n_units < 2:
        raise InputError("forecasts must have at least two independent rows (or periods) to show how much they vary.")
    cost = slack_cost(policy)
    estimate = float(means.means[0]) - cost
    return estimate - float(means.radii(error)[0]), estimate


def _cross_fitted(policy: RobustPolicy, rows: MemoryRows, cv: int) -> list[tuple[RobustPolicy, Any, float]]:
    """Fit one policy per fold on the others; the rows that it has not seen, and their share of the weight."""
    n = len(rows.forecasts)
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)) or not 2 <= cv <= n // 2:
        raise InputError(f"cv must be a whole number from 2 to half the number of rows, {n // 2}; got {cv!r}.")
    units = np.arange(n) if rows.periods is None else rows.periods
    parts = []
    for held_out in np.array_split(np.random.default_rng(0).permutation(np.unique(units)), cv):
        inside = np.isin(units, held_out)
        if not inside.any() or inside.all():
            raise InputError("cv must leave periods in every fold and outside it; use a smaller cv.")
        part = clone(policy).fit(
            rows.forecasts[~inside],
            None if rows.outcomes is None else rows.outcomes[~inside],
            sample_weight=rows.weights[~inside],
            periods=None if rows.periods is None else rows.periods[~inside],
            context=context_rows(rows.context, ~inside),
        )
        parts.append((part, inside, float(rows.weights[inside].sum())))
    return parts


def _refuse_fitted_rows(policy: RobustPolicy, rows: MemoryRows) -> None:
    """Compare with a few rows that the policy was fitted on: forecasts with many digits do not occur twice."""
    fitted, forecasts = policy.fitted_.examples, rows.everything
    if len(fitted) < 20:  # a policy from a file carries one row only
        return
    ours, theirs = np.unique(fitted, axis=0), np.unique(forecasts, axis=0)
    known = {row.tobytes() for row in theirs}
    if len(ours) < _DISTINCT * len(fitted) or len(theirs) < _DISTINCT * len(forecasts):
        # Forecasts repeat, as from a tree or with two digits: only all the same rows in the same order look wrong.
        same = len(forecasts) > 1 and np.array_equal(rows.some(), fitted)
    else:
        same = sum(row.tobytes() in known for row in ours) > _RECOGNISED * len(ours)
    if same:
        raise InputError(
            "forecasts must be of rows that the policy was not fitted on, and these are: on them the guarantee is "
            "optimistic, because they chose the policy. Split the rows before fitting, pass cv= for cross-fitting, "
            "or say assume_fresh=True if other rows merely have the same forecasts."
        )
