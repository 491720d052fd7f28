"""The figures of a reproduction, as PNG and SVG: every one is drawn from computed numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from prudent.files import whole_file
from prudent.solvers import Game
from prudent.solvers.game import upper_envelope
from reproduction.cases import BIKE, HOUSING, paper_problem
from reproduction.charts import belief_chart, chain_chart, slack_chart, table_chart
from reproduction.table_one import COLUMNS, MIXED_ON_TEST

__all__ = ["save_figures"]

_FILES = {BIKE: "bike", HOUSING: "housing"}


def save_figures(document: dict[str, Any], folder: Path) -> list[Path]:
    """Draw every figure and write it as PNG and SVG; the same numbers give the same files."""
    written = []
    with mpl.rc_context({"svg.hashsalt": "prudent", "svg.fonttype": "path"}):
        for name, figure in _figures(document):
            for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
                written.append(folder / f"{name}.{suffix}")
                with whole_file(written[-1]) as stream:
                    figure.savefig(stream, format=suffix, **options)
            plt.close(figure)
    return written


def _figures(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield file names and figures: per data set the table, interpolation, transition, beliefs and price."""
    count = len(document["experiment"]["seeds"])
    over = f"mean ± standard deviation over {count} splits" if count > 1 else "one split"
    for name, short in _FILES.items():
        case = document["data_sets"][name]
        yield f"{short}-table", _table(name, case["tables"]["{v}"], over)
        yield f"{short}-interpolation", _interpolation(name, case["sweeps"]["interpolation"]["polynomials"], over)
        yield f"{short}-bins", _bins(name, case["sweeps"]["bins"], over)
        yield f"{short}-transition", _transition(name, case, over)
        yield f"{short}-beliefs", _beliefs(name, case)
        yield f"{short}-price", _price(name, case["sweeps"]["slackened"], over)


def _table(name: str, table: dict[str, Any], over: str) -> Any:
    policies = [policy for policy in table["policies"] if policy != MIXED_ON_TEST]
    columns = {
        title: [_cell(table["policies"][policy][column]) for policy in policies] for column, title in COLUMNS.items()
    }
    title = f"{name}, H = {{v}}: {over}; cross: published; dotted line: the optimum V*"
    return table_chart(policies, columns, table["optimum"]["mean"], title)


def _cell(cell: dict[str, Any]) -> tuple[float, float, float | None, float | None]:
    high = cell.get("high", cell)
    return cell["mean"], high["mean"], cell["sd"], cell["published"]


def _interpolation(name: str, steps: list[dict[str, Any]], over: str) -> Any:
    return chain_chart(
        [step["name"] for step in steps],
        {
            "guaranteed by the robust policy": _means(steps, "optimum"),
            "guaranteed by plug-in": _means(steps, "plug_in_worst"),
        },
        {"robust policy": _means(steps, "mean_action"), "plug-in": _means(steps, "plug_in_mean_action")},
        "mean action",
        {"guaranteed by the robust policy": _spreads(steps, "optimum")},
        f"{name}: H from nothing to everything\n{over}",
    )


def _bins(name: str, steps: list[dict[str, Any]], over: str) -> Any:
    return chain_chart(
        [str(step["bins"]) for step in steps],
        {
            "optimum": _means(steps, "optimum"),
            "robust policy, fitted on calibration forecasts": _means(steps, "own_worst"),
            "plug-in": _means(steps, "plug_in_worst"),
        },
        {"robust policy": _means(steps, "distance")},
        "share of decisions unlike plug-in",
        {"robust policy": _spreads(steps, "distance")},
        f"{name}: own worst case by number of bins\n{over}",
        "number of bins",
    )


def _transition(name: str, case: dict[str, Any], over: str) -> Any:
    steps = case["sweeps"]["transition"]
    return chain_chart(
        [step["name"] for step in steps],
        {
            "guaranteed by the robust policy": _means(steps, "optimum"),
            "guaranteed by plug-in": _means(steps, "plug_in_worst"),
        },
        {"robust policy": _means(steps, "distance")},
        "distance from plug-in",
        {
            "guaranteed by the robust policy": _spreads(steps, "optimum"),
            "robust policy": _spreads(steps, "distance"),
        },
        f"{name}: decision tests one by one, then more\n{over}; dotted line: all decision tests",
        threshold=len(case["actions"]),
    )


def _beliefs(name: str, case: dict[str, Any]) -> Any:
    curves = case["belief_curves"]
    envelope = upper_envelope(Game.of_problem(paper_problem(name)))
    families = [key for key in curves if key.startswith("{")]
    return belief_chart(
        curves["forecasts"],
        {family: curves[family]["beliefs"] for family in families},
        {family: curves[family]["mixtures"] for family in families},
        case["actions"],
        envelope.points.tolist(),
        envelope.actions.tolist(),
        f"{name}: worst belief, split {curves['seed']}",
    )


def _price(name: str, steps: list[dict[str, Any]], over: str) -> Any:
    lines = {
        "robust, guaranteed": "own_worst",
        "plug-in, guaranteed": "plug_in_worst",
        "robust, i.i.d.": "iid",
        "plug-in, forecasts right": "plug_in_nominal",
    }
    return slack_chart(
        [step["slack"] for step in steps],
        {title: _means(steps, key) for title, key in lines.items()},
        {"robust, guaranteed": _spreads(steps, "own_worst")},
        f"{name}: the price of robustness, H = {{v}}\n{over}",
    )


def _means(steps: list[dict[str, Any]], key: str) -> list[float]:
    return [step[key]["mean"] for step in steps]


def _spreads(steps: list[dict[str, Any]], key: str) -> list[float]:
    return [step[key]["sd"] or 0.0 for step in steps]
