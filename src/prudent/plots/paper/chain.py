"""Utility and a second quantity along a chain of growing guarantees: interpolation and the sharp transition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from prudent.errors import InputError
from prudent.plots.paper.canvas import axes_for, draw_lines, tidy

__all__ = ["ChainDisplay"]

_SHORT = 4


@dataclass(eq=False)
class ChainDisplay:
    """Lines along named steps, two panels: utilities on the left, another quantity on the right.

    Parameters
    ----------
    steps : sequence of str
        What is known at each step, from little to much.
    utilities : mapping of line name to one value per step
    others : mapping of line name to one value per step
    other_title : str
        What the right panel shows.
    spreads : mapping of line name to one standard deviation per step, optional
        Drawn as a band.
    title : str
    step_title : str
        What a step is.
    threshold : int, optional
        Number of the step from which best responding is optimal; marked by a vertical line.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from prudent.plots.paper import ChainDisplay
    >>> display = ChainDisplay(["nothing", "everything"], {"guaranteed": [0.0, 0.5]}, {"robust": [0.8, 1.2]},
    ...                        "mean action").plot()
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['expected utility', 'mean action']
    """

    steps: Sequence[str]
    utilities: Mapping[str, Sequence[float]]
    others: Mapping[str, Sequence[float]]
    other_title: str
    spreads: Mapping[str, Sequence[float]] | None = None
    title: str = ""
    step_title: str = ""
    threshold: int | None = None

    def __post_init__(self) -> None:
        for name, values in {**self.utilities, **self.others, **(self.spreads or {})}.items():
            if len(values) != len(self.steps):
                raise InputError(f"{name!r} must have one value per step, {len(self.steps)}; got {len(values)}.")

    def plot(self, ax: Any = None) -> Self:
        """Draw on two axes, or on a new figure."""
        axes = axes_for(ax, 2)
        places = range(len(self.steps))
        for panel, lines in zip(axes, (self.utilities, self.others), strict=True):
            panel.margins(y=0.3)  # room for the legend
            draw_lines(panel, places, lines, self.spreads)
            panel.set_xticks(list(places), list(self.steps), fontsize=8)
            if max(map(len, self.steps)) > _SHORT:
                panel.tick_params(axis="x", rotation=35)
                for label in panel.get_xticklabels():
                    label.set_ha("right")
            if self.threshold is not None:
                panel.axvline(self.threshold, color="black", linewidth=0.8, linestyle=(0, (1, 2)))
        tidy(axes[0], self.title, self.step_title, "expected utility")
        tidy(axes[1], "", self.step_title, self.other_title)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self
