"""The sharp transition: value and distance from best responding as tests are added."""

from __future__ import annotations

from typing import Any, Self

from prudent.errors import InputError
from prudent.plots.style import COLORS, axes, legend_beside, percent, tidy, title
from prudent.transition import Transition, sharp_transition

__all__ = ["TransitionDisplay"]


class TransitionDisplay:
    """One place per test: what is guaranteed from there on, and how often one does not best respond.

    Parameters
    ----------
    result : Transition

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import TransitionDisplay
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0], actions=["for", "against"])
    >>> display = TransitionDisplay.from_predictions(problem, np.random.default_rng(0).random(300))
    >>> display.ax_.get_ylabel()
    'guaranteed utility'
    """

    def __init__(self, result: Transition) -> None:
        if not isinstance(result, Transition):
            raise InputError(f"result must come from sharp_transition; got {type(result).__name__}.")
        self.result = result

    @classmethod
    def from_predictions(cls, problem: Any, forecasts: Any, *, ax: Any = None, **options: Any) -> Self:
        """Compute and draw; options go to :func:`prudent.sharp_transition`."""
        return cls(sharp_transition(problem, forecasts, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw guaranteed utilities, and as bars on an axis of their own the distance from best responding."""
        result = self.result
        count = len(result.names)
        ax = axes(ax, (max(8.0, 3.4 + 0.7 * count), 5.0))
        places = range(count)
        twin = ax.twinx()
        bars = twin.bar(
            places, result.distance, color="0.88", hatch="//", edgecolor="white", width=0.7, label="not best responding"
        )
        twin.set(ylim=(0, 1), ylabel="share not best responding")
        twin.set_zorder(ax.get_zorder() - 1)
        ax.patch.set_visible(False)
        (best,) = ax.plot(places, result.guaranteed, "-o", color=COLORS[0], linewidth=2, label="best policy")
        (habit,) = ax.plot(places, result.plug_in, "--s", color=COLORS[5], linewidth=2, label="best responding")
        limit = ax.axhline(result.ceiling, color="black", linestyle=":", label="if every forecast is right")
        ax.set_xticks(places, [str(name) for name in result.names], rotation=35, ha="right", rotation_mode="anchor")
        ax.set(ylabel="guaranteed utility", xlabel="test added (all before it stay)")
        step = result.reached
        if step is None:
            share = percent(float(result.distance[-1]))
            finding = f"Best responding never becomes optimal: at the end {share} is played otherwise"
        else:
            finding = f"Best responding becomes optimal with {result.names[step]!r}, step {step + 1} of {count}"
        title(ax, finding)
        ax.spines["top"].set_visible(False)
        tidy(twin)
        legend_beside(ax, [best, habit, limit, bars], gap=0.2)
        self.ax_, self.figure_ = ax, ax.figure
        return self
