"""Where the charts of a report show what; ``charts.svg.j2`` draws it, and ``page.html.j2`` says it in words."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from prudent.advice import Backtest
from prudent.arrays import FloatArray
from prudent.formatting import format_number
from prudent.report.contents import Report

_MOMENTS = 30
_PERIODS = 36
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


class Mark(NamedTuple):
    """A bar from ``low`` to ``high``, or an interval with a dot; ``series`` is the number of its legend entry."""

    series: int
    low: float
    high: float
    dot: float | None = None


def charts(report: Report) -> dict[str, Chart]:
    """Return the charts of a report by name."""
    ladder, stress, found = report.ladder, report.stress, report.audit
    order = found.p_values.argsort(kind="stable")[:_MOMENTS]
    names = [found.moment_names[k] for k in order]
    intervals = zip(names, found.intervals[order], found.estimates[order], strict=True)
    return {
        "ladder": _rows(
            [rung.name for rung in ladder.rungs],
            [
                [Mark(0, r.guaranteed, r.nominal, r.guaranteed), Mark(1, r.nominal, r.nominal, r.nominal)]
                for r in ladder.rungs
            ],
            # Equal values would else be drawn as far apart as their rounding errors.
            shown=ladder.best.guaranteed - 0.02 * report.problem.utility_range,
        ),
        "audit": _rows(
            names, [[Mark(int(name in found.rejected), low, high, dot)] for name, (low, high), dot in intervals]
        ),
        "stress": _rows(
            stress.names, _bars(*(stress.columns[world] for world in ("nominal", "realised", "own worst case")))
        ),
        "policy": _policy(report) if report.bands else _actions(report),
    } | ({} if report.backtest is None else {"backtest": _promises(report.backtest)})


def _promises(walked: Backtest) -> Chart:
    """What was promised and realised in the latest periods."""
    table = walked.columns
    pairs = zip(table["promised"][-_PERIODS:], table["realised"][-_PERIODS:], strict=True)
    marks = [
        [Mark(0, promised, realised, promised), Mark(1, realised, realised, realised)] for promised, realised in pairs
    ]
    return _rows(table["period"][-_PERIODS:], marks, shown=float(table["realised"].mean()))


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
    shares = np.array(list(report.advice.actions.values())).T
    return _rows(report.problem.actions, _bars(*shares), percent=True)


def _bars(*series: FloatArray) -> list[list[Mark]]:
    return [[Mark(k, 0.0, value) for k, value in enumerate(values)] for values in zip(*series, strict=True)]


def _rows(names: Iterable[Any], rows: Iterable[list[Mark]], *, shown: float = 0.0, percent: bool = False) -> Chart:
    """A row of marks per name over one axis that reaches all of them and a number to be shown."""
    named = list(zip(map(str, names), rows, strict=True))
    ends = [shown, *(end for _, marks in named for mark in marks for end in (mark.low, mark.high))]
    pad = 0.04 * (max(ends) - min(ends)) or 1.0
    left = 20 + 7 * min(32, max((len(name) for name, _ in named), default=0))
    return {"axis": Axis(min(ends) - pad, max(ends) + pad, left, _RIGHT, percent), "rows": named}


def _path(across: Iterable[float], up: Iterable[float], x: Axis, y: Axis) -> str:
    return "M" + "L".join(f"{x(a)} {y(b)}" for a, b in zip(across, up, strict=True))
