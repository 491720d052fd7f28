"""Colours, hatches, labels and the base classes of all displays.

Colours are those of Okabe and Ito, which people with any of the common kinds
of colour vision tell apart; hatches and markers say the same without colour.
"""

from collections.abc import Sequence
from textwrap import fill
from typing import Any, Self

from prudent.errors import InputError, MissingExtraError

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#5F5F5F")
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
_MANY = 9


class Display:
    """What was drawn, and where.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def _finished(
        self,
        ax: Any,
        finding: str,
        detail: str = "",
        *,
        width: int = 72,
        heading: str | None = None,
    ) -> Self:
        """State the finding and what it rests on, put the legend to the right, take away the frame."""
        text = fill(finding, width)
        ax.set_title(f"{text}\n{fill(detail, width + 8)}" if detail else text, fontsize=10, loc="left")
        entries = ax.get_legend_handles_labels()[0]
        if entries:
            ax.legend(
                title=heading,
                loc="upper left",
                bbox_to_anchor=(1.025, 1.0),
                frameon=False,
                alignment="left",
                **({"fontsize": 7, "labelspacing": 0.3} if len(entries) > _MANY else {"fontsize": 9}),
            )
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ResultDisplay(Display):
    """A picture of one result of a function of the library.

    Parameters
    ----------
    result : what the function returns
    """

    _type: type
    _function: str

    def __init__(self, result: Any) -> None:
        if not isinstance(result, self._type):
            raise InputError(f"result must come from {self._function}; got {type(result).__name__}.")
        self.result = result


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

    few = count <= len(COLORS)
    return [to_rgb(COLORS[k] if few else colormaps["viridis"](k / (count - 1))) for k in range(count)]


def filling(position: int, count: int) -> dict[str, Any]:
    """Return colour and hatch of one of so many areas."""
    hatch = _HATCHES[position % len(_HATCHES)]
    return {"facecolor": action_colors(count)[position], "hatch": hatch, "edgecolor": "white", "linewidth": 0}


def legend_height(labels: Sequence[str]) -> float:
    """Return the inches that a legend of these labels takes, its heading included."""
    lines = sum(label.count("\n") + 1 for label in labels)
    return 0.7 + (0.135 if len(labels) > _MANY else 0.2) * lines


def wrapped(labels: Sequence[Any], width: int = 26) -> list[str]:
    """Break long labels into lines."""
    return [fill(str(label), width) or " " for label in labels]
