"""What robustness costs: guaranteed and nominal utility as the guarantee is given more slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.adversary import worst_case
from prudent.arrays import Backend, FloatArray, data_frame, finite_array, row_weights
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.policies import PlugInPolicy, RobustPolicy, SafetyPolicy
from prudent.policies.base import require_problem
from prudent.problem import DecisionProblem
from prudent.writing import written

__all__ = ["RobustnessPrice", "price_of_robustness"]


@dataclass(frozen=True, eq=False)
class RobustnessPrice:
    """Utilities of the robust and the plug-in policy at several slacks, on one sample.

    Attributes
    ----------
    guarantee : Guarantee
    slacks : array of shape (s,)
        Increasing, in outcome units.
    guaranteed, nominal : array of shape (s,)
        Of the policy that is optimal at each slack: in its worst world, and if every forecast were right.
    plug_in : array of shape (s,)
        Best responding in its worst world at each slack.
    plug_in_nominal : float
        Best responding if every forecast were right; nothing is nominally better.
    safety : float
        What is guaranteed without any forecast.
    """

    guarantee: Guarantee
    slacks: FloatArray
    guaranteed: FloatArray
    nominal: FloatArray
    plug_in: FloatArray
    plug_in_nominal: float
    safety: float

    @property
    def price(self) -> FloatArray:
        """Nominal utility given up for the guarantee, at each slack."""
        return self.plug_in_nominal - self.nominal

    @property
    def columns(self) -> dict[str, FloatArray]:
        """The table by column, in the order shown."""
        return {
            "slack": self.slacks,
            "guaranteed": self.guaranteed,
            "nominal": self.nominal,
            "plug-in guaranteed": self.plug_in,
            "price": self.price,
        }

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return the table as a data frame, one row per slack ("pandas", "polars" or "pyarrow")."""
        return data_frame(self.columns, backend)

    def __str__(self) -> str:
        columns = self.columns
        lines = ["  ".join(title.rjust(max(len(title), 8)) for title in columns)]
        for row in zip(*columns.values(), strict=True):
            cells = zip(row, columns, strict=True)
            lines.append("  ".join(written(value, 4).rjust(max(len(title), 8)) for value, title in cells))
        return "\n".join(lines)


def price_of_robustness(
    problem: DecisionProblem, guarantee: Guarantee, forecasts: Any, slacks: Any = None, *, sample_weight: Any = None
) -> RobustnessPrice:
    """Fit the optimal policy at each slack, and compare it with best responding.

    Parameters
    ----------
    problem : DecisionProblem
    guarantee : Guarantee
    forecasts : array of shape (n,) or (n, d)
    slacks : array of shape (s,), optional
        Increasing; by default zero and eight steps up to a fifth of the outcome range.
    sample_weight : array of shape (n,), optional

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(500) + 0.5) / 500
    >>> print(prudent.price_of_robustness(problem, prudent.guarantees.SelfOrthogonal(), forecasts, [0, 0.05]))
       slack  guaranteed   nominal  plug-in guaranteed     price
           0      0.5918     0.593              0.2362     0.157
        0.05      0.5345    0.5883              0.1734    0.1617
    """
    space = require_problem(problem).space
    low, high = space.bounds
    if slacks is None:
        steps = np.concatenate([[0.0], np.geomspace(0.002, 0.2, 8)]) * float((high - low).min())
    else:
        steps = finite_array(slacks, "slacks")
        if steps.ndim != 1 or steps.size == 0 or (steps < 0).any() or (np.diff(steps) <= 0).any():
            raise InputError(f"slacks must be increasing numbers of at least 0; got {steps.tolist()}.")
    placed, _ = space.place(forecasts, "forecasts")
    weights, _ = row_weights(sample_weight, len(placed))
    utilities = problem.linear_utility(placed)
    habit = PlugInPolicy(problem)
    guaranteed, nominal, plug_in = [], [], []
    for slack in steps.tolist():
        policy = RobustPolicy(problem, guarantee, slack=slack).fit(placed, sample_weight=sample_weight)
        guaranteed.append(policy.value_)
        nominal.append(float(weights @ (policy.predict_proba(placed) * utilities).sum(axis=1)))
        worst = worst_case(habit, placed, guarantee=guarantee, slack=slack, sample_weight=sample_weight)
        plug_in.append(worst.value)
    return RobustnessPrice(
        guarantee,
        steps,
        np.array(guaranteed),
        np.array(nominal),
        np.array(plug_in),
        float(weights @ utilities.max(axis=1)),
        SafetyPolicy(problem).value_,
    )
