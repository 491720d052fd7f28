"""The worst belief against the forecast, over the bands in which each action is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from prudent.plots.paper.canvas import ACTION_SHADES, STYLES, axes_for, tidy

__all__ = ["BeliefDisplay"]


@dataclass(eq=False)
class BeliefDisplay:
    """Worst beliefs ``q*(v)`` of one or more policies on one outcome coordinate, and what they play.

    Parameters
    ----------
    forecasts : sequence of float
    beliefs : mapping of name to one belief per forecast
    mixtures : mapping of name to one mixture per forecast
    actions : sequence of str
    bands : sequence of float
        Where the best action changes, from the lower to the upper end of the space.
    band_actions : sequence of int
        The action of each band.
    title : str

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from prudent.plots.paper import BeliefDisplay
    >>> display = BeliefDisplay([0.0, 1.0], {"{v}": [0.5, 0.5]}, {"{v}": [[1, 0], [0, 1]]}, ["wait", "act"],
    ...                         [0.0, 0.5, 1.0], [0, 1]).plot()
    >>> display.axes_[0].get_ylabel()
    'worst belief q*(v)'
    """

    forecasts: Sequence[float]
    beliefs: Mapping[str, Sequence[float]]
    mixtures: Mapping[str, Sequence[Sequence[float]]]
    actions: Sequence[str]
    bands: Sequence[float]
    band_actions: Sequence[int]
    title: str = ""

    def plot(self, ax: Any = None) -> Self:
        """Draw beliefs on the first axes and one panel of mixtures per policy, or on a new figure."""
        axes = axes_for(ax, 1 + len(self.mixtures), width=4.2)
        self._draw_beliefs(axes[0])
        for panel, (name, mixtures) in zip(axes[1:], self.mixtures.items(), strict=True):
            shares = [[row[action] for row in mixtures] for action in range(len(self.actions))]
            shades = ACTION_SHADES[:: max(1, len(ACTION_SHADES) // len(self.actions))]
            panel.stackplot(
                self.forecasts, *shares, labels=self.actions, colors=shades, edgecolor="black", linewidth=0.6
            )
            panel.set_xlim(self.forecasts[0], self.forecasts[-1])
            panel.set_ylim(0, 1)
            panel.legend(loc="lower right", fontsize=8, framealpha=0.9)
            tidy(panel, f"what is played under {name}", "forecast v", "probability of action")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _draw_beliefs(self, panel: Any) -> None:
        for low, high, action in zip(self.bands[:-1], self.bands[1:], self.band_actions, strict=True):
            panel.axhspan(low, high, color=ACTION_SHADES[action % len(ACTION_SHADES)], zorder=0, linewidth=0)
            panel.annotate(
                f"{self.actions[action]} best", (self.forecasts[-1], (low + high) / 2), xytext=(-4, 0),
                textcoords="offset points", ha="right", va="center", fontsize=8, color="#444444",
            )  # fmt: skip
        panel.plot(self.forecasts, self.forecasts, color="black", linewidth=0.8, linestyle=(0, (1, 2)), label="q = v")
        for (name, values), style in zip(self.beliefs.items(), STYLES, strict=False):
            panel.plot(
                self.forecasts, values, label=f"H = {name}", linewidth=1.8,
                color=style["color"], linestyle=style["linestyle"],
            )  # fmt: skip
        panel.set_xlim(self.forecasts[0], self.forecasts[-1])
        panel.set_ylim(self.bands[0], self.bands[-1])
        panel.legend(loc="upper left", fontsize=8, framealpha=0.9)
        tidy(panel, self.title, "forecast v", "worst belief q*(v)")
