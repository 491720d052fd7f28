"""Charts of numbers over many splits, readable in grey: numbers in, matplotlib figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt

__all__ = ["belief_chart", "chain_chart", "slack_chart", "table_chart"]

#: Lines differ in brightness, dash and marker, so that colour is never needed to tell them apart.
_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#1f4e87", "linestyle": "-", "marker": "o"},
    {"color": "#d1682c", "linestyle": "--", "marker": "s"},
    {"color": "#6f9f6f", "linestyle": "-.", "marker": "^"},
    {"color": "#8c8c8c", "linestyle": ":", "marker": "D"},
)
_SHADES = ("#f7f7f7", "#e3e3e3", "#cccccc", "#b5b5b5")
_DOTTED: dict[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": (0, (1, 2))}
_LONGEST_LEVEL_LABEL = 4

Lines = Mapping[str, Sequence[float]]


def table_chart(
    policies: Sequence[str],
    columns: Mapping[str, Sequence[tuple[float, float, float | None, float | None]]],
    optimum: float,
    title: str,
) -> Any:
    """Draw one panel per column with ``(low, high, spread, published)`` per policy.

    ``low`` and ``high`` are ends of a range, equal for a plain number; ``spread`` and ``published`` may be None. The
    optimum is a line in every panel but the first.
    """
    figure, panels = _panels(len(columns), width=3.3, height=0.42 * len(policies) + 1.9)
    places = range(len(policies))
    for number, (panel, (name, cells)) in enumerate(zip(panels, columns.items(), strict=True)):
        for place, (low, high, spread, published) in zip(places, cells, strict=True):
            panel.plot([low, high], [place, place], color="#1f4e87", linewidth=5, solid_capstyle="butt")
            error = None if spread is None else [spread]
            panel.errorbar([low], [place], xerr=error, fmt="o", color="#1f4e87", markersize=5, capsize=2, linewidth=1)
            if published is not None:
                panel.plot([published], [place], "x", color="#d1682c", markersize=8, markeredgewidth=2)
        if number:
            panel.axvline(optimum, **_DOTTED)
        panel.set_yticks(list(places), list(policies) if number == 0 else [""] * len(policies))
        panel.set_ylim(len(policies) - 0.5, -0.5)
        panel.grid(axis="x", linewidth=0.4, color="#cccccc")
        panel.tick_params(axis="x", labelsize=8)
        panel.locator_params(axis="x", nbins=4)
        _label(panel, name, "expected utility", "")
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure


def chain_chart(
    steps: Sequence[str],
    utilities: Lines,
    others: Lines,
    other_title: str,
    spreads: Lines,
    title: str,
    step_title: str = "",
    threshold: int | None = None,
) -> Any:
    """Draw lines along a chain of guarantees: utilities on the left, another quantity on the right.

    Lines with a spread get a band of one standard deviation; a vertical line marks the step ``threshold``.
    """
    figure, panels = _panels(2)
    places = range(len(steps))
    for panel, lines in zip(panels, (utilities, others), strict=True):
        panel.margins(y=0.3)  # room for the legend
        _draw_lines(panel, places, lines, spreads)
        panel.set_xticks(list(places), list(steps), fontsize=8)
        if max(map(len, steps)) > _LONGEST_LEVEL_LABEL:
            panel.tick_params(axis="x", rotation=35)
            for label in panel.get_xticklabels():
                label.set_ha("right")
        if threshold is not None:
            panel.axvline(threshold, **_DOTTED)
    _label(panels[0], title, step_title, "expected utility")
    _label(panels[1], "", step_title, other_title)
    return figure


def slack_chart(slack: Sequence[float], lines: Lines, spreads: Lines, title: str) -> Any:
    """Draw utilities against slack in outcome units."""
    figure, (panel,) = _panels(1)
    _draw_lines(panel, slack, lines, spreads)
    _label(panel, title, "slack of the guarantee (outcome units)", "expected utility")
    return figure


def belief_chart(
    forecasts: Sequence[float],
    beliefs: Lines,
    mixtures: Mapping[str, Sequence[Sequence[float]]],
    actions: Sequence[str],
    bands: Sequence[float],
    band_actions: Sequence[int],
    title: str,
) -> Any:
    """Draw worst beliefs ``q*(v)`` over the bands in which each action is best, and what is played, per guarantee."""
    figure, panels = _panels(1 + len(mixtures), width=4.2)
    for low, high, action in zip(bands[:-1], bands[1:], band_actions, strict=True):
        panels[0].axhspan(low, high, color=_SHADES[action % len(_SHADES)], zorder=0, linewidth=0)
        middle = (forecasts[-1], (low + high) / 2)
        style = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 8, "color": "#444444"}
        panels[0].annotate(f"{actions[action]} best", middle, xytext=(-4, 0), **style)
    panels[0].plot(forecasts, forecasts, label="q = v", **_DOTTED)
    for (name, values), line in zip(beliefs.items(), _STYLES, strict=False):
        panels[0].plot(forecasts, values, label=f"H = {name}", linewidth=1.8, **{**line, "marker": None})
    panels[0].set_ylim(bands[0], bands[-1])
    panels[0].legend(loc="upper left", fontsize=8, framealpha=0.9)
    _label(panels[0], title, "forecast v", "worst belief q*(v)")
    shades = _SHADES[:: max(1, len(_SHADES) // len(actions))]
    for panel, (name, rows) in zip(panels[1:], mixtures.items(), strict=True):
        shares = list(zip(*rows, strict=True))
        panel.stackplot(forecasts, *shares, labels=actions, colors=shades, edgecolor="black", linewidth=0.6)
        panel.set_ylim(0, 1)
        panel.legend(loc="lower right", fontsize=8, framealpha=0.9)
        _label(panel, f"what is played under {name}", "forecast v", "probability of action")
    for panel in panels:
        panel.set_xlim(forecasts[0], forecasts[-1])
    return figure


def _panels(count: int, width: float = 5.2, height: float = 4.0) -> tuple[Any, list[Any]]:
    figure, made = plt.subplots(1, count, figsize=(width * count, height), layout="constrained", squeeze=False)
    return figure, list(made[0])


def _draw_lines(panel: Any, places: Sequence[float], lines: Lines, spreads: Lines) -> None:
    for (name, values), style in zip(lines.items(), _STYLES, strict=False):
        panel.plot(places, values, label=name, markersize=4.5, linewidth=1.6, **style)
        if name in spreads:
            low, high = ([v + s * sign for v, s in zip(values, spreads[name], strict=True)] for sign in (-1, 1))
            panel.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0)
    panel.legend(framealpha=0.9, edgecolor="none", fontsize=8)


def _label(panel: Any, title: str, horizontal: str, vertical: str) -> None:
    panel.set_title(title, fontsize=10, loc="left")
    panel.set(xlabel=horizontal, ylabel=vertical)
    panel.spines[["top", "right"]].set_visible(False)
