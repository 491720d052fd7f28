"""Time against the number of rows, one panel per family; told apart by marks and dashes, so grey print will do."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from benchmarks.cases import FAMILIES
from benchmarks.child import Outcome
from benchmarks.results import PRUDENT, Results
from benchmarks.verdict import fastest, growth_exponents

__all__ = ["draw"]

_COLUMNS = 4


def draw(results: Results, directory: Path, stem: str) -> None:
    """Write the figure as PNG and SVG; nothing if no family was measured."""
    numbers = [number for number in FAMILIES if any(item.done for item in results.of(number))]
    if not numbers:
        return
    columns = min(_COLUMNS, len(numbers))
    rows = -(-len(numbers) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 3.1 * rows + 0.6), sharey=True, squeeze=False)
    flat = axes.reshape(-1)
    for axis, number in zip(flat, numbers, strict=False):
        _panel(axis, results, number)
    for axis in flat[len(numbers) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds, model and solve")
    handles, labels = flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.6 / (3.1 * rows + 0.6), 1, 1))
    for suffix in ("png", "svg"):
        temporary = directory / f".{stem}.part.{suffix}"
        # Without a date the same numbers give the same file.
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
        os.replace(temporary, directory / f"{stem}.{suffix}")
    plt.close(figure)


def _panel(axis: Axes, results: Results, number: int) -> None:
    items = results.of(number)
    others = [item for item in items if item.contestant != PRUDENT]
    finished = [item for item in others if item.done]
    axis.plot(
        [item.n for item in finished],
        [item.seconds for item in finished],
        linestyle="none",
        marker="x",
        markersize=4,
        color="0.65",
        label="every competitor",
    )
    sizes = sorted({item.n for item in finished})
    for as_written, label, color, dashes, marker in (
        (True, "fastest as a user writes it", "0.35", "--", "s"),
        (False, "fastest in any formulation", "0.5", "-.", "^"),
    ):
        best = [item for n in sizes if (item := fastest(results, number, n, as_written)) is not None]
        axis.plot(
            [item.n for item in best], [item.seconds for item in best], dashes, color=color, marker=marker, label=label
        )
    late = [item.n for item in others if item.outcome == Outcome.TIME_OUT]
    axis.plot(late, [results.limit] * len(late), linestyle="none", marker=10, color="0.65", label="time-out")
    own = [item for item in items if item.contestant == PRUDENT and item.done]
    axis.plot([item.n for item in own], [item.seconds for item in own], "-", color="0", marker="o", label=PRUDENT)
    exponent = growth_exponents(results, number).get(PRUDENT)
    title = f"{number}. {FAMILIES[number].name}"
    axis.set_title(title + (f"\nPrudent: n^{exponent:.2f}" if exponent is not None else ""), fontsize=9)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("rows n")
    axis.grid(color="0.9")
