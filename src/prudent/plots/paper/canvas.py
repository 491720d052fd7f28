"""What all pictures share: axes to draw on, and a style that survives printing in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prudent.errors import MissingExtraError

__all__ = ["ACTION_SHADES", "STYLES", "axes_for", "draw_lines", "tidy"]

#: Lines differ in brightness, dash and marker, so that colour is never needed to tell them apart.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#1f4e87", "linestyle": "-", "marker": "o"},
    {"color": "#d1682c", "linestyle": "--", "marker": "s"},
    {"color": "#6f9f6f", "linestyle": "-.", "marker": "^"},
    {"color": "#8c8c8c", "linestyle": ":", "marker": "D"},
)
ACTION_SHADES = ("#f7f7f7", "#e3e3e3", "#cccccc", "#b5b5b5")


def axes_for(ax: Any, count: int, width: float = 5.2, height: float = 4.0) -> list[Any]:
    """Return the axes given, one per panel, or a new figure with as many side by side."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "plot") from error
    if ax is None:
        _, made = plt.subplots(1, count, figsize=(width * count, height), layout="constrained", squeeze=False)
        return list(made[0])
    return list(ax) if count > 1 else [ax[0] if isinstance(ax, (list, tuple)) else ax]


def draw_lines(
    ax: Any,
    places: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    spreads: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Draw named lines, with a band of one spread on either side where there is one, and a legend."""
    for (name, values), style in zip(lines.items(), STYLES, strict=False):
        ax.plot(places, values, label=name, markersize=4.5, linewidth=1.6, **style)
        spread = (spreads or {}).get(name)
        if spread is not None:
            low, high = ([v + s * sign for v, s in zip(values, spread, strict=True)] for sign in (-1, 1))
            ax.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0)
    ax.legend(framealpha=0.9, edgecolor="none", fontsize=8)


def tidy(ax: Any, title: str, horizontal: str, vertical: str) -> None:
    """Label axes and take away what carries no information."""
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(horizontal)
    ax.set_ylabel(vertical)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
