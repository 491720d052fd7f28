"""Rewards and costs that differ from row to row: what a loan costs depends on the loan.

The theory is that of one problem for all rows (docs/theory.md, section 10): the
multipliers are shared, and each row plays the maximin mixture of its own tilted game.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import AnyArray, FloatArray, finite_array
from prudent.errors import InputError
from prudent.guarantees.names import read_guarantee
from prudent.policies.base import drawn_labels, require_problem
from prudent.policies.robust import ForGuarantee
from prudent.problem import DecisionProblem
from prudent.solvers import Game, local_game, solve


class RowwiseRobustPolicy(ForGuarantee):
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
        read_guarantee(self.guarantee, problem, finite=True)
        read = self._read(X, y, sample_weight)
        game = row_game(problem, rewards, costs, len(read.forecasts)).take(read.used)
        ambiguity = read.ambiguity
        solution = solve(game, ambiguity)
        assert solution.multipliers is not None  # noqa: S101  # only full calibration has none
        self.problem_, self.guarantee_, self.slack_ = problem, read.guarantee, ambiguity.allowance
        self.multipliers_ = solution.multipliers.reshape(ambiguity.tests.multiplier_shape)
        self.moment_names_ = ambiguity.tests.names
        self.certificate_ = self._with_confidence(solution.certificate)
        self.n_features_in_, self.n_snapped_ = problem.dimension, read.snapped
        return self

    def predict_proba(self, X: Any, *, rewards: Any = None, costs: Any = None) -> FloatArray:
        """Return the mixture played at each row, shape ``(n, m)``."""
        check_is_fitted(self)
        forecasts, _ = self.problem_.space.place(X, "forecasts")
        game = row_game(self.problem_, rewards, costs, len(forecasts))
        tilts = self.guarantee_.evaluate(forecasts, self.problem_.space).tilts(self.multipliers_)
        return local_game(game).mixtures(tilts, forecasts)

    def predict(self, X: Any, keys: Any = None, *, rewards: Any = None, costs: Any = None) -> AnyArray:
        """Draw one action label per row, as :meth:`prudent.RobustPolicy.predict` does."""
        mixtures = self.predict_proba(X, rewards=rewards, costs=costs)
        return drawn_labels(self, self.problem_, mixtures, keys)


def row_game(problem: DecisionProblem, rewards: Any, costs: Any, n: int) -> Game:
    """Read rewards and costs per row; what is not given is the problem's, for all rows."""
    m, d = problem.rewards.shape
    if rewards is None and costs is None:
        raise InputError("rewards or costs must be given for every row; without them use RobustPolicy.")
    own_rewards = problem.rewards if rewards is None else _per_row(rewards, "rewards", (n, m, d))
    own_costs = problem.costs if costs is None else _per_row(costs, "costs", (n, m))
    return Game(
        np.broadcast_to(own_rewards, (n, m, d)), np.broadcast_to(-own_costs, (n, m)), problem.space, shared=False
    )


def _per_row(values: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Read an array of one entry per row, action and (for rewards) coordinate; a single coordinate may be left out."""
    array = finite_array(values, name)
    if len(shape) == 3 and (*array.shape, 1) == shape:
        return array[..., None]
    if array.shape != shape:
        raise InputError(
            f"{name} must have shape {shape}: one entry per row, action{' and coordinate' if len(shape) == 3 else ''}; "
            f"got {array.shape}."
        )
    return array
