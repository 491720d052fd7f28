"""Rules to compare with: best responding to the worst belief, and minimax regret under bounded error.

The paper plays ``argmax_a u(a, q*(v))``. Where ``q*(v)`` sits on a kink of
``val`` several actions are best, for whole intervals of forecasts, and the
rule is not one rule but many (docs/theory.md, section 3.1); here ties go to
the first declared action or to the last.

Rothblum and Yona (2023) ask, for binary outcomes and two actions, for the
least worst regret when ``|q(v) - v| <= alpha`` at every forecast.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.spaces import Box

__all__ = ["best_response_to_worst_belief", "minimax_regret_rule", "regret_under_bounded_error"]

_TIED = 1e-9


def best_response_to_worst_belief(
    policy: RobustPolicy, forecasts: FloatArray, ties: Literal["first", "last"]
) -> FloatArray:
    """Return the paper's rule as mixtures ``(n, m)``, all mass on one action.

    ``q*(v)`` minimises ``val(p) + s(v).p`` at the multipliers of a fitted policy, pointwise. Utilities within 1e-9
    of their range count as tied.
    """
    problem = policy.problem
    utilities = problem.linear_utility(policy.worst_case_belief(forecasts))
    tied = utilities >= utilities.max(axis=1, keepdims=True) - _TIED * problem.utility_range
    last = problem.n_actions - 1
    chosen = tied.argmax(axis=1) if ties == "first" else last - tied[:, ::-1].argmax(axis=1)
    return np.eye(problem.n_actions)[chosen]


def minimax_regret_rule(problem: DecisionProblem, forecasts: FloatArray, error: float) -> FloatArray:
    """Return the deterministic rule of least worst regret if ``|q(v) - v| <= error``, as mixtures ``(n, 2)``.

    Between two actions regret is linear in ``q`` on either side of the point of indifference, with one common slope.
    So the smaller worst regret belongs to the best response to the *middle* of ``[v - error, v + error]`` cut to
    [0, 1]: a threshold that differs from the plug-in one exactly where indifference lies within the error of 0 or 1.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from reproduction.policies_of_the_paper import minimax_regret_rule
    >>> problem = prudent.DecisionProblem([-1.0, 0.0], [0.0, 0.15])   # indifferent at 0.15
    >>> minimax_regret_rule(problem, np.array([[0.09], [0.11]]), error=0.2).tolist()   # acts from 0.1 on
    [[1.0, 0.0], [0.0, 1.0]]
    """
    low, high = problem.space.bounds
    if problem.dimension != 1 or problem.n_actions != 2 or not isinstance(problem.space, Box):
        raise InputError("the minimax-regret rule needs two actions and one outcome coordinate.")
    if not error >= 0:
        raise InputError(f"error must not be negative; got {error!r}.")
    middle = (np.maximum(forecasts - error, low) + np.minimum(forecasts + error, high)) / 2
    return np.eye(2)[problem.best_actions(middle)]


def regret_under_bounded_error(
    problem: DecisionProblem, mixtures: FloatArray, forecasts: FloatArray, error: float
) -> float:
    """Compute the worst mean regret ``E[val(q) - u(pi, q)]`` over all worlds with ``|q(v) - v| <= error``.

    Regret is convex in ``q``, so each row is worst at an end of its interval.
    """
    low, high = problem.space.bounds
    ends = [np.clip(forecasts + shift, low, high) for shift in (-error, error)]
    regrets = [problem.value(end) - (mixtures * problem.linear_utility(end)).sum(axis=1) for end in ends]
    return float(np.maximum(*regrets).mean())
