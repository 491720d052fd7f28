"""What the charts of a report show and where; ``charts.svg.j2`` draws it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from prudent.arrays import FloatArray
from prudent.formatting import format_number
from prudent.policies import PlugInPolicy
from prudent.report.contents import Report

_POINTS, _BINS, _MOMENTS = 401, 60, 30
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 624, 24, 230

Chart = dict[str, Any]  # what the template draws, by name


class Axis(NamedTuple):
    """Numbers from ``low`` to ``high`` at positions from ``start`` to ``end``."""

    title: str
    low: float
    high: float
    start: float
    end: float
    percent: bool = False

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        return round(self.start + (self.end - self.start) * float((value - self.low) / (self.high - self.low)), 1)

    def text(self, value: float) -> str:
        """Write a number in the units of the axis."""
        return f"{value:.0%}" if self.percent else format_number(value, 4)

    @property
    def ticks(self) -> FloatArray:
        """Up to six round numbers."""
        rough = (self.high - self.low) / 5
        power = 10.0 ** np.floor(np.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        # Adding zero turns -0.0 into 0.0.
        return step * np.arange(np.ceil(self.low / step - 1e-9), self.high / step + 1e-9) + 0.0


class Mark(NamedTuple):
    """A bar from ``low`` to ``high``, or an interval with a dot; ``series`` is the number of its legend entry."""

    series: int
    low: float
    high: float
    dot: float | None = None


def charts(report: Report) -> dict[str, Chart]:
    """Return the charts of a report by name."""
    made = {"ladder": _ladder(report), "audit": _audit(report), "stress": _stress(report)}
    if report.bands:
        return made | {"policy": _policy(report), "belief": _belief(report)}
    return made | {"actions": _actions(report)}


def _policy(report: Report) -> Chart:
    """Shares of the actions against the forecast, and under it how often each forecast occurs."""
    actions = [str(action) for action in report.problem.actions]
    points, edges, middles, x = _forecasts(report)
    y = Axis("probability of the action", 0.0, 1.0, _BOTTOM, _TOP, percent=True)
    # Each area reaches down to zero, and the next one is painted over it.
    tops = report.policy.predict_proba(points).cumsum(axis=1)[:, ::-1].T
    counts = np.histogram(report.rows.forecasts[:, 0], bins=edges)[0]
    notes = [
        ", ".join(f"{action} {share:.0%}" for action, share in zip(actions, mixture, strict=True) if share > 0)
        + f"; {count:,} rows"
        for mixture, count in zip(report.policy.predict_proba(middles), counts, strict=True)
    ]
    bands = "; ".join(
        f"from {format_number(band.first, 4)} to {format_number(band.last, 4)}: {band}" for band in report.bands
    )
    return {
        "label": f"Which action is played at which forecast. {bands}.",
        "legend": actions,
        "axes": (x, y),
        "areas": [_path([x.low, *points, x.high], [0.0, *top, 0.0], x, y) for top in tops],
        "counts": counts / max(counts.max(), 1),
        "edges": edges,
        "notes": notes,
    }


def _belief(report: Report) -> Chart:
    points, edges, middles, x = _forecasts(report)
    y = Axis("mean outcome", x.low, x.high, _BOTTOM, _TOP)
    beliefs, noted = (report.policy.worst_case_belief(at)[:, 0] for at in (points, middles))
    return {
        "label": "The mean outcome that the policy is prepared for, against the forecast, which is the dashed line.",
        "legend": ["worst-case belief", "the forecast itself"],
        "axes": (x, y),
        "lines": [_path(points, line, x, y) for line in (beliefs, points)],
        "edges": edges,
        "notes": [f"worst-case belief {y.text(belief)}" for belief in noted],
    }


def _actions(report: Report) -> Chart:
    """How often each action is played: forecasts of several coordinates have no one axis."""
    problem = report.problem
    policies = {"best respond": PlugInPolicy(problem), "robust": report.policy}
    return _rows(
        "How often each action is played by the robust policy and by best responding.",
        list(policies),
        "share of the rows",
        problem.actions,
        _bars(*(policy.predict_proba(report.rows.forecasts).mean(axis=0) for policy in policies.values())),
        percent=True,
    )


def _ladder(report: Report) -> Chart:
    rungs, best = report.ladder.rungs, report.ladder.best
    return _rows(
        f"Utility guaranteed under each guarantee; the highest is {format_number(best.guaranteed, 4)}, "
        f"with {best.name}.",
        ["guaranteed", "if the forecasts are right"],
        "expected utility",
        [rung.name for rung in rungs],
        [[Mark(0, r.guaranteed, r.nominal, r.guaranteed), Mark(1, r.nominal, r.nominal, r.nominal)] for r in rungs],
        # Equal values would else be drawn as far apart as their rounding errors.
        shown=best.guaranteed - 0.02 * report.problem.utility_range,
    )


def _audit(report: Report) -> Chart:
    found = report.audit
    order = found.p_values.argsort(kind="stable")[:_MOMENTS]
    names = [found.moment_names[k] for k in order]
    numbers = zip(names, found.intervals[order], found.estimates[order], strict=True)
    return _rows(
        f"Moments with intervals; {len(found.rejected)} of {len(found.moment_names)} are not zero.",
        ["may be zero", "not zero"],
        "mean error weighted by the test, with its interval",
        names,
        [[Mark(int(name in found.rejected), low, high, dot)] for name, (low, high), dot in numbers],
    )


def _stress(report: Report) -> Chart:
    stress = report.stress
    worst = ", ".join(
        f"{name} {format_number(value, 4)}" for name, value in zip(stress.names, stress.worst, strict=True)
    )
    return _rows(
        f"Expected utility of each policy in several worlds; in their own worst worlds: {worst}.",
        ["if the forecasts are right", "on these outcomes", "in its own worst world"],
        "expected utility",
        stress.names,
        _bars(*(stress.columns[world] for world in ("nominal", "realised", "own worst case"))),
    )


def _bars(*series: FloatArray) -> list[list[Mark]]:
    return [[Mark(k, 0.0, value) for k, value in enumerate(values)] for values in zip(*series, strict=True)]


def _rows(
    label: str,
    legend: list[str],
    title: str,
    names: Iterable[Any],
    rows: Iterable[list[Mark]],
    *,
    shown: float = 0.0,
    percent: bool = False,
) -> Chart:
    """A row of marks per name over one axis that reaches all of them and a number to be shown."""
    named = list(zip(map(str, names), rows, strict=True))
    ends = [shown, *(end for _, marks in named for mark in marks for end in (mark.low, mark.high))]
    pad = 0.04 * (max(ends) - min(ends)) or 1.0
    left = 20 + 7 * min(32, max((len(name) for name, _ in named), default=0))
    axis = Axis(title, min(ends) - pad, max(ends) + pad, left, _RIGHT, percent)
    return {"label": label, "legend": legend, "axis": axis, "rows": named}


def _forecasts(report: Report) -> tuple[FloatArray, FloatArray, FloatArray, Axis]:
    """Points with both sides of every threshold, so that jumps stand upright; edges and middles of bins; the axis."""
    low, high = report.problem.space.interval
    ends = [end for band in report.bands for end in (band.first, band.last)]
    edges = np.linspace(low, high, _BINS + 1)
    points = np.unique([*np.linspace(low, high, _POINTS), *ends])
    return points, edges, (edges[1:] + edges[:-1]) / 2, Axis("forecast", low, high, _LEFT, _RIGHT)


def _path(across: Iterable[float], up: Iterable[float], x: Axis, y: Axis) -> str:
    return "M" + "L".join(f"{x(a)} {y(b)}" for a, b in zip(across, up, strict=True))
