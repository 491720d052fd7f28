"""What robustness guarantees and what it costs as a guarantee is trusted less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from prudent.plots.paper.canvas import axes_for, draw_lines, tidy

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
    >>> from prudent.plots.paper import PriceDisplay
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
        draw_lines(panel, self.slack, self.lines, self.spreads)
        tidy(panel, self.title, "slack of the guarantee (outcome units)", "expected utility")
        self.ax_, self.figure_ = panel, panel.figure
        return self
