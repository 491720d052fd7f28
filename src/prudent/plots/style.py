"""Colours, hatches and frames that all displays share.

Colours are those of Okabe and Ito, which people with any of the common kinds
of colour vision tell apart; hatches and markers say the same without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from prudent.errors import MissingExtraError

__all__ = [
    "COLORS",
    "HATCHES",
    "MARKERS",
    "action_colors",
    "axes",
    "legend_beside",
    "legend_height",
    "percent",
    "tidy",
    "title",
    "wrapped",
]

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#5F5F5F")
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return the axes given, or new ones of a size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "plot") from error
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax


def action_colors(count: int) -> list[tuple[float, float, float]]:
    """Return one colour per action: the eight named ones, or steps of viridis for more."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if count <= len(COLORS):
        return [to_rgb(color) for color in COLORS[:count]]
    return [to_rgb(colormaps["viridis"](k / (count - 1))) for k in range(count)]


def legend_beside(
    ax: Any, handles: Sequence[Any] | None = None, *, heading: str | None = None, gap: float = 0.025
) -> None:
    """Put the legend to the right of the axes, in smaller letters where it is long."""
    entries = list(ax.get_legend_handles_labels()[0]) if handles is None else list(handles)
    small = len(entries) > 9
    legend = ax.legend(
        handles=entries,
        title=heading,
        loc="upper left",
        bbox_to_anchor=(1.0 + gap, 1.0),
        frameon=False,
        fontsize=7 if small else 9,
        labelspacing=0.3 if small else 0.5,
    )
    legend.set_alignment("left")


def legend_height(labels: Sequence[str]) -> float:
    """Return the inches that a legend of these labels takes, its heading included."""
    lines = sum(label.count("\n") + 1 for label in labels)
    return 0.7 + (0.135 if len(labels) > 9 else 0.2) * lines


def tidy(ax: Any) -> None:
    """Take away the frame that carries nothing."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def title(ax: Any, finding: str, detail: str = "", *, width: int = 72) -> None:
    """State the finding, and below it on what it rests."""
    text = fill(finding, width)
    ax.set_title(f"{text}\n{fill(detail, width + 8)}" if detail else text, fontsize=10, loc="left")


def wrapped(labels: Sequence[Any], width: int = 26) -> list[str]:
    """Break long labels into lines."""
    return [fill(str(label), width) or " " for label in labels]


def percent(share: float) -> str:
    """Write a share so that 0% and 100% mean none and all."""
    if 0 < share < 0.01:
        return "under 1%"
    if 0.99 < share < 1:
        return "over 99%"
    return f"{100 * share:.0f}%"
