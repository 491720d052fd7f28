"""What a policy guards against: the worst-case belief at every forecast of one coordinate."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.plots.style import HATCHES, action_colors, axes, legend_beside, legend_height, tidy, title, wrapped
from prudent.policies import Policy
from prudent.problem import DecisionProblem
from prudent.writing import written

__all__ = ["BeliefDisplay"]


class BeliefDisplay:
    """Worst-case beliefs against forecasts, over bands of the action that is best at each belief.

    Parameters
    ----------
    problem : DecisionProblem
        With one coordinate.
    forecasts, beliefs : array of shape (g,)
    best : array of shape (h, 2)
        Beliefs at which the best action changes, from the lower end of the space, and the action from there on.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import BeliefDisplay
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"])
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal())
    >>> BeliefDisplay.from_policy(policy.fit(np.linspace(0, 1, 200))).ax_.get_xlabel()
    'forecast'
    """

    def __init__(self, problem: DecisionProblem, forecasts: FloatArray, beliefs: FloatArray, best: FloatArray) -> None:
        self.problem = problem
        self.forecasts = forecasts
        self.beliefs = beliefs
        self.best = best

    @classmethod
    def from_policy(cls, policy: Policy, forecasts: Any = None, *, name: str = "forecast", ax: Any = None) -> Self:
        """Ask a policy for its beliefs, at forecasts or on an even grid, and draw them."""
        if not isinstance(policy, Policy):
            raise InputError(f"policy must be a policy of this library; got {type(policy).__name__}.")
        check_is_fitted(policy)
        problem = policy._problem
        if problem.dimension != 1:
            raise InputError(f"beliefs are drawn for one coordinate; this problem has {problem.dimension}.")
        low, high = (float(bound[0]) for bound in problem.space.bounds)
        grid = low + (high - low) * (np.arange(1001) + 0.5) / 1001
        x = grid if forecasts is None else np.sort(problem.space.place(forecasts, "forecasts")[0][:, 0])
        actions = problem.best_response(grid)
        first = np.flatnonzero(np.append(True, actions[1:] != actions[:-1]))
        starts = np.append(low, (grid[first[1:]] + grid[first[1:] - 1]) / 2)
        best = np.column_stack([starts, actions[first]])
        return cls(problem, x, policy._beliefs(x[:, None])[:, 0], best).plot(ax=ax, name=name)

    def plot(self, ax: Any = None, *, name: str = "forecast") -> Self:
        """Draw beliefs, the diagonal, and the bands."""
        ax = axes(ax, (7.6, max(4.6, legend_height(wrapped([f"best: {action}" for action in self.problem.actions])))))
        low, high = (float(bound[0]) for bound in self.problem.space.bounds)
        colors = action_colors(self.problem.n_actions)
        ends = np.append(self.best[1:, 0], high)
        for (start, action), end in zip(self.best, ends, strict=True):
            a = int(action)
            ax.axhspan(
                start,
                end,
                facecolor=colors[a],
                alpha=0.3,
                hatch=HATCHES[a % len(HATCHES)],
                edgecolor="white",
                linewidth=0,
                label=wrapped([f"best: {self.problem.actions[a]}"])[0],
            )
        ax.plot([low, high], [low, high], color="0.3", linestyle=":", linewidth=1.2, label="the forecast itself")
        ax.plot(self.forecasts, self.beliefs, color="black", linewidth=2, label="worst-case belief")
        ax.set(xlim=(low, high), ylim=(low, high), xlabel=name, ylabel="belief")
        apart = float(np.abs(self.beliefs - self.forecasts).mean())
        title(
            ax,
            f"The policy guards against beliefs {written(apart, 2)} away from the forecast on average",
            "one worst belief per forecast; where several are equally bad, their middle",
        )
        tidy(ax)
        legend_beside(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
