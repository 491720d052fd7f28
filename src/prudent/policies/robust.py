"""The minimax-optimal policies: mixed (the saddle) and the best deterministic rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.ambiguity import Ambiguity, Slack, build_ambiguity, first_rows
from prudent.arrays import FloatArray, probability, row_weights
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments import MomentEstimates
from prudent.policies.base import Policy, require_problem, require_salt
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, LocalGame, Solution, local_game, pure_actions, solve, solve_pure
from prudent.tables.columns import Columns

__all__ = ["PureRobustPolicy", "RobustPolicy", "fit_worlds", "rows_to_recognise"]


_ROWS_TO_RECOGNISE = 1_000
_FEW_CELLS = 256


class _TiltedPolicy(Policy):
    """A policy that plays a game tilted by multipliers of the guarantee's tests."""

    guarantee_: Guarantee
    multipliers_: FloatArray | None
    certificate_: Certificate
    moment_names_: tuple[str, ...]
    slack_: Slack
    tests_: EvaluatedTests
    slack_penalty_: float
    solution_: Solution

    def __init__(
        self,
        problem: DecisionProblem,
        guarantee: Guarantee,
        *,
        slack: Any = 0.0,
        confidence: float = 0.95,
        salt: str = "",
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.guarantee = guarantee
        self.slack = slack
        self.confidence = confidence
        self.salt = salt
        self.random_state = random_state

    @property
    def value_(self) -> float:
        """The guaranteed utility, ``certificate_.lower``."""
        check_is_fitted(self)
        return self.certificate_.lower

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
            on cells of it.
        y : array, optional
            Outcomes; used only where the slack is measured or centred at measured moments.
        sample_weight : array of shape (n,), optional
            Non-negative, not all zero.
        """
        if isinstance(X, Columns):
            return self._fit_table(X, y, sample_weight)
        everywhere, snapped = require_problem(self.problem).space.place(X, "forecasts")
        forecasts = everywhere
        if not isinstance(self.guarantee, Guarantee):
            raise InputError(
                f"guarantee must come from prudent.guarantees, such as SelfOrthogonal(); got {self.guarantee!r}."
            )
        confidence = probability(self.confidence, "confidence")
        require_salt(self.salt)
        weights, used = row_weights(sample_weight, len(forecasts))
        outcomes = self._outcomes(y, len(forecasts))
        every = bool(used.all())
        if not every:
            forecasts, weights = forecasts[used], weights[used]
            outcomes = None if outcomes is None else outcomes[used]
        guarantee = self.guarantee.resolve(forecasts, weights, self.problem.space)
        ambiguity = build_ambiguity(self.problem, guarantee, forecasts, weights, self.slack, outcomes, confidence)
        self._fit_worlds(guarantee, ambiguity, X, snapped)
        if not every:  # rows of weight zero are bound by nothing; they keep their forecast
            world = everywhere.copy()
            world[used] = self.solution_.beliefs
            self.solution_, self.fitted_rows_ = replace(self.solution_, beliefs=world), rows_to_recognise(everywhere)
        return self

    def _fit_known(
        self,
        X: Any,
        weights: FloatArray,
        outcomes: FloatArray,
        evaluate: Callable[[Guarantee], EvaluatedTests],
        estimate: Callable[[Guarantee, float], MomentEstimates],
    ) -> Self:
        """Fit as :meth:`fit` does, on rows of positive weight whose tests and moments somebody may know already."""
        forecasts, snapped = require_problem(self.problem).space.place(X, "forecasts")
        guarantee, slack = self.guarantee.resolve(forecasts, weights, self.problem.space), Slack.read(self.slack)
        ambiguity = build_ambiguity(
            self.problem,
            guarantee,
            forecasts,
            weights,
            slack,
            outcomes if slack.needs_outcomes else None,
            self.confidence,
            evaluate(guarantee),
            estimate(guarantee, self.confidence) if slack.audited else None,
        )
        return self._fit_worlds(guarantee, ambiguity, X, snapped)

    def _fit_worlds(self, guarantee: Guarantee, ambiguity: Ambiguity, X: Any, snapped: int = 0) -> Self:
        """Fit on worlds that were built before, under a resolved guarantee; ``X`` are the forecasts as they came."""
        game = Game.of_problem(self.problem)
        local = local_game(game)
        solution = self._solve(game, ambiguity, local)
        world = solution.beliefs
        if np.may_share_memory(world, ambiguity.forecasts):
            world = world.copy()
        # From here on nothing can fail: a fit that did leaves the policy as it was.
        self._remember(X, snapped)
        self.problem_, self.slack_, self.specified_ = self.problem, ambiguity.allowance, self.guarantee
        self.slack_penalty_ = 0.0
        if solution.multipliers is not None:
            self.slack_penalty_ = ambiguity.slack.support(solution.multipliers)
        self.guarantee_, self._local = guarantee, local
        flat = _with_unseen_regions(ambiguity, solution.multipliers)
        self.multipliers_ = None if flat is None else flat.reshape(ambiguity.tests.multiplier_shape)
        self.moment_names_ = ambiguity.tests.names
        self.solution_ = replace(solution, beliefs=world)
        self.tests_, self.fitted_rows_ = ambiguity.tests.without_rows(), rows_to_recognise(ambiguity.forecasts)
        self.certificate_ = self._with_confidence(solution.certificate)
        return self

    def _fit_table(self, X: Columns, y: Any, sample_weight: Any) -> Self:
        """Fit where the rows are; only sums over cells leave the engine."""
        from prudent.policies.from_tables import fit_table

        if y is not None or sample_weight is not None:
            raise InputError("outcomes and weights of a table are named in prudent.columns(); pass X alone.")
        if not isinstance(self.guarantee, Guarantee):
            raise InputError(
                f"guarantee must come from prudent.guarantees, such as SelfOrthogonal(); got {self.guarantee!r}."
            )
        require_salt(self.salt)
        confidence = probability(self.confidence, "confidence")
        pure = isinstance(self, PureRobustPolicy)
        fitted = fit_table(require_problem(self.problem), self.guarantee, X, self.slack, confidence, pure=pure)
        ambiguity, solution = fitted.ambiguity, fitted.solution
        self._remember(None, fitted.n_snapped)
        self.problem_, self.slack_, self.specified_ = self.problem, ambiguity.allowance, self.guarantee
        self.slack_penalty_ = 0.0
        if solution.multipliers is not None:
            self.slack_penalty_ = fitted.slack.support(solution.multipliers)
        self.guarantee_, self._local = fitted.guarantee, local_game(Game.of_problem(self.problem))
        flat = _with_unseen_regions(ambiguity, solution.multipliers)
        self.multipliers_ = None if flat is None else flat.reshape(ambiguity.tests.multiplier_shape)
        self.moment_names_ = ambiguity.tests.names
        self.solution_ = solution
        self.tests_, self.fitted_rows_ = ambiguity.tests.without_rows(), fitted.some_rows
        self.certificate_ = self._with_confidence(solution.certificate)
        return self

    def _with_confidence(self, certificate: Certificate) -> Certificate:
        """Say where the slack is a measurement."""
        confidence = self.slack_.confidence
        if confidence is None or not self.moment_names_:
            return certificate
        note = f" The slack was measured and holds with confidence {100 * confidence:g}%."
        return replace(certificate, message=certificate.message + note)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")

    def tilts(self, X: Any) -> FloatArray:
        """Return the tilt ``s(v) = h(v) @ multipliers_`` of the game that is played at each forecast, ``(n, d)``."""
        tilts = self._tilts(self._place(X))
        if tilts is None:
            raise InputError("a policy for FullyCalibrated has no multipliers, so its game is not tilted.")
        return tilts

    def worst_case_belief(self, X: Any) -> FloatArray:
        """Return, for each forecast, a belief that minimises ``val(p) + s(v).p``.

        A pointwise minimiser; the worst world of the fitting sample, whose
        moments are right, is ``solution_.beliefs``.
        """
        return self._beliefs(self._place(X))

    def _beliefs(self, forecasts: FloatArray) -> FloatArray:
        tilts = self._tilts(forecasts)
        return forecasts.copy() if tilts is None else self._local.beliefs(tilts)

    def _outcomes(self, y: Any, n: int) -> FloatArray | None:
        if not Slack.read(self.slack).needs_outcomes:
            return None
        if y is None:
            raise InputError("slack that is measured (slack='audit', center='measured') needs outcomes: pass y to fit.")
        outcomes = self.problem.space.place_outcomes(y)
        if len(outcomes) != n:
            raise InputError(f"outcomes must have one row per forecast, {n}; got {len(outcomes)}.")
        return outcomes

    def _tilts(self, forecasts: FloatArray) -> FloatArray | None:
        if self.multipliers_ is None:
            return None
        return self.guarantee_.evaluate(forecasts, self._problem.space).tilts(self.multipliers_)

    def _mixtures(self, forecasts: FloatArray) -> FloatArray:
        return self._in_chunks(lambda part: self._played(part, self._tilts(part)), forecasts)

    def _play_tested(self, forecasts: FloatArray, tests: EvaluatedTests) -> FloatArray:
        """Play at validated forecasts at which the guarantee was evaluated before; as ``predict_proba`` does."""
        multipliers = self.multipliers_
        if multipliers is None:
            return self._mixtures(forecasts)
        if tests.cells is not None and tests.cells[0] <= _FEW_CELLS:
            count, index = tests.cells
            some = first_rows(index, count)
            tilts = tests.take(some).tilts(multipliers)
            if self._settled(tilts):  # rows with equal tests are played alike
                return self._played(forecasts[some], tilts).take(index, axis=0)
        return self._in_parts(
            lambda part: self._played(forecasts[part], tests.take(part).tilts(multipliers)), len(forecasts)
        )

    def _played(self, forecasts: FloatArray, tilts: FloatArray | None) -> FloatArray:
        raise AssertionError("every robust policy defines what it plays")

    def _settled(self, tilts: FloatArray) -> bool:
        """True if what is played at these tilts is the same whatever the forecast."""
        raise AssertionError("every robust policy knows whether its game leaves ties to the forecast")

    def _solve(self, game: Game, ambiguity: Ambiguity, local: LocalGame) -> Solution:
        raise AssertionError("every robust policy defines its solver")


class RobustPolicy(_TiltedPolicy):
    """The policy with the highest expected utility in the worst world that a guarantee allows.

    It plays the maximin mixture of the game tilted by ``s(v) = h(v) @ multipliers_``.

    Parameters
    ----------
    problem : DecisionProblem
    guarantee : Guarantee
        What the forecaster promises, from ``prudent.guarantees``.
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

    def _solve(self, game: Game, ambiguity: Ambiguity, local: LocalGame) -> Solution:
        return solve(game, ambiguity, local)

    def _played(self, forecasts: FloatArray, tilts: FloatArray | None) -> FloatArray:
        if tilts is None:
            best = self._problem.best_actions(forecasts)
            return np.eye(self._problem.n_actions).take(best, axis=0)
        return self._local.mixtures(tilts, forecasts)

    def _settled(self, tilts: FloatArray) -> bool:
        return self._local.settled(tilts)


class PureRobustPolicy(_TiltedPolicy):
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

    def _solve(self, game: Game, ambiguity: Ambiguity, local: LocalGame) -> Solution:
        return solve_pure(game, ambiguity, solve(game, ambiguity, local))

    def _played(self, forecasts: FloatArray, tilts: FloatArray | None) -> FloatArray:
        if tilts is None:
            best = self._problem.best_actions(forecasts)
        else:
            best = pure_actions(Game.of_problem(self._problem), tilts)
        return np.eye(self._problem.n_actions).take(best, axis=0)

    def _settled(self, tilts: FloatArray) -> bool:  # actions depend on tilts alone
        return True


def fit_worlds(problem: DecisionProblem, guarantee: Guarantee, ambiguity: Ambiguity) -> RobustPolicy:
    """Fit the mixed policy on worlds that were built before, under a resolved guarantee."""
    policy = RobustPolicy(problem, guarantee, slack=ambiguity.allowance)
    return policy._fit_worlds(guarantee, ambiguity, ambiguity.forecasts)


def rows_to_recognise(forecasts: FloatArray) -> FloatArray:
    """Copy a few evenly spaced rows, to tell later whether rows are those of the fit."""
    return forecasts[:: max(1, -(-len(forecasts) // _ROWS_TO_RECOGNISE))].copy()


def _with_unseen_regions(ambiguity: Ambiguity, multipliers: FloatArray | None) -> FloatArray | None:
    """Let decision regions without rows keep ``-r_a``: nothing on the sample changes, and there one best responds."""
    known = ambiguity.plug_in_multipliers
    if multipliers is None or known is None:
        return multipliers
    return np.where(ambiguity.tests.seen, multipliers, known)
