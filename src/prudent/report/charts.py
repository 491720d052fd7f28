"""Where the charts of a report show what; ``charts.svg.j2`` draws it, and ``page.html.j2`` says it in words."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from prudent.arrays import FloatArray
from prudent.formatting import format_number
from prudent.plots.results import Rows, audit_rows, backtest_rows, bar_marks, ladder_rows, stress_rows
from prudent.report.contents import Report

_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 624, 24, 230

Chart = dict[str, Any]  # what the template draws, by name


class Axis(NamedTuple):
    """Numbers from ``low`` to ``high`` at positions from ``start`` to ``end``."""

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


def charts(report: Report) -> dict[str, Chart]:
    """Return the charts of a report by name."""
    ladder, walked = report.ladder, report.backtest
    found = {
        # Equal values would else be drawn as far apart as their rounding errors.
        "ladder": _rows(ladder_rows(ladder), ladder.best.guaranteed - 0.02 * report.problem.utility_range),
        "audit": _rows(audit_rows(report.audit)),
        "stress": _rows(stress_rows(report.stress)),
        "policy": _policy(report) if report.bands else _actions(report),
    }
    if walked is not None:
        found["backtest"] = _rows(backtest_rows(walked), float(walked.columns["realised"].mean()))
    return found


def _policy(report: Report) -> Chart:
    """Shares of the actions against the forecast, and under it how often each forecast occurs."""
    policy, points, (counts, edges) = report.policy, report.points, report.histogram
    x, y = Axis(*report.problem.space.interval, _LEFT, _RIGHT), Axis(0.0, 1.0, _BOTTOM, _TOP, percent=True)
    # Each area reaches down to zero, and the next one is painted over it.
    tops = policy.predict_proba(points).cumsum(axis=1)[:, ::-1].T
    played = policy.predict_proba((edges[1:] + edges[:-1]) / 2)
    return {
        "axes": (x, y),
        "areas": [_path([x.low, *points, x.high], [0.0, *top, 0.0], x, y) for top in tops],
        "bins": list(zip(edges[:-1], edges[1:], counts, played, strict=True)),
    }


def _actions(report: Report) -> Chart:
    """How often each action is played: forecasts of several coordinates have no one axis."""
    actions = report.advice.actions
    marks = bar_marks(*zip(*actions.values(), strict=True))
    return _rows(Rows(list(actions), marks, ("rule in use", "advised"), "share of the cases"), percent=True)


def _rows(rows: Rows, shown: float = 0.0, *, percent: bool = False) -> Chart:
    """Lay out rows over one axis that reaches all marks and a number to be shown."""
    ends = [shown, *(end for marks in rows.marks for mark in marks for end in (mark.low, mark.high))]
    pad = 0.04 * (max(ends) - min(ends)) or 1.0
    left = 20 + 7 * min(32, max(map(len, rows.names), default=0))
    axis = Axis(min(ends) - pad, max(ends) + pad, left, _RIGHT, percent)
    return {"axis": axis, **rows._asdict()}


def _path(across: Iterable[float], up: Iterable[float], x: Axis, y: Axis) -> str:
    return "M" + "L".join(f"{x(a)} {y(b)}" for a, b in zip(across, up, strict=True))
