"""The sharp transition: tests are added one by one until best responding is optimal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.adversary import worst_case
from prudent.arrays import Backend, FloatArray, data_frame, listed, row_weights
from prudent.errors import InputError
from prudent.guarantees import FromFunctions, Guarantee, Nothing, SelfOrthogonal, Unbiased
from prudent.policies import PlugInPolicy, RobustPolicy
from prudent.policies.base import require_problem
from prudent.problem import DecisionProblem

__all__ = ["Transition", "sharp_transition"]

_REACHED = 1e-6


@dataclass(frozen=True, eq=False)
class Transition:
    """What each further test is worth on one sample.

    Attributes
    ----------
    names : tuple of str
        The test added at each step; all before it stay.
    guaranteed : array of shape (s,)
        By the best policy.
    plug_in : array of shape (s,)
        By best responding.
    distance : array of shape (s,)
        Mean probability with which the best policy does not best respond.
    ceiling : float
        What best responding gets if every forecast is right; no test leads above it.
    utility_range : float
    """

    names: tuple[str, ...]
    guaranteed: FloatArray
    plug_in: FloatArray
    distance: FloatArray
    ceiling: float
    utility_range: float

    @property
    def reached(self) -> int | None:
        """First step, from zero, at which best responding guarantees as much as anything; None if there is none."""
        steps = np.flatnonzero(self.guaranteed - self.plug_in <= _REACHED * self.utility_range)
        return int(steps[0]) if steps.size else None

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return the table as a data frame, one row per step ("pandas", "polars" or "pyarrow")."""
        columns = {"test": list(self.names), "guaranteed": self.guaranteed, "plug-in": self.plug_in}
        return data_frame({**columns, "distance": self.distance}, backend)

    def __str__(self) -> str:
        width = max(len("test added"), *(len(name) for name in self.names))
        lines = [f"{'test added'.ljust(width)}  guaranteed   plug-in  not plug-in"]
        for name, best, habit, far in zip(self.names, self.guaranteed, self.plug_in, self.distance, strict=True):
            # A zero by rounding is shown without its sign.
            numbers = (round(float(best), 4) + 0.0, round(float(habit), 4) + 0.0)
            lines.append(f"{name.ljust(width)}  {numbers[0]:10.4f}  {numbers[1]:8.4f}  {100 * far:10.1f}%")
        return "\n".join(lines)


def sharp_transition(
    problem: DecisionProblem,
    forecasts: Any,
    guarantees: Sequence[Guarantee] | None = None,
    *,
    names: Sequence[str] | None = None,
    sample_weight: Any = None,
) -> Transition:
    """Add guarantees one by one and compare the best policy with best responding at each step.

    Parameters
    ----------
    problem : DecisionProblem
    forecasts : array of shape (n,) or (n, d)
    guarantees : sequence of Guarantee, optional
        Added from first to last. By default none, unbiased, self-orthogonal, then the best-response region of one
        action after the other: with the last of them forecasts are decision calibrated.
    names : sequence of str, optional
        One per guarantee.
    sample_weight : array of shape (n,), optional

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0], actions=["for", "against"])   # p or 1 - p
    >>> print(prudent.sharp_transition(problem, (np.arange(400) + 0.5) / 400))
    test added                   guaranteed   plug-in  not plug-in
    nothing                          0.5000    0.0000        50.0%
    right on average                 0.5000    0.0000        50.0%
    uncorrelated with v              0.7113    0.5918        14.4%
    right where for is best          0.7500    0.7500         0.0%
    right where against is best      0.7500    0.7500         0.0%
    """
    require_problem(problem)
    if guarantees is None:
        steps, labels = _default_steps(problem)
    else:
        steps = listed(guarantees, "guarantees")
        labels = [repr(step) for step in steps] if names is None else [str(name) for name in names]
    if not steps or not all(isinstance(step, Guarantee) for step in steps):
        raise InputError("guarantees must be a non-empty list of guarantees.")
    if len(labels) != len(steps):
        raise InputError(f"names must have one entry per guarantee, {len(steps)}; got {len(labels)}.")
    placed, _ = problem.space.place(forecasts, "forecasts")
    weights, _ = row_weights(sample_weight, len(placed))
    habit = PlugInPolicy(problem)
    best = problem.best_actions(placed)
    guaranteed, plug_in, distance = [], [], []
    so_far: Guarantee | None = None
    for step in steps:
        so_far = step if so_far is None else so_far & step
        policy = RobustPolicy(problem, so_far).fit(placed, sample_weight=sample_weight)
        guaranteed.append(policy.value_)
        plug_in.append(worst_case(habit, placed, guarantee=so_far, sample_weight=sample_weight).value)
        distance.append(float(weights @ (1.0 - policy.predict_proba(placed)[np.arange(len(placed)), best])))
    ceiling = float(weights @ problem.linear_utility(placed).max(axis=1))
    return Transition(
        tuple(labels), np.array(guaranteed), np.array(plug_in), np.array(distance), ceiling, problem.utility_range
    )


def _default_steps(problem: DecisionProblem) -> tuple[list[Guarantee], list[str]]:
    def region(action: int) -> Callable[[FloatArray], FloatArray]:
        return lambda v: (problem.best_actions(v) == action).astype(np.float64)

    steps: list[Guarantee] = [Nothing(), Unbiased(), SelfOrthogonal()]
    labels = ["nothing", "right on average", "uncorrelated with v"]
    for position, action in enumerate(problem.actions):
        name = f"right where {action} is best"
        steps.append(FromFunctions([region(position)], names=[name], bounds=[1.0]))
        labels.append(name)
    return steps, labels
