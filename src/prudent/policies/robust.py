"""The minimax-optimal policies: mixed (the saddle) and the best deterministic rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, frozen, probability, row_weights
from prudent.cases.ambiguity import Ambiguity, build_ambiguity, first_rows
from prudent.cases.scan import Columns
from prudent.errors import InputError
from prudent.guarantees import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.names import read_guarantee
from prudent.policies.base import Policy, require_problem, require_salt
from prudent.problem import DecisionProblem
from prudent.slack import Slack, SlackSet
from prudent.solvers import Certificate, Game, Solution, local_game, pure_actions, solve, solve_pure

_MANY_ROWS = 4_096
_FEW_CELLS = 256


class ForGuarantee(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Parameters of policies that are fitted for a guarantee, and how they read a sample."""

    certificate_: Certificate
    slack_: Slack

    def __init__(
        self,
        problem: DecisionProblem,
        guarantee: Guarantee | str,
        *,
        slack: Any = 0.0,
        confidence: float = 0.95,
        salt: str = "",
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.guarantee: Any = guarantee
        self.slack = slack
        self.confidence = confidence
        self.salt = salt
        self.random_state = random_state

    @property
    def value_(self) -> float:
        """The guaranteed utility, ``certificate_.lower``."""
        check_is_fitted(self)
        return self.certificate_.lower

    def _checked(self) -> float:
        """Check the parameters; return the confidence."""
        require_problem(self.problem)
        self._specified()
        require_salt(self.salt)
        return probability(self.confidence, "confidence")

    def _specified(self) -> Guarantee:
        """Return the guarantee, which may be given by name."""
        return read_guarantee(self.guarantee, self.problem)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> WeightedSample:
        """Read a sample; the parameters are checked before it."""
        confidence = self._checked()
        given = self._specified(), X, self.slack, y, sample_weight, confidence
        return read_sample(self.problem, *given, missing=": pass y to fit")

    def _with_confidence(self, certificate: Certificate) -> Certificate:
        """Say where the slack is a measurement."""
        if self.slack_.confidence is None:
            return certificate
        note = f" The slack was measured and holds with confidence {100 * self.slack_.confidence:g}%."
        return replace(certificate, message=certificate.message + note)


@frozen
class WeightedSample:
    """All forecasts on the space, with weights; which rows have any; and the worlds allowed on those."""

    forecasts: FloatArray
    snapped: int
    weights: FloatArray
    used: Any
    guarantee: Guarantee
    ambiguity: Ambiguity


def read_sample(
    problem: DecisionProblem,
    guarantee: Guarantee,
    X: Any,
    slack: Any,
    outcomes: Any,
    sample_weight: Any,
    confidence: float,
    *,
    missing: str = "",
) -> WeightedSample:
    """Place a sample and find the worlds that the guarantee allows on its rows of positive weight.

    ``missing`` says where outcomes are to be given.
    """
    forecasts, snapped = problem.space.place(X, "forecasts")
    weights, positive = row_weights(sample_weight, len(forecasts))
    used: Any = slice(None) if positive.all() else positive
    known = None
    if Slack.read(slack).needs_outcomes:
        if outcomes is None:
            raise InputError(f"slack that is measured (slack='audit', center='measured') needs outcomes{missing}.")
        known = problem.space.place_outcome_of_each(outcomes, len(forecasts))[used]
    resolved = guarantee.resolve(forecasts[used], weights[used], problem.space)
    ambiguity = build_ambiguity(problem, resolved, forecasts[used], weights[used], slack, known, confidence)
    return WeightedSample(forecasts, snapped, weights, used, resolved, ambiguity)


class TiltedPolicy(ForGuarantee, Policy):
    """A policy that plays a game tilted by multipliers of the guarantee's tests."""

    guarantee_: Guarantee
    multipliers_: FloatArray | None
    moment_names_: tuple[str, ...]
    tests_: EvaluatedTests
    slack_penalty_: float
    solution_: Solution

    @property
    def slack_confidence_(self) -> float | None:
        """Confidence with which measured slack holds; None for slack that was given."""
        check_is_fitted(self)
        return self.slack_.confidence

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Find the optimal policy for a sample of forecasts.

        Parameters
        ----------
        X : array of shape (n,) or (n, d), or Columns
            Forecasts. A lazy table (:func:`prudent.columns`) stays in its engine; ``solution_.beliefs`` is then a world
            on clusters of its rows.
        y : array, optional
            Outcomes; used only where the slack is measured or centred at measured moments.
        sample_weight : array of shape (n,), optional
            Non-negative, not all zero.
        """
        if isinstance(X, Columns):
            from prudent.policies.from_tables import fit_table

            if y is not None or sample_weight is not None:
                raise InputError("outcomes and weights of a table are named in prudent.columns(); pass X alone.")
            fit_table(self, X, self._checked())  # only sums over clusters leave the engine
            return self
        read = self._read(X, y, sample_weight)
        self.fit_worlds(read.guarantee, read.ambiguity, X, read.snapped)
        if len(read.forecasts) != read.ambiguity.n_rows:  # rows without weight are bound by nothing: they stay
            world = read.forecasts.copy()
            world[read.used] = self.solution_.beliefs
            self.solution_, self.fitted_rows_ = (
                replace(self.solution_, beliefs=world),
                rows_to_recognise(read.forecasts),
            )
        return self

    def fit_worlds(self, guarantee: Guarantee, ambiguity: Ambiguity, X: Any, snapped: int = 0) -> Self:
        """Fit on the worlds that a resolved guarantee allows; ``X`` are the forecasts as given, for column names."""
        solution = self._solve(ambiguity)
        if np.may_share_memory(solution.beliefs, ambiguity.forecasts):
            solution = replace(solution, beliefs=solution.beliefs.copy())
        rows = rows_to_recognise(ambiguity.forecasts)
        self._keep(guarantee, ambiguity, ambiguity.slack, solution, rows, X, snapped)
        return self

    def _keep(
        self,
        guarantee: Guarantee,
        ambiguity: Ambiguity,
        slack: SlackSet,
        solution: Solution,
        rows: FloatArray,
        X: Any,
        snapped: int,
    ) -> None:
        """Set everything that a fit finds. Nothing here can fail: a fit that did leaves the policy as it was."""
        self._remember(X, snapped)
        self.problem_, self.slack_, self.specified_ = self.problem, ambiguity.allowance, self._specified()
        self.guarantee_, self._local = guarantee, local_game(Game.of_problem(self.problem))
        self.slack_penalty_, self.multipliers_ = 0.0, None
        if solution.multipliers is not None:
            self.slack_penalty_ = slack.support(solution.multipliers)
            flat = _with_unseen_regions(ambiguity, solution.multipliers)
            self.multipliers_ = flat.reshape(ambiguity.tests.multiplier_shape)
        self.moment_names_, self.tests_ = ambiguity.tests.names, ambiguity.tests.without_rows()
        self.solution_, self.fitted_rows_ = solution, rows
        self.certificate_ = solution.certificate
        if self.moment_names_:
            self.certificate_ = self._with_confidence(solution.certificate)

    def tilts(self, X: Any) -> FloatArray:
        """Return the tilt ``s(v) = h(v) @ multipliers_`` of the game that is played at each forecast, ``(n, d)``."""
        tilts = self._tilts(self._place(X))
        if tilts is None:
            raise InputError("a policy for FullyCalibrated has no multipliers, so its game is not tilted.")
        return tilts

    def _beliefs(self, forecasts: FloatArray) -> FloatArray:
        tilts = self._tilts(forecasts)
        return forecasts.copy() if tilts is None else self._local.beliefs(tilts)

    def _tilts(self, forecasts: FloatArray) -> FloatArray | None:
        if self.multipliers_ is None:
            return None
        return self.guarantee_.evaluate(forecasts, self._problem.space).tilts(self.multipliers_)

    def _mixtures(self, forecasts: FloatArray) -> FloatArray:
        return self._in_chunks(self._play, forecasts)

    def _play(self, forecasts: FloatArray) -> FloatArray:
        """Play at some forecasts; where many have equal tests, once for each group of equal ones."""
        multipliers = self.multipliers_
        if multipliers is None:
            return self._problem.best_mixtures(forecasts)
        tests = self.guarantee_.evaluate(forecasts, self._problem.space)
        if len(forecasts) >= _MANY_ROWS and tests.cells is not None and tests.cells[0] <= _FEW_CELLS:
            count, index = tests.cells
            some = first_rows(index, count)
            tilts = tests.take(some).tilts(multipliers)
            if self._settled(tilts):
                return self._played(forecasts[some], tilts).take(index, axis=0)
        return self._played(forecasts, tests.tilts(multipliers))

    def _played(self, forecasts: FloatArray, tilts: FloatArray) -> FloatArray:
        raise AssertionError("every robust policy defines what it plays")

    def _settled(self, tilts: FloatArray) -> bool:
        """True if what is played at these tilts is the same whatever the forecast."""
        raise AssertionError("every robust policy knows whether its game leaves ties to the forecast")

    def _solve(self, ambiguity: Ambiguity) -> Solution:
        raise AssertionError("every robust policy defines its solver")


class RobustPolicy(TiltedPolicy):
    """The policy with the highest expected utility in the worst world that a guarantee allows.

    It plays the maximin mixture of the game tilted by ``s(v) = h(v) @ multipliers_``.

    Parameters
    ----------
    problem : DecisionProblem
    guarantee : Guarantee or str
        What the forecaster promises, from ``prudent.guarantees``, or its name: "self-orthogonal", "bins:10",
        "unbiased+polynomial:2".
    slack : float, array, Slack or "audit"
        How far the promise may be off; zero is exact. "audit" measures it on the outcomes given to ``fit``, around
        zero; ``Slack("audit", center="measured")`` around the measured moments, which is the smaller set.
    confidence : float
        Confidence level, between 0 and 1, of slack that is measured; slack given as numbers does not use it.
    salt : str
        Mixed into keyed draws, so that two policies draw independently.
    random_state : int, RandomState or None
        For draws without keys.

    Attributes
    ----------
    certificate_ : Certificate
        On the fitting sample: ``lower``, ``upper``, ``gap``, ``status``, ``message``.
    value_ : float
        ``certificate_.lower``, what is guaranteed.
    multipliers_ : array of shape (k, d) or (K,), or None
        Of the unscaled tests; None under full calibration.
    moment_names_ : tuple of str
    guarantee_ : Guarantee
        With everything fixed that depends on the sample.
    solution_ : Solution
        Holds the worst world of the sample, ``solution_.beliefs``.
    slack_ : Slack
        In numbers, also where it was measured.
    tests_ : EvaluatedTests
        Names, scales and bounds of the tests, without rows.
    fitted_rows_ : array
        A few of the forecasts, evenly spaced, by which rows that were fitted on are recognised.
    slack_penalty_ : float
        What slack costs: its support function at the multipliers that were found.
    slack_confidence_ : float or None
        Confidence with which measured slack holds; None for slack that was given.
    n_snapped_ : int
        Rows moved onto the space by at most 1e-6 of its width.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(1000) + 0.5) / 1000
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal()).fit(forecasts)
    >>> round(policy.value_, 4)   # 1 - 1/sqrt(6)
    0.5918
    """

    @property
    def deterministic(self) -> bool:
        """True under full calibration, where best responding is optimal."""
        check_is_fitted(self)
        return self.multipliers_ is None

    def _solve(self, ambiguity: Ambiguity) -> Solution:
        return solve(Game.of_problem(self.problem), ambiguity)

    def _played(self, forecasts: FloatArray, tilts: FloatArray) -> FloatArray:
        return self._local.mixtures(tilts, forecasts)

    def _settled(self, tilts: FloatArray) -> bool:
        return self._local.settled(tilts)


class PureRobustPolicy(TiltedPolicy):
    """The best deterministic rule for what a guarantee allows.

    For those who may not randomise. ``certificate_.lower`` is what the rule
    guarantees, ``certificate_.upper`` what the best mixed policy does; the
    status says whether the rule is proven best among deterministic ones.
    Parameters and attributes are those of :class:`RobustPolicy`.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(1000) + 0.5) / 1000
    >>> policy = prudent.PureRobustPolicy(problem, prudent.guarantees.SelfOrthogonal()).fit(forecasts)
    >>> round(policy.value_, 4)   # 1 - 1/sqrt(3)
    0.4226
    """

    @property
    def deterministic(self) -> bool:
        """True: every forecast has one action."""
        return True

    def _solve(self, ambiguity: Ambiguity) -> Solution:
        game = Game.of_problem(self.problem)
        return solve_pure(game, ambiguity, solve(game, ambiguity))

    def _played(self, forecasts: FloatArray, tilts: FloatArray) -> FloatArray:
        best = pure_actions(Game.of_problem(self._problem), tilts)
        return np.eye(self._problem.n_actions).take(best, axis=0)

    def _settled(self, tilts: FloatArray) -> bool:  # actions depend on tilts alone
        return True


def require_robust(policy: Any) -> None:
    """Check that an argument is a policy with multipliers of a guarantee."""
    if not isinstance(policy, TiltedPolicy):
        raise InputError(f"policy must be a RobustPolicy or PureRobustPolicy; got {type(policy).__name__}.")


def rows_to_recognise(forecasts: FloatArray) -> FloatArray:
    """Copy a few evenly spaced rows, to tell later whether rows are those of the fit."""
    return forecasts[:: max(1, -(-len(forecasts) // 1_000))].copy()


def _with_unseen_regions(ambiguity: Ambiguity, multipliers: FloatArray) -> FloatArray:
    """Let decision regions without rows keep ``-r_a``: nothing on the sample changes, and there one best responds."""
    known = ambiguity.plug_in_multipliers
    return multipliers if known is None else np.where(ambiguity.tests.seen, multipliers, known)
