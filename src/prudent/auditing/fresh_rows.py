"""What a policy gets in every allowed world, with confidence, from forecasts that it was not fitted on.

With multipliers fixed, ``E u(pi, Y) >= E[phi(s) - s.v] - sigma_S(L)`` in every world of ``Q_S`` (docs/theory.md,
section 7). The right-hand side is a mean over forecasts, so fresh forecasts estimate it; on the rows that chose the
multipliers it is biased upward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from prudent.ambiguity import Slack
from prudent.arrays import FloatArray, IntArray, cluster_numbers, probability, row_weights
from prudent.errors import InputError
from prudent.moments import METHODS, mean_radius, spread_of_means
from prudent.policies import PureRobustPolicy, RobustPolicy, rows_to_recognise
from prudent.policies.base import require_problem
from prudent.spaces import Simplex
from prudent.writing import written

__all__ = [
    "ConfidenceCertificate",
    "confidence_certificate",
    "movement",
    "penalty",
    "pledge_range",
    "pledges",
]

_METHODS = tuple(name for name in METHODS if name != "bootstrap")
_TRUSTS = "a policy for FullyCalibrated trusts its forecasts entirely; there is nothing to certify or to watch."
_DISTINCT = 0.9
_FEW = 20
_RECOGNISED = 0.1


@dataclass(frozen=True, eq=False)
class ConfidenceCertificate:
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
    method : str
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
    method: str
    n_rows: int
    policies: tuple[RobustPolicy | PureRobustPolicy, ...]
    shares: tuple[float, ...] = (1.0,)

    def predict_proba(self, X: Any) -> FloatArray:
        """Mixture of what is certified, shape ``(n, m)``: the mean over the policies, by their shares."""
        played = np.stack([policy.predict_proba(X) for policy in self.policies])
        mean: FloatArray = np.einsum("p,pnm->nm", np.array(self.shares), played)
        return mean

    def __str__(self) -> str:
        return (
            f"at least {written(self.lower, 6)} in every world that the guarantee allows, with "
            f"{100 * self.confidence:g}% "
            f"confidence ({self.method}, {self.n_rows:,} fresh rows; estimate {written(self.estimate, 6)}). In sample: "
            f"{written(self.in_sample, 6)}, which is optimistic."
        )


def confidence_certificate(
    policy: RobustPolicy | PureRobustPolicy,
    fresh: Any,
    *,
    confidence: float = 0.95,
    method: str = "auto",
    sample_weight: Any = None,
    groups: Any = None,
    cv: int | None = None,
    outcomes: Any = None,
    assume_fresh: bool = False,
) -> ConfidenceCertificate:
    """Certify a policy on forecasts that it was not fitted on.

    Parameters
    ----------
    policy : RobustPolicy or PureRobustPolicy
        Fitted; with ``cv`` it is cloned and fitted here.
    fresh : array of shape (n,) or (n, d)
        Forecasts from the population that the policy is for. No outcomes are needed.
    confidence : float
    method : {"auto", "normal", "bernstein", "hoeffding"}
    sample_weight, groups : arrays of shape (n,), optional
    cv : int, optional
        Cross-fitting: split ``fresh`` into so many parts, fit on all but one and certify on that one. What is
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
    >>> certificate.lower < policy.value_
    True
    """
    if not isinstance(policy, (RobustPolicy, PureRobustPolicy)):
        raise InputError(f"policy must be a RobustPolicy or PureRobustPolicy; got {type(policy).__name__}.")
    if method not in _METHODS:
        raise InputError(f"method must be one of {', '.join(_METHODS)}; got {method!r}.")
    level = probability(confidence, "confidence")
    if cv is not None:
        return _cross_fitted(policy, fresh, level, method, sample_weight, groups, cv, outcomes)
    forecasts = policy._place(fresh)
    if not assume_fresh:
        _refuse_fitted_rows(policy, forecasts)
    forecasts, weights, clusters, _ = _rows_with_weight(forecasts, sample_weight, groups)
    lower, estimate, used = _bound(policy, forecasts, weights, clusters, 1 - level, method)
    total = _with_measured_slack(level, policy)
    return ConfidenceCertificate(lower, total, estimate, policy.value_, used, len(forecasts), (policy,))


def pledges(policy: RobustPolicy | PureRobustPolicy, forecasts: FloatArray) -> FloatArray:
    """Compute ``g = min_p [u(pi, p) + s.(p - v)]`` of each row: what the policy pledges before slack, ``(n,)``."""
    problem = policy._problem
    low, high = problem.space.bounds
    mixtures, tilts = policy._mixtures(forecasts), policy._tilts(forecasts)
    if tilts is None:
        raise InputError(_TRUSTS)
    # Measured from the lower corner of the space, where products are small.
    constant = mixtures @ (problem.rewards @ low - problem.costs) - (tilts * (forecasts - low)).sum(axis=1)
    direction = mixtures @ problem.rewards + tilts
    least = direction.min(axis=1) if isinstance(problem.space, Simplex) else np.minimum(direction, 0.0) @ (high - low)
    pledged: FloatArray = constant + least
    return pledged


def penalty(policy: RobustPolicy | PureRobustPolicy) -> float:
    """Compute ``sigma_S`` at the policy's multipliers: what slack costs."""
    multipliers = _multipliers(policy)
    return policy.slack_.resolve(policy.tests_, None).support(multipliers.reshape(-1))


def tilt_bounds(policy: RobustPolicy | PureRobustPolicy) -> FloatArray:
    """Largest tilt in each coordinate at any forecast, ``(d,)``, from the declared bounds of the tests."""
    sizes = np.abs(_multipliers(policy)).reshape(-1, 1)
    bounds = policy.tests_.bounds
    reach = np.multiply(sizes, bounds, out=np.zeros_like(bounds), where=(sizes > 0) & (bounds > 0))
    # In each coordinate at most one of disjoint tests is not zero.
    largest: FloatArray = reach.max(axis=0, initial=0.0) if policy.tests_.disjoint else reach.sum(axis=0)
    return largest


def movement(policy: RobustPolicy | PureRobustPolicy) -> float:
    """Largest ``|s.(p - v)|`` at any forecast and belief."""
    space, tilts = policy._problem.space, tilt_bounds(policy)
    low, high = space.bounds
    return float(2 * tilts.max()) if isinstance(space, Simplex) else float(tilts @ (high - low))


def pledge_range(policy: RobustPolicy | PureRobustPolicy) -> tuple[float, float]:
    """Smallest and largest pledge at any forecast, known before any row is seen."""
    problem = policy._problem
    least = problem.space.support_minimum(problem.rewards) - problem.costs
    most = -problem.space.support_minimum(-problem.rewards) - problem.costs
    return float(least.max()) - movement(policy), float(most.max())


def _multipliers(policy: RobustPolicy | PureRobustPolicy) -> FloatArray:
    if policy.multipliers_ is None:
        raise InputError(_TRUSTS)
    return policy.multipliers_


def _bound(
    policy: RobustPolicy | PureRobustPolicy,
    forecasts: FloatArray,
    weights: FloatArray,
    clusters: IntArray | None,
    error: float,
    method: str,
) -> tuple[float, float, str]:
    """Lower bound, estimate, and the method used."""
    low, high = pledge_range(policy)
    spread = spread_of_means(pledges(policy, forecasts), weights, high - low, clusters)
    if spread.n_units < 2:
        raise InputError("fresh must have at least two independent rows (or groups) to show how much they vary.")
    radius, used = mean_radius(spread, error, method)
    cost = penalty(policy)
    estimate = float(spread.means[0]) - cost
    return max(estimate - radius, low - cost), estimate, used


def _with_measured_slack(confidence: float, policy: RobustPolicy | PureRobustPolicy) -> float:
    if policy.slack_confidence_ is None:
        return confidence
    total = confidence + policy.slack_confidence_ - 1
    if total <= 0:
        raise InputError(
            f"the policy's slack holds with confidence {policy.slack_confidence_:g}, so together with confidence "
            f"{confidence:g} nothing is left; raise one of them."
        )
    return total


def _cross_fitted(
    policy: RobustPolicy | PureRobustPolicy,
    rows: Any,
    confidence: float,
    method: str,
    sample_weight: Any,
    groups: Any,
    cv: int,
    outcomes: Any,
) -> ConfidenceCertificate:
    """Certify each fold's policy on the fold that it has not seen; all bounds hold at once, so their mean does."""
    problem = require_problem(policy.problem)
    forecasts, _ = problem.space.place(rows, "fresh")
    n = len(forecasts)
    if groups is not None and Slack.read(policy.slack).audited:
        raise InputError(
            "groups cannot be combined with slack='audit' in cross-fitting: the slack of each fold would be measured "
            "as if rows were independent. Give the slack of an audit with groups, audit(...).centered_slack."
        )
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)) or not 2 <= cv <= n // 2:
        raise InputError(f"cv must be a whole number from 2 to half the number of rows, {n // 2}; got {cv!r}.")
    known = None if outcomes is None else problem.space.place_outcomes(outcomes)
    if known is not None and len(known) != n:
        raise InputError(f"outcomes must have one row per forecast, {n}; got {len(known)}.")
    forecasts, weights, clusters, used = _rows_with_weight(forecasts, sample_weight, groups)
    known = None if known is None else known[used]
    n = len(forecasts)
    units = np.arange(n) if clusters is None else clusters
    fitted, results, shares, levels, in_sample = [], [], [], [], []
    for held_out in np.array_split(np.random.default_rng(0).permutation(np.unique(units)), cv):
        inside = np.isin(units, held_out)
        share = float(weights[inside].sum())
        if share == 0 or share == 1:
            raise InputError("sample_weight must be positive in every fold and outside it; use a smaller cv.")
        part = clone(policy).fit(
            forecasts[~inside], None if known is None else known[~inside], sample_weight=weights[~inside]
        )
        own = None if clusters is None else np.unique(clusters[inside], return_inverse=True)[1].astype(np.int64)
        bound = _bound(part, forecasts[inside], weights[inside] / share, own, (1 - confidence) / cv, method)
        fitted.append(part)
        results.append(bound)
        shares.append(share)
        in_sample.append(part.value_)
        levels.append(part.slack_confidence_)
    total = confidence - sum(1 - level for level in levels if level is not None)
    if total <= 0:
        raise InputError(
            "the slack of every fold's policy is measured anew, which leaves no confidence; raise the policy's "
            "confidence or take fewer folds."
        )
    size = np.array(shares)
    return ConfidenceCertificate(
        float(size @ [result[0] for result in results]),
        total,
        float(size @ [result[1] for result in results]),
        float(size @ in_sample),
        f"{cv}-fold cross-fitting, " + "/".join(sorted({result[2] for result in results})),
        n,
        tuple(fitted),
        tuple(shares),
    )


def _rows_with_weight(
    forecasts: FloatArray, sample_weight: Any, groups: Any
) -> tuple[FloatArray, FloatArray, IntArray | None, Any]:
    """Leave out rows of weight zero: they are no evidence, and no units."""
    weights, used = row_weights(sample_weight, len(forecasts))
    clusters = None if groups is None else cluster_numbers(groups, len(forecasts))
    if clusters is not None:
        clusters = np.unique(clusters[used], return_inverse=True)[1].astype(np.int64)
    return forecasts[used], weights[used], clusters, used


def _refuse_fitted_rows(policy: RobustPolicy | PureRobustPolicy, forecasts: FloatArray) -> None:
    """Compare with a few rows that the policy was fitted on: forecasts with many digits do not occur twice."""
    fitted = getattr(policy, "fitted_rows_", None)
    if fitted is None or len(fitted) < _FEW:  # a policy from a file carries one row only
        return
    ours, theirs = np.unique(fitted, axis=0), np.unique(forecasts, axis=0)
    known = {row.tobytes() for row in theirs}
    if len(ours) < _DISTINCT * len(fitted) or len(theirs) < _DISTINCT * len(forecasts):
        # Forecasts repeat, as from a tree or with two digits: only all the same rows in the same order look wrong.
        same = len(forecasts) > 1 and np.array_equal(rows_to_recognise(forecasts), fitted)
    else:
        same = sum(row.tobytes() in known for row in ours) > _RECOGNISED * len(ours)
    if same:
        raise InputError(
            "fresh must be rows that the policy was not fitted on, and these are: on them the guarantee is "
            "optimistic, because they chose the policy. Split the rows before fitting, pass cv= for cross-fitting, "
            "or say assume_fresh=True if other rows merely have the same forecasts."
        )
