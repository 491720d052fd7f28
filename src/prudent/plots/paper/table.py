"""A table of utilities as a picture: one panel per column, one line per policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from prudent.plots.paper.canvas import axes_for, tidy

__all__ = ["TableDisplay"]


@dataclass(eq=False)
class TableDisplay:
    """Means with spreads per policy and column, published values beside them.

    Parameters
    ----------
    policies : sequence of str
    columns : mapping of title to one ``(low, high, spread, published)`` per policy
        Ends of a range, equal for a plain number; ``spread`` and ``published`` may be None.
    optimum : float, optional
        Drawn as a line in every panel but the first.
    title : str

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from prudent.plots.paper import TableDisplay
    >>> display = TableDisplay(["plug-in"], {"i.i.d.": [(0.46, 0.46, 0.02, 0.474)]}).plot()
    >>> display.axes_[0].get_title(loc="left")
    'i.i.d.'
    """

    policies: Sequence[str]
    columns: Mapping[str, Sequence[tuple[float, float, float | None, float | None]]]
    optimum: float | None = None
    title: str = ""

    def plot(self, ax: Any = None) -> Self:
        """Draw one panel per column on axes, or on a new figure."""
        axes = axes_for(ax, len(self.columns), width=3.3, height=0.42 * len(self.policies) + 1.9)
        places = range(len(self.policies))
        for number, (panel, (title, cells)) in enumerate(zip(axes, self.columns.items(), strict=True)):
            for place, (low, high, spread, published) in zip(places, cells, strict=True):
                panel.plot([low, high], [place, place], color="#1f4e87", linewidth=5, solid_capstyle="butt")
                panel.errorbar(
                    [low], [place], xerr=None if spread is None else [spread], fmt="o", color="#1f4e87",
                    markersize=5, capsize=2, linewidth=1,
                )  # fmt: skip
                if published is not None:
                    panel.plot([published], [place], "x", color="#d1682c", markersize=8, markeredgewidth=2)
            if self.optimum is not None and number:
                panel.axvline(self.optimum, color="black", linewidth=0.8, linestyle=(0, (1, 2)))
            panel.set_yticks(list(places), list(self.policies) if number == 0 else [""] * len(self.policies))
            panel.set_ylim(len(self.policies) - 0.5, -0.5)
            panel.grid(axis="x", linewidth=0.4, color="#cccccc")
            panel.tick_params(axis="x", labelsize=8)
            panel.locator_params(axis="x", nbins=4)
            tidy(panel, title, "expected utility", "")
        axes[0].figure.suptitle(self.title, fontsize=10, x=0.01, ha="left")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self
