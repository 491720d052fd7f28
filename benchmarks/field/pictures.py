"""Two pictures: gain against harm, and what was promised against what came."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import pandas as pd
from matplotlib import pyplot as plt

from benchmarks.field.methods import advice, advice_by_rows, constant, follow, hindsight, robust
from benchmarks.field.report import ordered
from benchmarks.field.summary import kept, summarise

_OUTSIDE = (hindsight.NAME, constant.NAME, robust.NAME)  # far from the others
_OWN = (advice.NAME, advice_by_rows.NAME)


def draw(results: pd.DataFrame, folder: Path, stem: str = "field") -> None:
    """Write ``<stem>.png`` and ``<stem>-promises.png``."""
    _gain_and_harm(results, folder / f"{stem}.png")
    _promises(results, folder / f"{stem}-promises.png")


def _gain_and_harm(results: pd.DataFrame, path: Path) -> None:
    figure, axis = plt.subplots(figsize=(8.5, 4.6))
    everywhere = results["source"].nunique()
    for name in ordered(results):
        found = summarise(results[results["method"] == name])
        if name in _OUTSIDE or found["sources"] < everywhere - 1:
            continue
        own, gain = name in _OWN, found["gain"]
        x, color = 100 * found["harmed"], "tab:red" if own else "0.35"
        axis.errorbar(x, gain.mean, yerr=gain.error, color=color, marker="o" if own else "s", capsize=3, zorder=3)
        axis.annotate(name, (x, gain.mean), (6, 5), textcoords="offset points", color=color, fontsize=9)
    axis.axhline(0, color="0.8", zorder=0)
    axis.set_xlabel("eras in which it earned less than following the forecast, by more than 2% of the cost (%)")
    axis.set_ylabel("gain over following, in units of the cost")
    axis.set_title(f"{everywhere} sources of real forecasts, decided era by era; bars: one standard error", fontsize=10)
    axis.margins(x=0.15)
    figure.tight_layout()
    _save(figure, path)


def _promises(results: pd.DataFrame, path: Path) -> None:
    promised = results[results["promise"].notna()]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharex=True, sharey=True)
    early = promised[promised["method"] == advice.NAME][["source", "forecaster", "setting", "era"]]
    for axis, name in zip(axes, _OWN, strict=True):
        own = promised[promised["method"] == name].merge(early)
        for number, (source, part) in enumerate(own.groupby("source")):
            style = {"marker": "osD^v<>ph*X"[number % 11], "color": f"C{number % 10}", "alpha": 0.5, "s": 14}
            axis.scatter(part["promise"], part["utility"], label=source, linewidths=0, **style)
        axis.axline((0, 0), slope=1, color="0.3", linewidth=1)
        axis.set_title(f"{name}: {kept(own).mean():.0%} of {len(own)} kept", fontsize=10)
        axis.set_xlabel("promised for the next era, units of the cost")
    axes[0].set_ylabel("realised in it")
    axes[0].set_xlim(-5, 1)
    axes[0].set_ylim(-5, 1)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    _save(figure, path)


def _save(figure: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    plt.close(figure)


__all__ = ["draw", "follow"]
