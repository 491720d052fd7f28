"""Two pictures: gain against harm, and what was promised against what came."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import pandas as pd
from matplotlib import pyplot as plt

from benchmarks.field.methods import advice, advice_by_rows, constant, hindsight, robust
from benchmarks.field.report import ordered
from benchmarks.field.summary import by_source, kept, summarise
from prudent.plots.style import COLORS

_OUTSIDE = (hindsight.NAME, constant.NAME, robust.NAME)  # far from the others
_OWN = (advice.NAME, advice_by_rows.NAME)


def draw(results: pd.DataFrame, folder: Path, stem: str = "field") -> None:
    """Write ``<stem>.png`` and ``<stem>-promises.png``."""
    _gain_and_harm(results, folder / f"{stem}.png")
    _promises(results, folder / f"{stem}-promises.png")


def _gain_and_harm(results: pd.DataFrame, path: Path) -> None:
    figure, axis = plt.subplots(figsize=(8.5, 4.6))
    everywhere = results["source"].nunique()
    every = {name: summarise(results[results["method"] == name]) for name in ordered(results)}
    near = {name: found for name, found in every.items() if name not in _OUTSIDE and found["sources"] >= everywhere - 1}
    for number, name in enumerate(sorted(near, key=lambda name: near[name]["harmed"])):
        own, gain, harmed = name in _OWN, near[name]["gain"], 100 * near[name]["harmed"]
        color = COLORS[5] if own else "0.35"
        axis.errorbar(harmed, gain.mean, yerr=gain.error, color=color, marker="o" if own else "s", capsize=3)
        side = 1 if number % 2 else -1  # labels by turns above and below, so that neighbours do not meet
        where = {"xytext": (0, 5 * side), "textcoords": "offset points", "ha": "center", "zorder": 4}
        where |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}}
        axis.annotate(
            name, (harmed, gain.mean + side * gain.error), color=color, va="bottom" if side > 0 else "top", **where
        )
    axis.axhline(0, color="0.8", zorder=0)
    axis.set_xlabel("eras in which it earned less than following the forecast, by more than 2% of the cost (%)")
    axis.set_ylabel("gain over following, in units of the cost")
    axis.set_title(f"{everywhere} sources of real forecasts, decided era by era; bars: one standard error", fontsize=10)
    axis.margins(0.12)
    figure.tight_layout()
    _save(figure, path)


def _promises(results: pd.DataFrame, path: Path) -> None:
    promised = results[results["promise"].notna()]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), sharex=True, sharey=True)
    same = promised[promised["method"] == advice.NAME][["source", "forecaster", "setting", "era"]]
    for axis, name in zip(axes, _OWN, strict=True):
        own = promised[promised["method"] == name].merge(same)
        for number, (source, part) in enumerate(own.groupby("source")):
            style = {"marker": "osD^v<>ph*X"[number % 11], "color": COLORS[number % len(COLORS)], "alpha": 0.5, "s": 14}
            axis.scatter(part["promise"], part["utility"], label=source, linewidths=0, **style)
        axis.axline((0, 0), slope=1, color="0.3", linewidth=1)
        axis.set_title(f"{name}: {by_source(own, kept(own)):.0%} kept, sources alike", fontsize=10)
        axis.set_xlabel("promised for the next era, units of the cost")
    axes[0].set_ylabel("realised in it")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    _save(figure, path)


def _save(figure: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    plt.close(figure)
