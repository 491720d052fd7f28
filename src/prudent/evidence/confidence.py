"""What a policy gets in every allowed world, with confidence, from forecasts that it was not fitted on.

With multipliers fixed, ``E u(pi, Y) >= E[phi(s) - s.v] - sigma_S(L)`` in every world of ``Q_S`` (docs/theory.md,
section 7). The right-hand side is a mean over forecasts, so fresh forecasts estimate it; on the rows that chose the
multipliers it is biased upward.
"""

from typing import Any

import numpy as np

from prudent.arrays import Context, FloatArray, frozen, probability
from prudent.cases.cases import read_cases
from prudent.cases.mean_bounds import Means
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.formatting import Printable, format_number
from prudent.policies import RobustPolicy

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
    """

    lower: float
    confidence: float
    estimate: float
    in_sample: float
    n_rows: int

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
    assume_fresh: bool = False,
) -> ConfidenceCertificate:
    """Certify a policy on forecasts that it was not fitted on.

    Parameters
    ----------
    policy : RobustPolicy
        Fitted.
    forecasts : array of shape (n,) or (n, d), or Cases in memory
        Of fresh rows from the population that the policy is for. No outcomes are needed.
    confidence : float
    weights, periods : arrays of shape (n,), optional
    context : frame or mapping of columns, optional
        Where the guarantee looks at more than forecasts.
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
    rows = read_cases(forecasts, weights=weights, periods=periods, context=context).on(policy._problem.space)
    policy._place(forecasts)
    if not assume_fresh:
        _refuse_fitted_rows(policy, rows)
    low, high = certified_range(policy)
    utilities = certified_utilities(policy, rows.forecasts, rows.context)
    means = Means.of_rows(utilities, rows.weights, low, high, rows.periods)
    if means.n_units < 2:
        raise InputError("forecasts must have at least two independent rows (or periods) to show how much they vary.")
    measured = policy.slack_.confidence
    # The bound and the measured slack hold at once.
    total = level if measured is None else level + measured - 1
    if total <= 0:
        raise InputError(
            f"confidence {level:g} and that of the measured slack, {measured:g}, leave nothing together; raise one of "
            f"them."
        )
    estimate = float(means.means[0]) - slack_cost(policy)
    lower = estimate - float(means.radii(1 - level)[0])
    return ConfidenceCertificate(lower, total, estimate, policy.certificate_.lower, len(rows.forecasts))


def certified_utilities(policy: RobustPolicy, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
    """Compute ``g = min_p [u(pi, p) + s.(p - v)]`` of each row: what is certified before slack, ``(n,)``."""
    game, common = policy.fitted_.game.from_corner  # where products are small
    rewards, offsets = game.mixed(policy._mixtures(forecasts, context))
    tilts: Any = policy.fitted_.tilts(forecasts, context)  # the range, which is asked for first, refuses to have none
    promised = (tilts * (forecasts - policy._problem.space.bounds[0])).sum(axis=1)
    return common + offsets - promised + game.space.support_minimum(rewards + tilts)


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
        raise InputError(
            "a policy for FullyCalibrated trusts its forecasts entirely; there is nothing to certify or to watch."
        )
    return policy.multipliers_


def _refuse_fitted_rows(policy: RobustPolicy, rows: MemoryRows) -> None:
    """Compare with a few rows that the policy was fitted on: forecasts with many digits do not occur twice."""
    fitted, forecasts = policy.fitted_.examples, rows.everything
    if len(fitted) < 20:  # a policy from a file carries one row only
        return
    ours, theirs = np.unique(fitted, axis=0), np.unique(forecasts, axis=0)
    if len(ours) < _DISTINCT * len(fitted) or len(theirs) < _DISTINCT * len(forecasts):
        # Forecasts repeat, as from a tree or with two digits: only all the same rows in the same order look wrong.
        same = np.array_equal(rows.some(), fitted)
    else:
        known = {row.tobytes() for row in theirs}
        same = sum(row.tobytes() in known for row in ours) > _RECOGNISED * len(ours)
    if same:
        raise InputError(
            "forecasts must be of rows that the policy was not fitted on, and these are: on them the guarantee is "
            "optimistic, because they chose the policy. Split the rows before fitting, or say assume_fresh=True if "
            "other rows merely have the same forecasts."
        )
