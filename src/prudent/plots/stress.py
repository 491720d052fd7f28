"""A stress test as bars: every policy in every world."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from prudent.errors import InputError
from prudent.plots.style import HATCHES, action_colors, axes, legend_beside, tidy, title, wrapped
from prudent.stress import StressTest, stress_test
from prudent.writing import written

__all__ = ["StressTestDisplay"]


class StressTestDisplay:
    """Expected utility of policies, world by world.

    Parameters
    ----------
    result : StressTest

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import StressTestDisplay
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    >>> forecasts, guarantee = np.random.default_rng(0).random(300), prudent.guarantees.SelfOrthogonal()
    >>> policies = {"plug-in": prudent.PlugInPolicy(problem), "safety": prudent.SafetyPolicy(problem)}
    >>> StressTestDisplay.from_policies(policies, forecasts, guarantee=guarantee).ax_.get_xlabel()
    'expected utility'
    """

    def __init__(self, result: StressTest) -> None:
        if not isinstance(result, StressTest):
            raise InputError(f"result must come from stress_test; got {type(result).__name__}.")
        self.result = result

    @classmethod
    def from_policies(
        cls, policies: Any, forecasts: Any, outcomes: Any = None, *, ax: Any = None, **options: Any
    ) -> Self:
        """Compute and draw; options go to :func:`prudent.stress_test`."""
        return cls(stress_test(policies, forecasts, outcomes, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw one group of bars per world."""
        result = self.result
        columns, policies = result.columns, result.names
        labels = wrapped(list(columns), 26)
        lines = sum(max(1.4, label.count("\n") + 1.0, 0.62 * len(policies)) for label in labels)
        ax = axes(ax, (8.0, 1.5 + 0.32 * lines))
        height = 0.82 / len(policies)
        colors = action_colors(len(policies))
        names = wrapped(policies)
        for i, name in enumerate(names):
            places = np.arange(len(columns)) + (i - (len(policies) - 1) / 2) * height
            values = [float(values[i]) for values in columns.values()]
            ax.barh(
                places,
                values,
                height=0.94 * height,
                color=colors[i],
                hatch=HATCHES[i % len(HATCHES)],
                edgecolor="white",
                linewidth=0,
                label=name,
            )
            if len(policies) <= 6:
                for place, value in zip(places, values, strict=True):
                    ax.annotate(
                        written(value, 3),
                        (value, place),
                        xytext=(3 if value >= 0 else -3, 0),
                        va="center",
                        textcoords="offset points",
                        ha="left" if value >= 0 else "right",
                        fontsize=8,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
                    )
        ax.axvline(result.optimum.lower, color="black", linestyle=":", linewidth=1.2, label="best possible guarantee")
        ax.axvline(0, color="0.5", linewidth=0.8)
        ax.set_yticks(range(len(columns)), labels)
        ax.invert_yaxis()
        ax.margins(x=0.1)
        ax.set_xlabel("expected utility")
        best, worst = int(result.worst.argmax()), int(result.worst.argmin())
        if best == worst or np.ptp(result.worst) < 1e-9:
            finding = f"In its worst world {policies[best]} still gets {written(result.worst[best], 3)}"
        else:
            finding = (
                f"In its own worst world {policies[best]} still gets {written(result.worst[best], 3)}, "
                f"{policies[worst]} {written(result.worst[worst], 3)}"
            )
        title(ax, finding)
        tidy(ax)
        legend_beside(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
