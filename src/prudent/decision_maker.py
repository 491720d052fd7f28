"""Features in, actions out: a model, what it guarantees, and the robust policy as one estimator."""

from typing import Any, Self

import numpy as np
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from prudent.arrays import AnyArray, FloatArray, probability, row_weights, truth
from prudent.cases.cases import Cases
from prudent.errors import InputError
from prudent.evidence.audits import Audit, audit
from prudent.evidence.ladder import GuaranteeLadder, guarantee_ladder
from prudent.guarantees.names import read_guarantee
from prudent.policies import RobustPolicy, require_problem
from prudent.problem import DecisionProblem
from prudent.recalibration.forecaster import CalibratedForecaster, ModelForecasts, fit_weights
from prudent.slack import Slack


class RobustDecisionMaker(ModelForecasts):
    """Features in, actions out: as much trust in the model as its audited calibration deserves.

    Every row is forecast by a model that has not seen it (cross-fitting). These
    forecasts are audited, the robust policy is fitted on them, and the model
    is fitted again on all rows for the decisions to come.

    Parameters
    ----------
    estimator : classifier or regressor
        Forecasts are ``predict_proba`` or ``predict``. A ``FrozenEstimator`` is left as it is: give it rows that it has
        not seen.
    problem : DecisionProblem
        On the Simplex for classifiers; with two classes also on one coordinate, the probability of the second. On a
        Box for regressors.
    guarantee : "auto" or Guarantee
        "auto" takes the guarantee of :func:`prudent.guarantee_ladder` with the highest utility guaranteed under its
        audited slack.
    recalibrator : Recalibrator, optional
        Applied to the model's forecasts; fitted within each fold.
    slack : "audit", or as in RobustPolicy
        "auto" guarantees need "audit".
    confidence : float
        Of the audited slack.
    cv : int or splitter
        Folds; each row must be held out once.
    randomize : bool
        False for the best deterministic rule instead of the mixed policy.
    outside : {"refuse", "clip"}
        What to do with forecasts of a regressor outside the outcome space; clipped ones are counted.
    salt, random_state
        For draws, as in RobustPolicy.

    Attributes
    ----------
    policy_ : RobustPolicy
    certificate_ : Certificate
        For the cross-fitted forecasts of the fitting rows.
    audit_ : Audit
        Of the guarantee on the cross-fitted forecasts; where it was chosen among several, at the confidence that each
        of them needs for all to hold at once.
    ladder_ : GuaranteeLadder or None
        With ``guarantee="auto"``.
    forecasts_ : array of shape (n, d)
        Cross-fitted, in the order of the rows.
    estimator_ : the model, fitted on all rows
    guarantee_ : Guarantee
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
    >>> maker.decide_proba(features[:2]).shape
    (2, 4)
    """

    def __init__(
        self,
        estimator: Any,
        problem: DecisionProblem,
        *,
        guarantee: Any = "auto",
        recalibrator: Any = None,
        slack: Any = "audit",
        confidence: float = 0.95,
        cv: Any = 5,
        randomize: bool = True,
        outside: str = "refuse",
        salt: str = "",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.problem = problem
        self.guarantee = guarantee
        self.recalibrator = recalibrator
        self.slack = slack
        self.confidence = confidence
        self.cv = cv
        self.randomize = randomize
        self.outside = outside
        self.salt = salt
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        rewards: Any = None,
        costs: Any = None,
        **params: Any,
    ) -> Self:
        """Fit model, audit and policy.

        Parameters
        ----------
        X : features, one row per case
        y : classes or numbers
        sample_weight : array of shape (n,), optional
            For the policy and the audit, and for the model where it takes weights.
        rewards : array of shape (n, m, d), or (n, m) where d = 1, optional
        costs : array of shape (n, m), optional
            Of every row, where each case has its own; the guarantee must then be named.
        **params
            Metadata for the estimator or the splitter, such as ``groups``, if metadata routing is enabled.
        """
        problem = require_problem(self.problem)
        if y is None:
            raise InputError("y must be given: requires y to be passed, but the target y is None.")
        # What is invalid is refused before any model is fitted.
        automatic, slack = isinstance(self.guarantee, str) and self.guarantee == "auto", Slack.read(self.slack)
        if automatic and not slack.audited:
            raise InputError(
                f"slack must be 'audit' with guarantee='auto', which compares guarantees by their audited slack; got "
                f"{self.slack!r}. Name a guarantee to use this slack."
            )
        if rewards is not None or costs is not None:
            if automatic:
                raise InputError("guarantee must be named where rows have rewards or costs of their own; got 'auto'.")
            problem.of_rows(len(y), rewards, costs)
        guarantee = None if automatic else read_guarantee(self.guarantee, problem)
        probability(self.confidence, "confidence")
        truth(self.randomize, "randomize")
        forecaster = self.estimator
        if self.recalibrator is not None:
            folds = int(self.cv) if isinstance(self.cv, (int, np.integer)) else 5
            forecaster = CalibratedForecaster(forecaster, self.recalibrator, cv=folds, outside=self.outside)
        routed = self._routed(forecaster, sample_weight, params)
        self._set_output(self.estimator, y, problem.space)
        forecasts = self._fit_model(forecaster, X, y, routed.estimator.fit, routed.splitter.split)
        outcomes, ladder = self._outcomes(y), None
        cases, level = Cases(forecasts, outcomes, weights=sample_weight), self.confidence
        if guarantee is None:
            ladder = guarantee_ladder(problem, cases, confidence=level)
            guarantee, slack, level = ladder.best.guarantee, ladder.best.policy.slack_, ladder.rung_confidence
        policy = RobustPolicy(
            problem,
            guarantee,
            randomize=self.randomize,
            slack=slack,
            confidence=self.confidence,
            salt=self.salt,
            random_state=self.random_state,
        ).fit(cases, rewards=rewards, costs=costs)
        self.audit_: Audit = audit(problem, cases, guarantee=policy.guarantee_, confidence=level)
        self.ladder_: GuaranteeLadder | None = ladder
        self.policy_, self.forecasts_ = policy, forecasts
        self.guarantee_, self.certificate_ = policy.guarantee_, policy.certificate_
        return self

    def decide_proba(self, X: Any, *, rewards: Any = None, costs: Any = None) -> FloatArray:
        """Return the mixture over actions that is played at each row, ``(n, m)``."""
        forecasts = self.forecast(X)  # first: it says what is wrong where nothing was fitted
        return self.policy_.predict_proba(forecasts, rewards=rewards, costs=costs)

    def predict(self, X: Any, keys: Any = None, *, rewards: Any = None, costs: Any = None) -> AnyArray:
        """Draw one action label per row; with ``keys`` the same on every machine."""
        forecasts = self.forecast(X)
        return self.policy_.predict(forecasts, keys, rewards=rewards, costs=costs)

    def score(self, X: Any, y: Any, *, sample_weight: Any = None, rewards: Any = None, costs: Any = None) -> float:
        """Return the realised mean utility, expected over the mixtures that are played."""
        mixtures = self.decide_proba(X, rewards=rewards, costs=costs)
        outcomes = self._outcomes(y)
        if len(outcomes) != len(mixtures):
            raise InputError(f"y must have one row per row of X, {len(mixtures)}; got {len(outcomes)}.")
        weights, _ = row_weights(sample_weight, len(outcomes))
        own_rewards, own_costs = self.problem.of_rows(len(outcomes), rewards, costs)
        utilities = np.einsum("nmd,nd->nm", own_rewards, outcomes) - own_costs
        return float(weights @ (utilities * mixtures).sum(axis=1))

    def get_metadata_routing(self) -> MetadataRouter:
        """Say where metadata of ``fit`` may go: to the estimator, to the splitter, or to this object."""
        from sklearn.model_selection import check_cv  # late, as below: keeps `import prudent` fast

        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def _routed(self, forecaster: Any, sample_weight: Any, params: dict[str, Any]) -> Bunch:
        if _routing_enabled():
            if sample_weight is not None:
                params = {**params, "sample_weight": sample_weight}
            return process_routing(self, "fit", **params)
        _raise_for_params(params, self, "fit")
        return Bunch(estimator=Bunch(fit=fit_weights(forecaster, sample_weight)), splitter=Bunch(split={}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.target_tags.required = True
        return tags
