"""Pictures of results: an audit, the ladder of guarantees, a stress test, a backtest, as rows of marks over one axis.

The same rows are drawn by Matplotlib here and as SVG in reports.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from prudent.adversary import StressTest
from prudent.advice import Backtest
from prudent.evidence.audits import Audit, GuaranteeLadder
from prudent.formatting import format_number
from prudent.plots.style import COLORS, axes, filling, finish, require, wrapped

_MOMENTS, _PERIODS = 30, 36


class Mark(NamedTuple):
    """A bar from ``low`` to ``high``, or an interval with a dot; ``series`` is the number of its legend entry."""

    series: int
    low: float
    high: float
    dot: float | None = None


class Rows(NamedTuple):
    """Marks by name, what each series of them shows, and the title of the axis."""

    names: list[str]
    marks: list[list[Mark]]
    series: tuple[str, ...]
    title: str


def audit_rows(result: Audit) -> Rows:
    """Estimates and simultaneous intervals of the moments with the smallest p-values."""
    order = result.p_values.argsort(kind="stable")[:_MOMENTS]
    names, rejected = [result.moment_names[k] for k in order], set(result.rejected)
    found = zip(names, result.intervals[order], result.estimates[order], strict=True)
    marks = [[Mark(int(name in rejected), low, high, dot)] for name, (low, high), dot in found]
    return Rows(names, marks, ("may be zero", "not zero"), "mean error weighted by the test, with its interval")


def ladder_rows(result: GuaranteeLadder) -> Rows:
    """What each guarantee is worth, and what its policy gets if forecasts are right."""
    names = [rung.name if rung.holds else f"{rung.name} (violated)" for rung in result.rungs]
    marks = _pairs(result.columns["guaranteed"], result.columns["nominal"])
    return Rows(names, marks, ("guaranteed", "if the forecasts are right"), "expected utility")


def stress_rows(result: StressTest) -> Rows:
    """What each policy gets in three worlds, or in two without outcomes."""
    worlds = {"if the forecasts are right": result.nominal}
    if result.realised is not None:
        worlds["on these outcomes"] = result.realised
    worlds["in its own worst world"] = result.worst
    return Rows(list(result.names), bar_marks(*worlds.values()), tuple(worlds), "expected utility")


def backtest_rows(result: Backtest) -> Rows:
    """What was promised and realised in the latest periods."""
    latest = {name: values[-_PERIODS:] for name, values in result.columns.items()}
    marks = _pairs(latest["promised"], latest["realised"])
    return Rows(list(result.periods[-_PERIODS:]), marks, ("promised", "realised"), "utility a case")


def bar_marks(*series: Iterable[float]) -> list[list[Mark]]:
    """Bars from zero, one of each series in every row."""
    return [[Mark(k, 0.0, value) for k, value in enumerate(values)] for values in zip(*series, strict=True)]


def _pairs(starts: Iterable[float], ends: Iterable[float]) -> list[list[Mark]]:
    """Two dots in every row, with a line between them."""
    return [[Mark(0, start, end, start), Mark(1, end, end, end)] for start, end in zip(starts, ends, strict=True)]


def plot_audit(result: Audit, ax: Any = None) -> Any:
    """Draw estimates and simultaneous intervals: a row per moment, at most the thirty with smallest p-values.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts).astype(float)
    >>> result = prudent.audit(None, forecasts, outcomes, guarantee="bins:5")
    >>> prudent.plots.plot_audit(result).get_xlabel()
    'mean error weighted by the test, with its interval'
    """
    require(result, Audit, "result must come from audit")
    rows, count, rejected = audit_rows(result), len(result.moment_names), len(result.rejected)
    ax = _draw(rows, ax)
    ax.axvline(0, color="black", linewidth=1)
    hidden = f"; {count - len(rows.names)} with larger p-values not shown" if count > len(rows.names) else ""
    return finish(
        ax,
        f"{rejected} of {count} moments are shown to be violated",
        f"intervals hold for all at once with {100 * result.confidence:g}% confidence, {result.n_rows:,} rows{hidden}",
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
    ax, best = _draw(ladder_rows(result), ax), result.best
    followed = best.nominal + best.given_up
    ax.axvline(followed, color="black", linestyle=":", label="following the forecast,\nif it is right")
    return finish(
        ax,
        f"What each guarantee is worth; best: {best.name!r}, {format_number(best.guaranteed, 3)}",
        f"guaranteed with {100 * result.confidence:g}% confidence, {result.n_rows:,} rows",
    )


def plot_stress_test(result: StressTest, ax: Any = None) -> Any:
    """Draw expected utilities of policies in several worlds: one group of bars per policy.

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
    ax = _draw(stress_rows(result), ax)
    ax.axvline(result.optimum.lower, color="black", linestyle=":", label="best possible guarantee")
    worst = (f"{name} {format_number(each, 3)}" for name, each in zip(result.names, result.worst, strict=True))
    return finish(ax, f"In their own worst worlds: {', '.join(worst)}")


def plot_backtest(result: Backtest, ax: Any = None) -> Any:
    """Draw what was promised and realised in the latest 36 periods, and what the rule in use earned.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts, weeks = rng.random(800), np.repeat(np.arange(8), 100)
    >>> outcomes = (rng.random(800) < forecasts).astype(float)
    >>> prudent.plots.plot_backtest(prudent.backtest(problem, forecasts, outcomes, periods=weeks)).get_xlabel()
    'utility a case'
    """
    require(result, Backtest, "result must come from backtest")
    ax, in_use = _draw(backtest_rows(result), ax), result.columns["rule_in_use"][-_PERIODS:]
    ax.plot(in_use, range(len(in_use)), color="black", linestyle=":", label="rule in use")
    low, high = result.kept_interval
    return finish(
        ax,
        f"Promises were kept in {result.kept:.0%} of {len(result.periods)} periods",
        f"made with {100 * result.confidence:g}% confidence; kept with a probability between {low:.0%} and {high:.0%}",
    )


def _draw(rows: Rows, ax: Any) -> Any:
    """Draw marks from the top: bars below each other, or intervals with dots on one line."""
    count, bars = len(rows.series), all(mark.dot is None for marks in rows.marks for mark in marks)
    ax = axes(ax, 1.6 + (0.3 * count if bars else 0.4) * len(rows.names))
    for k, label in enumerate(rows.series):
        own = [(row, mark) for row, marks in enumerate(rows.marks) for mark in marks if mark.series == k]
        places, high = np.array([row for row, _ in own]), [mark.high for _, mark in own]
        if bars:
            beside = 0.82 * ((k + 0.5) / count - 0.5)
            drawn = ax.barh(places + beside, high, height=0.77 / count, label=label, **filling(k))
            ax.bar_label(drawn, [format_number(value, 3) for value in high], padding=3, fontsize=8)
        else:
            color = COLORS[5 * k]
            ax.hlines(places, [mark.low for _, mark in own], high, color=color, linestyle=("-", "--")[k])
            ax.plot([mark.dot for _, mark in own], places, "oX"[k], color=color, label=label)
    ax.set_yticks(range(len(rows.names)), wrapped(rows.names, 34))
    ax.invert_yaxis()
    ax.margins(x=0.1)
    ax.set_xlabel(rows.title)
    return ax
