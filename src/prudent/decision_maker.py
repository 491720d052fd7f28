"""Features in, actions out: a model, advice about its forecasts, and the rule that is advised, as one estimator."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from prudent.advice import Advice, advise
from prudent.advice.advising import require_fallback
from prudent.advice.past_cases import require_choices
from prudent.arrays import AnyArray, FloatArray, cluster_numbers, non_negative, probability, row_weights
from prudent.cases.cases import Cases, in_time
from prudent.errors import InputError
from prudent.policies import Policy, RobustPolicy, require_problem
from prudent.policies.horizons import given_own
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator
from prudent.recalibration.forecaster import CalibratedForecaster, ModelForecasts


class RobustDecisionMaker(ModelForecasts):
    """Features in, actions out: follow the model, or repair its forecasts first where that is proven to earn more.

    Every row is forecast by a model that has not seen it (cross-fitting). Advice is taken on these forecasts
    (:func:`prudent.advise`), and the model is fitted again on all rows for the decisions to come.

    Parameters
    ----------
    estimator : classifier or regressor
        Forecasts are ``predict_proba`` or ``predict``. A ``FrozenEstimator`` is left as it is: give it rows that it has
        not seen.
    problem : DecisionProblem
        On the Simplex for classifiers; with two classes also on one coordinate, the probability of the second. On a
        Box for regressors; on a grid for both, with outcomes in their own units.
    policy : Policy, optional
        Instead of advice: it is cloned and fitted on the cross-fitted forecasts. ``PlugInPolicy(problem)`` follows the
        forecast, whatever the evidence; a :class:`RobustPolicy` hedges.
    recalibrator : "auto", Recalibrator or None
        "auto" considers the usual recalibrations; None considers nothing but the menu. One that is given is always
        applied, fitted within each fold, and advice is taken on its output.
    menu, against, tolerance, confidence, fallback
        As in :func:`prudent.advise`; ``against`` must be a policy.
    cv : int or splitter
        Folds; each row is held out at most once. Rows that never are, as the first ones of ``TimeSeriesSplit``, are
        forecast by no model that has not seen them, and take no part in the advice.
    outside : {"refuse", "clip"}
        What to do with forecasts of a regressor outside the outcome space; clipped ones are counted.
    residual_bins : int
        Where a regressor forecasts a number on a grid (``DecisionProblem.from_utility``), its cross-fitted residuals
        make it a distribution: those of forecasts in the same one of so many quantile bins.

    Attributes
    ----------
    advice_ : Advice or None
        None where a policy was given.
    policy_ : Policy
        What is played, on the model's forecasts.
    certificate_
        Of the advice, or of the policy; None if it has none.
    forecasts_ : array of shape (n, d)
        Cross-fitted, in the order of the rows; NaN for rows that were never held out.
    estimator_ : the model, fitted on all rows
    classes_ : array
        Of a classifier.
    n_clipped_ : int

    Examples
    --------
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> features, labels = load_iris(return_X_y=True)
    >>> problem = prudent.DecisionProblem.from_payoffs(
    ...     [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]], actions=["setosa", "versicolor", "virginica", "ask"])
    >>> maker = prudent.RobustDecisionMaker(LogisticRegression(max_iter=1000), problem).fit(features, labels)
    >>> maker.advice_.verdict.kind.value
    'not_enough_data'
    >>> maker.predict(features[:2]).tolist()
    ['setosa', 'setosa']
    """

    def __init__(
        self,
        estimator: Any,
        problem: DecisionProblem,
        *,
        policy: Policy | None = None,
        recalibrator: Any = "auto",
        menu: Any = (),
        against: Policy | None = None,
        confidence: float = 0.95,
        tolerance: float | None = None,
        fallback: str = "rule in use",
        cv: Any = 5,
        outside: str = "refuse",
        residual_bins: int = 1,
    ) -> None:
        self.estimator = estimator
        self.problem = problem
        self.policy = policy
        self.recalibrator = recalibrator
        self.menu = menu
        self.against = against
        self.confidence = confidence
        self.tolerance = tolerance
        self.fallback = fallback
        self.cv = cv
        self.outside = outside
        self.residual_bins = residual_bins

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        periods: Any = None,
        rewards: Any = None,
        costs: Any = None,
    ) -> Self:
        """Fit the model, and take advice on its cross-fitted forecasts.

        Parameters
        ----------
        X : features, one row per case
        y : classes or numbers
        sample_weight : array of shape (n,), optional
            For the advice, and for the model where it takes weights.
        groups : array of shape (n,), optional
            For a splitter that keeps groups of rows together.
        periods : array of shape (n,), optional
            Day, month, site: rows of one period depend on each other. Folds hold whole periods in the order of their
            values, and so does ``TimeSeriesSplit``.
        rewards : array of shape (n, m, d), or (n, m) where d = 1, optional
        costs : array of shape (n, m), optional
            Of every row, where each case has its own.
        """
        self._check(y, rewards, costs)
        self._set_output(self.estimator, y, self.problem.space)
        forecaster = self.estimator
        if isinstance(self.recalibrator, Recalibrator):
            recalibrator = self.recalibrator.for_space(self.problem.space)
            forecaster = CalibratedForecaster(forecaster, recalibrator, cv=self.cv, outside=self.outside)
        places = None
        if periods is not None:
            cluster_numbers(periods, len(y))  # refuses rows without a period
            places = in_time(periods)[1]
        forecasts, known = self._fit_model(forecaster, X, y, sample_weight, groups, places)
        weights, units = (None if each is None else np.asarray(each)[known] for each in (sample_weight, places))
        cases = Cases(forecasts[known], self._outcomes(y)[known], weights=weights, periods=units)
        own = given_own(rewards, costs)
        if own:
            tables = self.problem.of_rows(len(known), rewards, costs)
            own = {name: table[known] for name, table in zip(("rewards", "costs"), tables, strict=True) if name in own}
        self.advice_: Advice | None = None
        self.certificate_: Any
        if self.policy is None:
            self.advice_ = advise(
                self.problem,
                cases,
                against=self.against,
                menu=self.menu,
                usual=self.recalibrator is not None,
                confidence=self.confidence,
                tolerance=self.tolerance,
                fallback=self.fallback,
                **own,
            )
            self.policy_, self.certificate_ = self.advice_.policy, self.advice_.certificate
        else:
            self.policy_ = clone(self.policy).fit(cases, **(own if isinstance(self.policy, RobustPolicy) else {}))
            self.certificate_ = getattr(self.policy_, "certificate_", None)
        self.forecasts_ = forecasts
        return self

    def _check(self, y: Any, rewards: Any, costs: Any) -> None:
        """Refuse what is invalid before any model is fitted."""
        problem = require_problem(self.problem)
        if y is None:
            raise InputError("y must be given: requires y to be passed, but the target y is None.")
        for name, policy in (("policy", self.policy), ("against", self.against)):
            if policy is not None and (not isinstance(policy, Policy) or require_problem(policy.problem) != problem):
                raise InputError(f"{name} must be a policy for the same problem; got {policy!r}.")
        if isinstance(self.policy, RobustPolicy):
            self.policy.require_parameters()
        kind = self.recalibrator
        if kind is not None and not isinstance(kind, Recalibrator) and kind != "auto":
            raise InputError(f"recalibrator must be 'auto', a Recalibrator or None; got {kind!r}.")
        require_choices(self.menu)
        require_fallback(self.fallback)
        probability(self.confidence, "confidence")
        if self.tolerance is not None:
            non_negative(self.tolerance, "tolerance")
        if rewards is not None or costs is not None:
            problem.of_rows(len(y), rewards, costs)

    def decide_proba(self, X: Any, *, rewards: Any = None, costs: Any = None) -> FloatArray:
        """Return the mixture over actions that is played at each row, ``(n, m)``."""
        forecasts = self.forecast(X)  # first: it says what is wrong where nothing was fitted
        return self.policy_.predict_proba(forecasts, **given_own(rewards, costs))

    def predict(self, X: Any, keys: Any = None, *, rewards: Any = None, costs: Any = None) -> AnyArray:
        """Draw one action label per row; with ``keys`` the same on every machine."""
        forecasts = self.forecast(X)
        return self.policy_.predict(forecasts, keys, **given_own(rewards, costs))

    def score(self, X: Any, y: Any, *, sample_weight: Any = None, rewards: Any = None, costs: Any = None) -> float:
        """Return the realised mean utility, expected over the mixtures that are played."""
        mixtures = self.decide_proba(X, rewards=rewards, costs=costs)
        outcomes = self._outcomes(y)
        if len(outcomes) != len(mixtures):
            raise InputError(f"y must have one row per row of X, {len(mixtures)}; got {len(outcomes)}.")
        weights, _ = row_weights(sample_weight, len(outcomes))
        utilities = self.problem.utilities_of_rows(outcomes, rewards, costs)
        return float(weights @ (utilities * mixtures).sum(axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.target_tags.required = True
        return tags
