"""Rewards and costs that differ from row to row: what a loan costs depends on the loan.

The theory is that of one problem for all rows (docs/theory.md, section 10): the
multipliers are shared, and each row plays the maximin mixture of its own tilted game.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from prudent.ambiguity import Slack, build_ambiguity
from prudent.arrays import FloatArray, finite_array, probability, row_weights
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.policies.base import action_labels, random_uniforms, require_problem, require_salt
from prudent.policies.draws import draw, uniforms_from_keys
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, local_game, solve

__all__ = ["RowwiseRobustPolicy", "row_game"]


class RowwiseRobustPolicy(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """The minimax-optimal policy where every row has rewards or costs of its own.

    Parameters
    ----------
    problem : DecisionProblem
        Actions, outcome space, and the rewards or costs that are the same for all rows.
    guarantee, slack, confidence, salt, random_state
        As in :class:`prudent.RobustPolicy`.

    Attributes
    ----------
    certificate_ : Certificate
        On the fitting sample with its rewards and costs.
    multipliers_ : array of shape (k, d) or (K,)
    guarantee_, slack_, moment_names_
        As in :class:`prudent.RobustPolicy`.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.0, 1.0], actions=["refuse", "lend"])   # the chance of repayment
    >>> forecasts, stakes = rng.random(500), rng.uniform(0.2, 0.8, 500)
    >>> costs = np.column_stack([np.zeros(500), stakes])
    >>> policy = prudent.RowwiseRobustPolicy(problem, prudent.guarantees.SelfOrthogonal())
    >>> policy.fit(forecasts, costs=costs).predict_proba(forecasts[:2], costs=costs[:2]).shape
    (2, 2)
    """

    guarantee_: Guarantee
    multipliers_: FloatArray
    certificate_: Certificate
    moment_names_: tuple[str, ...]
    slack_: Slack

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

    def fit(self, X: Any, y: Any = None, *, rewards: Any = None, costs: Any = None, sample_weight: Any = None) -> Self:
        """Find the optimal policy for forecasts with rewards and costs of their own.

        Parameters
        ----------
        X : array of shape (n,) or (n, d)
            Forecasts.
        y : array, optional
            Outcomes; used only where the slack is measured.
        rewards : array of shape (n, m, d), or (n, m) where d = 1, optional
        costs : array of shape (n, m), optional
            What is not given is the problem's.
        sample_weight : array of shape (n,), optional
        """
        problem = require_problem(self.problem)
        forecasts, snapped = problem.space.place(X, "forecasts")
        if not isinstance(self.guarantee, Guarantee) or self.guarantee.full:
            raise InputError(f"guarantee must be a finite one from prudent.guarantees; got {self.guarantee!r}.")
        confidence = probability(self.confidence, "confidence")
        require_salt(self.salt)
        game = row_game(problem, rewards, costs, len(forecasts))
        weights, used = row_weights(sample_weight, len(forecasts))
        outcomes = None
        if Slack.read(self.slack).needs_outcomes:
            if y is None:
                raise InputError("slack that is measured needs outcomes: pass y to fit.")
            outcomes = problem.space.place_outcomes(y)
            if len(outcomes) != len(forecasts):
                raise InputError(f"outcomes must have one row per forecast, {len(forecasts)}; got {len(outcomes)}.")
            outcomes = outcomes[used]
        forecasts, weights, game = forecasts[used], weights[used], game.take(np.flatnonzero(used))
        guarantee = self.guarantee.resolve(forecasts, weights, problem.space)
        ambiguity = build_ambiguity(problem, guarantee, forecasts, weights, self.slack, outcomes, confidence)
        solution = solve(game, ambiguity)
        assert solution.multipliers is not None  # noqa: S101  # only full calibration has none
        self.problem_, self.guarantee_, self.slack_ = problem, guarantee, ambiguity.allowance
        self.multipliers_ = solution.multipliers.reshape(ambiguity.tests.multiplier_shape)
        self.moment_names_, self.certificate_ = ambiguity.tests.names, solution.certificate
        if self.slack_.confidence is not None:
            note = f" The slack was measured and holds with confidence {100 * self.slack_.confidence:g}%."
            self.certificate_ = replace(solution.certificate, message=solution.certificate.message + note)
        self.n_features_in_, self.n_snapped_ = problem.dimension, snapped
        return self

    def predict_proba(self, X: Any, *, rewards: Any = None, costs: Any = None) -> FloatArray:
        """Return the mixture played at each row, shape ``(n, m)``."""
        check_is_fitted(self)
        forecasts, _ = self.problem_.space.place(X, "forecasts")
        game = row_game(self.problem_, rewards, costs, len(forecasts))
        tilts = self.guarantee_.evaluate(forecasts, self.problem_.space).tilts(self.multipliers_)
        return local_game(game).mixtures(tilts, forecasts)

    def predict(self, X: Any, keys: Any = None, *, rewards: Any = None, costs: Any = None) -> NDArray[Any]:
        """Draw one action label per row, as :meth:`prudent.RobustPolicy.predict` does."""
        mixtures = self.predict_proba(X, rewards=rewards, costs=costs)
        if keys is None:
            uniforms = random_uniforms(self.random_state, len(mixtures))
        else:
            uniforms = uniforms_from_keys(keys, require_salt(self.salt), len(mixtures))
        return action_labels(self.problem_)[draw(mixtures, uniforms)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")


def row_game(problem: DecisionProblem, rewards: Any, costs: Any, n: int) -> Game:
    """Read rewards and costs per row; what is not given is the problem's, for all rows."""
    m, d = problem.rewards.shape
    if rewards is None and costs is None:
        raise InputError("rewards or costs must be given for every row; without them use RobustPolicy.")
    own_rewards, own_costs = problem.rewards[None], problem.costs[None]
    if rewards is not None:
        own_rewards = finite_array(rewards, "rewards")
        if d == 1 and own_rewards.ndim == 2:
            own_rewards = own_rewards[:, :, None]
        _require_shape(own_rewards, "rewards", (n, m, d))
    if costs is not None:
        own_costs = finite_array(costs, "costs")
        _require_shape(own_costs, "costs", (n, m))
    return Game(
        np.broadcast_to(own_rewards, (n, m, d)), np.broadcast_to(-own_costs, (n, m)), problem.space, shared=False
    )


def _require_shape(array: FloatArray, name: str, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InputError(
            f"{name} must have shape {shape}: one entry per row, action{' and coordinate' if len(shape) == 3 else ''}; "
            f"got {array.shape}."
        )
