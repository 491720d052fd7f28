"""What robustness guarantees and what it costs as a guarantee is trusted less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from prudent.plots.canvas import STYLES, axes_for, tidy

__all__ = ["PriceDisplay"]


@dataclass(eq=False)
class PriceDisplay:
    """Utilities against slack.

    Parameters
    ----------
    slack : sequence of float
        Increasing, in outcome units.
    lines : mapping of name to one utility per slack
    spreads : mapping of name to one standard deviation per slack, optional
    title : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from prudent.plots import PriceDisplay
    >>> PriceDisplay([0.0, 0.1], {"guaranteed": [0.5, 0.4]}).plot().ax_.get_ylabel()
    'expected utility'
    """

    slack: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    spreads: Mapping[str, Sequence[float]] | None = None
    title: str = ""

    def plot(self, ax: Any = None) -> Self:
        """Draw on axes, or on a new figure."""
        (panel,) = axes_for(ax, 1)
        for (name, values), style in zip(self.lines.items(), STYLES, strict=False):
            panel.plot(self.slack, values, label=name, markersize=4.5, linewidth=1.6, **style)
            spread = (self.spreads or {}).get(name)
            if spread is not None:
                low, high = ([v + s * sign for v, s in zip(values, spread, strict=True)] for sign in (-1, 1))
                panel.fill_between(self.slack, low, high, color=style["color"], alpha=0.15, linewidth=0)
        panel.legend(frameon=False, fontsize=8)
        tidy(panel, self.title, "slack of the guarantee (outcome units)", "expected utility")
        self.ax_, self.figure_ = panel, panel.figure
        return self
