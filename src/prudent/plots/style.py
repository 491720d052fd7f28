"""Colours, hatches, labels, titles and legends of all pictures.

Colours are those of Okabe and Ito, which people with any of the common kinds
of colour vision tell apart; hatches and markers say the same without colour.
"""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from prudent.errors import InputError, MissingExtraError

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#5F5F5F")
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
_TITLE_WIDTH = 56


def axes(ax: Any, height: float, legend: Sequence[str] = ()) -> Any:
    """Return the axes given, or new ones of at least a height in inches, and high enough for a legend."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "plot") from error
    if ax is None:
        lines = sum(label.count("\n") + 1 for label in legend)
        _, ax = plt.subplots(figsize=(8.0, max(height, 0.7 + 0.2 * lines)), layout="constrained")
    return ax


def finish(ax: Any, finding: str, detail: str = "") -> Any:
    """State the finding and what it rests on, put the legend to the right, remove the frame; return the axes."""
    title = "\n".join(fill(text, _TITLE_WIDTH) for text in (finding, detail) if text)
    ax.set_title(title, fontsize=10, loc="left")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.025, 1.0))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def filling(position: int) -> dict[str, Any]:
    """Return colour and hatch of an area."""
    turn, color = divmod(position, len(COLORS))
    return {"facecolor": COLORS[color], "hatch": _HATCHES[(turn + color) % 8], "edgecolor": "white", "linewidth": 0}


def wrapped(labels: Sequence[Any], width: int = 26) -> list[str]:
    """Break long labels into lines."""
    return [fill(str(label), width) or " " for label in labels]


def require(value: Any, kind: type, rule: str) -> None:
    """Refuse to draw something else."""
    if not isinstance(value, kind):
        raise InputError(f"{rule}; got {type(value).__name__}.")
