"""Reference policies: follow the forecast, or ignore it."""

from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from prudent.arrays import Context, FloatArray, truth
from prudent.cases.cases import read_cases
from prudent.guarantees import Nothing
from prudent.policies.base import Policy, require_problem
from prudent.policies.fitted import FittedPolicy
from prudent.policies.robust import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate


class FixedPolicy(Policy):
    """A policy that its problem determines: ``fit`` only checks what it is given."""

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, context: Any = None) -> Self:
        """Check the forecasts and weights; there is nothing to learn."""
        read_cases(X, weights=sample_weight, context=context).on(require_problem(self.problem).space)
        self._remember(X)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class PlugInPolicy(FixedPolicy):
    """Believe the forecast and take the action that looks best; ties go to the first declared.

    Works without ``fit``. It has no certificate of its own: what it can lose
    depends on the guarantee, ask :func:`prudent.worst_case`.

    Examples
    --------
    >>> import prudent
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
    >>> prudent.PlugInPolicy(problem).predict([0.2, 0.9]).tolist()
    ['wait', 'act']
    """

    def __init__(self, problem: DecisionProblem) -> None:
        self.problem = problem

    @property
    def deterministic(self) -> bool:
        """True: best responses are single actions."""
        return True

    def predict_proba(self, X: Any, *, context: Any = None, rewards: Any = None, costs: Any = None) -> FloatArray:
        """Return one in the column of the best response to each forecast, shape ``(n, m)``.

        ``rewards`` and ``costs`` are those of every row, where each case has its own.
        """
        forecasts = self._place(X)
        if rewards is None and costs is None:
            return self._mixtures(forecasts)
        best = self.problem.utilities_of_rows(forecasts, rewards, costs).argmax(axis=1)
        return np.eye(self.problem.n_actions)[best]

    def _mixtures(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        return self._in_chunks(self.problem.best_mixtures, forecasts)


class SafetyPolicy(FixedPolicy):
    """Ignore the forecast and play the action, or mixture, with the best worst case.

    Works without ``fit``; its certificate refers to ``guarantees.Nothing()``.

    Examples
    --------
    >>> import prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> prudent.SafetyPolicy(problem).predict_proba([0.9])
    array([[0.5, 0.5]])
    >>> abs(round(prudent.SafetyPolicy(problem, randomize=False).certificate_.lower, 9))
    0.0
    """

    blind = True

    def __init__(
        self, problem: DecisionProblem, randomize: bool = True, *, salt: str = "", random_state: Any = None
    ) -> None:
        self.problem = problem
        self.randomize = randomize
        self.salt = salt
        self.random_state = random_state

    @property
    def certificate_(self) -> Certificate:
        """What the safety policy secures in any world at all."""
        return self._found().certificate

    @property
    def deterministic(self) -> bool:
        """True if ``randomize`` is false."""
        return not truth(self.randomize, "randomize")

    def _found(self) -> FittedPolicy:
        """What is best against any world, whatever the forecast."""
        problem = require_problem(self.problem)
        corner = problem.space.support_minimizer(np.ones((1, problem.dimension)))
        return RobustPolicy(problem, Nothing(), randomize=not self.deterministic).fit(corner).fitted_

    def _beliefs(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        return self._found().local.beliefs(np.zeros_like(forecasts))

    def _mixtures(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        mixture = self._found().mixtures(
            np.zeros_like(forecasts[:1])
        )  # one for all: not even ties look at the forecast
        return np.repeat(mixture, len(forecasts), axis=0)
