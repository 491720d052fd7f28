"""Rules that need no fit: follow the forecast, ignore it, follow a recalibrated one, or a rule of the user's own."""

from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from prudent.arrays import Context, FloatArray, IntArray, finite_array, listed, truth
from prudent.cases.cases import read_cases
from prudent.errors import InputError
from prudent.guarantees import Nothing
from prudent.policies.base import Policy, require_problem
from prudent.policies.fitted import FittedPolicy
from prudent.policies.robust import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator
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


class RecalibratedPolicy(FixedPolicy):
    """Recalibrate forecasts, and let another policy decide on what comes out.

    Parameters
    ----------
    recalibrator : Recalibrator
        Fitted.
    policy : Policy
        Fitted, or one that needs no fit.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
    >>> recalibrator = prudent.recalibration.ScalingCalibrator("shift").fit([0.2, 0.6], [0.4, 0.8])
    >>> policy = prudent.RecalibratedPolicy(recalibrator, prudent.PlugInPolicy(problem))
    >>> policy.predict([0.2, 0.4]).tolist()
    ['wait', 'act']
    """

    def __init__(self, recalibrator: Recalibrator, policy: Policy) -> None:
        self.recalibrator = recalibrator
        self.policy = policy

    @property
    def problem(self) -> DecisionProblem:  # type: ignore[override]
        """The problem of the policy."""
        if not isinstance(self.policy, Policy) or not isinstance(self.recalibrator, Recalibrator):
            raise InputError("recalibrator must be a fitted Recalibrator, and policy a Policy.")
        problem, space = self.policy._problem, getattr(self.recalibrator, "space_", None)
        if space is not None and not space.same_as(problem.space):
            raise InputError(
                f"recalibrator must be for forecasts on {problem.space!r}, as the policy is; got {space!r}."
            )
        return problem

    @property
    def deterministic(self) -> bool:
        """True if the policy's actions are not drawn."""
        return self.policy.deterministic

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the recalibrator and the policy."""
        return tuple(dict.fromkeys((*self.recalibrator.columns, *self.policy.columns)))

    def predict_proba(self, X: Any, *, context: Any = None, **own: Any) -> FloatArray:
        """Return the mixture played at each raw forecast, shape ``(n, m)``; ``own`` are rewards and costs per row."""
        forecasts, known = self._rows(X, context)
        return self.policy.predict_proba(self.acts_on(forecasts, known), context=known, **own)

    def acts_on(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        """Return the recalibrated forecasts."""
        return self.recalibrator.transform(forecasts, context)

    def at_row(self, **own: Any) -> Policy:
        """Return the policy of one case with its own rewards or costs."""
        return RecalibratedPolicy(self.recalibrator, self.policy.at_row(**own)) if own else self

    @property
    def salt(self) -> str:
        """Of the policy."""
        return str(getattr(self.policy, "salt", ""))

    def _beliefs(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        return self.policy._beliefs(self.acts_on(forecasts, context), context)

    def _mixtures(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        return self.policy._mixtures(self.acts_on(forecasts, context), context)

    def _draw(self, mixtures: FloatArray, keys: Any, *, exact: bool = False) -> IntArray:
        return self.policy._draw(mixtures, keys, exact=exact)

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does, but keep the parts as they are: they are data, not recipes."""
        return type(self)(self.recalibrator, self.policy)


class FixedRule(FixedPolicy):
    """A rule that is in use: thresholds on the forecast, a function of it, or what was done in past cases.

    Parameters
    ----------
    problem : DecisionProblem
    thresholds : sequence of float, optional
        Rising, for forecasts of one coordinate: below the first the first of ``actions`` is taken, from the last on the
        last one.
    actions : sequence of labels, optional
        What is done between thresholds, one more than there are; the problem's actions by default.
    function : callable, optional
        Takes forecasts ``(n, d)`` and returns one label per row.
    labels : sequence, optional
        What was done in every one of some cases. Such a rule says nothing about others.

    Examples
    --------
    >>> import prudent
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
    >>> prudent.FixedRule(problem, thresholds=[0.3]).predict([0.2, 0.3]).tolist()
    ['wait', 'act']
    """

    blind = True

    def __init__(
        self,
        problem: DecisionProblem,
        thresholds: Any = None,
        *,
        actions: Any = None,
        function: Any = None,
        labels: Any = None,
    ) -> None:
        self.problem = problem
        self.thresholds = thresholds
        self.actions = actions
        self.function = function
        self.labels = labels

    @property
    def deterministic(self) -> bool:
        """True: nothing is drawn."""
        return True

    def steps(self) -> tuple[FloatArray, IntArray]:
        """Thresholds, and the number of the action below the first and from each on."""
        problem = require_problem(self.problem)
        thresholds = finite_array(listed(self.thresholds, "thresholds"), "thresholds")
        labels = problem.actions if self.actions is None else listed(self.actions, "actions")
        if problem.dimension != 1 or thresholds.ndim != 1 or (np.diff(thresholds) <= 0).any():
            raise InputError(f"thresholds must rise, on forecasts of one coordinate; got {self.thresholds!r}.")
        if len(labels) != thresholds.size + 1:
            raise InputError(f"actions must be {thresholds.size + 1}, one more than thresholds; got {list(labels)}.")
        return thresholds, action_numbers(problem, labels, "actions")

    def turning_points(self) -> FloatArray:
        """The thresholds; those of a function are not known."""
        return np.zeros(0) if self.thresholds is None else self.steps()[0]

    def on_rows(self, rows: Any) -> FloatArray:
        """Return what is played at rows; labels are those of all rows."""
        return super().on_rows(rows) if self.labels is None else self._mixtures(rows.everything)[rows.used]

    def _mixtures(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        if sum(given is not None for given in (self.thresholds, self.function, self.labels)) != 1:
            raise InputError("a FixedRule needs one of thresholds, function and labels.")
        if self.thresholds is not None:
            thresholds, actions = self.steps()
            played = actions[np.searchsorted(thresholds, forecasts[:, 0], side="right")]
        else:
            given = self.labels if self.function is None else self.function(forecasts)
            labels = listed(given, "labels")
            if len(labels) != len(forecasts):
                raise InputError(f"labels must be one per forecast, {len(forecasts)}; got {len(labels)}.")
            played = action_numbers(self.problem, labels, "labels")
        return np.eye(self.problem.n_actions)[played]


def action_numbers(problem: DecisionProblem, labels: Any, name: str) -> IntArray:
    """Find actions by their labels."""
    places = {action: number for number, action in enumerate(problem.actions)}
    unknown = [label for label in labels if not isinstance(label, Hashable) or label not in places]
    if unknown:
        raise InputError(f"{name} must be among the actions {list(problem.actions)}; got {unknown[0]!r}.")
    return np.array([places[label] for label in labels], dtype=np.int64)
