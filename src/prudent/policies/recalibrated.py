"""A rule for recalibrated forecasts that takes the raw ones, and rules of the user's own."""

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from prudent.arrays import Context, FloatArray, IntArray, finite_array, listed
from prudent.errors import InputError
from prudent.policies.base import Policy, require_problem
from prudent.policies.reference import FixedPolicy, PlugInPolicy
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator


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

    def turning_points(self) -> FloatArray | None:
        """Where the recalibration turns, if best responses follow; else that is not known."""
        return self.recalibrator.turning_points() if isinstance(self.policy, PlugInPolicy) else None

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

    def turning_points(self) -> FloatArray | None:
        """The thresholds; those of a function are not known."""
        return None if self.thresholds is None else self.steps()[0]

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
