"""Pictures of results: an audit as a forest plot, the ladder of guarantees, a stress test as bars, a backtest."""

from typing import Any

import numpy as np

from prudent.adversary.stress_test import StressTest
from prudent.advice import Backtest
from prudent.evidence.audits import Audit
from prudent.evidence.ladder import GuaranteeLadder
from prudent.formatting import format_number
from prudent.plots.style import COLORS, axes, filling, finish, require, wrapped


def plot_audit(result: Audit, ax: Any = None) -> Any:
    """Draw estimates, simultaneous intervals and slack: a row per moment, at most the thirty with smallest p-values.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts).astype(float)
    >>> result = prudent.audit(None, forecasts, outcomes, guarantee="bins:5")
    >>> prudent.plots.plot_audit(result).get_xlabel()
    'E[h(v) (Y - v)], in units of test times outcome'
    """
    require(result, Audit, "result must come from audit")
    names, rejected = result.moment_names, set(result.rejected)
    order = np.sort(np.argsort(result.p_values, kind="stable")[:30])
    labels = wrapped([names[k] for k in order], 34)
    ax = axes(ax, 2.2 + 0.4 * len(order))
    # Slack is in scaled units; the picture shows it in those of the moments.
    reach = (result.slack.reshape(-1) * result.measured.tests.scales)[order]
    ax.barh(range(len(order)), 2 * reach, left=-reach, height=0.62, color="0.9")
    for place, k in enumerate(order):
        color, marker, style = (COLORS[5], "X", "--") if names[k] in rejected else (COLORS[0], "o", "-")
        ax.plot(result.intervals[k], [place, place], color=color, linewidth=2, linestyle=style)
        ax.plot(result.estimates[k], place, marker=marker, color=color, markersize=7)
    ax.axvline(0, color="black", linewidth=1)
    ax.set_yticks(range(len(order)), labels)
    ax.set(ylim=(len(order) - 0.4, -0.6), xlabel="E[h(v) (Y - v)], in units of test times outcome")
    hidden = f"; {len(names) - len(order)} with larger p-values not shown" if len(names) > len(order) else ""
    return finish(
        ax,
        f"{len(rejected)} of {len(names)} moments are shown to be violated{' (crosses, dashed)' if rejected else ''}",
        f"intervals hold for all at once with {100 * result.confidence:g}% confidence, {result.n_rows:,} rows; "
        f"grey: slack around zero{hidden}",
    )


def plot_ladder(result: GuaranteeLadder, ax: Any = None) -> Any:
    """Draw the guaranteed utility of each guarantee, and what the same policy gets if forecasts are right.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts).astype(float)
    >>> prudent.plots.plot_ladder(prudent.guarantee_ladder(problem, forecasts, outcomes)).get_xlabel()
    'expected utility'
    """
    require(result, GuaranteeLadder, "result must come from guarantee_ladder")
    rungs, best = result.rungs, result.best
    ax, places = axes(ax, 0.55 * len(rungs) + 1.6), range(len(rungs))
    values = {"guaranteed": [r.guaranteed for r in rungs], "if the forecasts are right": [r.nominal for r in rungs]}
    ax.hlines(places, *values.values(), color="0.8")
    for label, marker, color in zip(values, "Do", (COLORS[0], COLORS[5]), strict=True):
        ax.plot(values[label], places, marker, color=color, label=label)
    plug_in = best.nominal + best.given_up
    ax.axvline(plug_in, color=COLORS[5], linestyle=":", linewidth=1, label="following the forecast,\nif it is right")
    ax.set_yticks(places, [rung.name if rung.holds else f"{rung.name} (violated)" for rung in rungs])
    ax.get_yticklabels()[rungs.index(best)].set_fontweight("bold")
    ax.set_xlabel("expected utility")
    return finish(
        ax,
        f"What each guarantee is worth; best: {best.name!r}, {format_number(best.guaranteed, 3)}",
        f"guaranteed with {100 * result.confidence:g}% confidence, {result.n_rows:,} rows",
    )


def plot_stress_test(result: StressTest, ax: Any = None) -> Any:
    """Draw expected utilities of policies: one group of bars per world.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    >>> policies = {"plug-in": prudent.PlugInPolicy(problem), "safety": prudent.SafetyPolicy(problem)}
    >>> result = prudent.stress_test(policies, np.linspace(0, 1, 300), guarantee="self-orthogonal")
    >>> prudent.plots.plot_stress_test(result).get_xlabel()
    'expected utility'
    """
    require(result, StressTest, "result must come from stress_test")
    columns, policies = dict(result.columns), result.names
    del columns["policy"]
    labels = wrapped(list(columns), 26)
    ax = axes(ax, 1.5 + 0.22 * len(columns) * max(len(policies), 2))
    height = 0.82 / len(policies)
    for i, name in enumerate(wrapped(policies)):
        places = np.arange(len(columns)) + (i - (len(policies) - 1) / 2) * height
        values = [float(values[i]) for values in columns.values()]
        bars = ax.barh(places, values, height=0.94 * height, label=name, **filling(i))
        ax.bar_label(bars, [format_number(value, 3) for value in values], padding=3, fontsize=8)
    ax.axvline(result.optimum.lower, color="black", linestyle=":", linewidth=1.2, label="best possible guarantee")
    ax.set_yticks(range(len(columns)), labels)
    ax.invert_yaxis()
    ax.margins(x=0.1)
    ax.set_xlabel("expected utility")
    worst = zip(policies, result.worst, strict=True)
    return finish(ax, "In their own worst worlds: " + ", ".join(f"{name} {format_number(u, 3)}" for name, u in worst))


def plot_backtest(result: Backtest, ax: Any = None) -> Any:
    """Draw what was promised and realised in every period, and what the rule in use earned.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts, weeks = rng.random(800), np.repeat(np.arange(8), 100)
    >>> outcomes = (rng.random(800) < forecasts).astype(float)
    >>> prudent.plots.plot_backtest(prudent.backtest(problem, forecasts, outcomes, periods=weeks)).get_ylabel()
    'utility a case'
    """
    require(result, Backtest, "result must come from backtest")
    ax, places, table = axes(ax, 4.2), np.arange(len(result.periods)), result.columns
    ax.vlines(places, table["promised"], table["realised"], color="0.8")
    ax.plot(places, table["rule_in_use"], color=COLORS[7], linestyle=":", label="rule in use")
    ax.plot(places, table["realised"], "o", color=COLORS[0], label="realised")
    ax.plot(places, table["promised"], "_", color=COLORS[5], markersize=10, label="promised")
    broken = ~table["kept"]
    ax.plot(places[broken], table["realised"][broken], "X", color=COLORS[5], markersize=9, label="promise broken")
    step = max(1, len(places) // 12)
    ax.set_xticks(places[::step], result.periods[::step], rotation=30, ha="right")
    ax.set_ylabel("utility a case")
    low, high = result.kept_interval
    return finish(
        ax,
        f"Promises were kept in {int((~broken).sum())} of {len(places)} periods",
        f"made with {100 * result.confidence:g}% confidence; kept with a probability between {low:.0%} and {high:.0%}",
    )
