"""Charts of a report as Vega-Lite specifications: results in, pictures out, nothing computed but positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.errors import MissingExtraError

if TYPE_CHECKING:
    from prudent.report.contents import Report

__all__ = ["charts", "javascript"]

# Okabe and Ito's colours, told apart by people of all kinds of colour vision; the order alternates light and dark.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_POINTS = 401
_MOMENTS = 30
_WIDTH = 640


def javascript() -> str:
    """Return the scripts that draw charts, to be put into the page: it works without a network."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", "report", "a report") from None
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub forgets the default
    return bundle


def charts(report: Report) -> dict[str, dict[str, Any]]:
    """Return the charts of a report by name."""
    try:
        import altair  # noqa: ICN001  # full words
    except ImportError:
        raise MissingExtraError("altair", "report", "a report") from None
    made = {"ladder": _ladder(altair, report), "audit": _audit(altair, report), "stress": _stress(altair, report)}
    if report.bands:
        made |= {"policy": _policy(altair, report), "belief": _belief(altair, report)}
    else:
        made["actions"] = _actions(altair, report)
    return {name: _finished(chart) for name, chart in made.items()}


def _finished(chart: Any) -> dict[str, Any]:
    themed = (
        chart.configure(font="system-ui, sans-serif")
        .configure_axis(labelFontSize=12, titleFontSize=13, grid=False)
        .configure_legend(labelFontSize=12, titleFontSize=13, orient="bottom", labelLimit=300)
        .configure_view(strokeWidth=0)
    )
    specification: dict[str, Any] = themed.to_dict(validate=False)
    return specification


def _data(altair: Any, rows: list[dict[str, Any]]) -> Any:
    return altair.Data(values=rows)


def _palette(altair: Any, names: list[str]) -> Any:
    colours = [_COLOURS[position % len(_COLOURS)] for position in range(len(names))]
    return altair.Scale(domain=names, range=colours)


def _shapes(altair: Any, field: str, names: list[str], shapes: list[str]) -> Any:
    return altair.Shape(field, title=None, scale=altair.Scale(domain=names, range=shapes), sort=None)


def _policy(altair: Any, report: Report) -> Any:
    """Shares of the actions against the forecast, and under it how often each forecast occurs."""
    names = [str(action) for action in report.problem.actions]
    points = _grid(report)
    mixtures = report.policy.predict_proba(points)
    rows = [
        {"forecast": float(point), "action": name, "order": position, "share": float(share)}
        for point, mixture in zip(points, mixtures, strict=True)
        for position, (name, share) in enumerate(zip(names, mixture, strict=True))
    ]
    low, high = (float(bound[0]) for bound in report.problem.space.bounds)
    across = altair.X("forecast:Q", title=None, scale=altair.Scale(domain=[low, high], nice=False))
    bands = (
        altair.Chart(_data(altair, rows), width=_WIDTH, height=220)
        .mark_area(interpolate="linear")
        .encode(
            x=across,
            y=altair.Y("share:Q", title="probability of the action", axis=altair.Axis(format="%")),
            color=altair.Color("action:N", title="action", scale=_palette(altair, names), sort=None),
            order="order:Q",
            tooltip=[
                altair.Tooltip("forecast:Q", format=".4g"),
                altair.Tooltip("action:N"),
                altair.Tooltip("share:Q", format=".1%", title="probability"),
            ],
        )
    )
    counts, edges = np.histogram(report.forecasts[:, 0], bins=60, range=(low, high))
    histogram = [
        {"from": float(left), "to": float(right), "rows": int(count)}
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    below = (
        altair.Chart(_data(altair, histogram), width=_WIDTH, height=70)
        .mark_bar(color="#767676")
        .encode(
            x=altair.X("from:Q", title="forecast", bin="binned", scale=altair.Scale(domain=[low, high], nice=False)),
            x2="to:Q",
            y=altair.Y("rows:Q", title="rows"),
            tooltip=[altair.Tooltip("from:Q", format=".4g"), altair.Tooltip("to:Q", format=".4g"), "rows:Q"],
        )
    )
    return altair.vconcat(bands, below, spacing=6)


def _belief(altair: Any, report: Report) -> Any:
    points = _grid(report)
    beliefs = report.policy.worst_case_belief(points)[:, 0]
    low, high = (float(bound[0]) for bound in report.problem.space.bounds)
    domain = altair.Scale(domain=[low, high], nice=False)
    rows = [
        {"forecast": float(point), "belief": float(belief), "what": what}
        for what, line in (("worst-case belief", beliefs), ("the forecast itself", points))
        for point, belief in zip(points, line, strict=True)
    ]
    names = ["worst-case belief", "the forecast itself"]
    return (
        altair.Chart(_data(altair, rows), width=_WIDTH, height=220)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=altair.X("forecast:Q", title="forecast", scale=domain),
            y=altair.Y("belief:Q", title="mean outcome", scale=domain),
            color=altair.Color("what:N", title=None, scale=_palette(altair, names), sort=None),
            strokeDash=altair.StrokeDash(
                "what:N", title=None, scale=altair.Scale(domain=names, range=[[1, 0], [6, 4]]), sort=None
            ),
            tooltip=[altair.Tooltip("forecast:Q", format=".4g"), altair.Tooltip("belief:Q", format=".4g"), "what:N"],
        )
    )


def _actions(altair: Any, report: Report) -> Any:
    """How often each action is played, against best responding: forecasts of several coordinates have no one axis."""
    problem = report.problem
    names = [str(action) for action in problem.actions]
    robust = report.policy.predict_proba(report.forecasts).mean(axis=0)
    best = np.bincount(problem.best_actions(report.forecasts), minlength=problem.n_actions) / len(report.forecasts)
    rows = [
        {"action": name, "policy": policy, "share": float(share)}
        for policy, shares in (("best respond", best), ("robust", robust))
        for name, share in zip(names, shares, strict=True)
    ]
    return (
        altair.Chart(_data(altair, rows), width=_WIDTH, height=24 * len(names) + 20)
        .mark_bar()
        .encode(
            y=altair.Y("action:N", title=None, sort=None, axis=altair.Axis(labelLimit=220)),
            yOffset=altair.YOffset("policy:N", sort=None),
            x=altair.X("share:Q", title="share of the rows", axis=altair.Axis(format="%")),
            color=altair.Color("policy:N", title=None, scale=_palette(altair, ["best respond", "robust"]), sort=None),
            tooltip=["action:N", "policy:N", altair.Tooltip("share:Q", format=".1%")],
        )
    )


def _ladder(altair: Any, report: Report) -> Any:
    names = ["guaranteed", "if the forecasts are right"]
    rows = [
        {"guarantee": rung.name, "what": what, "utility": float(value)}
        for rung in report.ladder.rungs
        for what, value in zip(names, (rung.guaranteed, rung.nominal), strict=True)
    ]
    values = [value for rung in report.ladder.rungs for value in (rung.guaranteed, rung.nominal)]
    # Without a floor a chart of equal values would zoom into rounding errors.
    margin = max(0.05 * (max(values) - min(values)), 0.01 * report.problem.utility_range)
    domain = altair.Scale(domain=[min(values) - margin, max(values) + margin])
    base = altair.Chart(_data(altair, rows), width=_WIDTH - 120, height=30 * len(report.ladder.rungs))
    line = base.mark_rule(color="#999999").encode(
        y=altair.Y("guarantee:N", sort=None, title=None), x="min(utility):Q", x2="max(utility):Q"
    )
    points = base.mark_point(filled=True, size=110).encode(
        y=altair.Y("guarantee:N", sort=None, title=None),
        x=altair.X("utility:Q", title="expected utility", scale=domain),
        color=altair.Color("what:N", title=None, scale=_palette(altair, names), sort=None),
        shape=_shapes(altair, "what:N", names, ["circle", "diamond"]),
        tooltip=["guarantee:N", "what:N", altair.Tooltip("utility:Q", format=".4g")],
    )
    return altair.layer(line, points)


def _audit(altair: Any, report: Report) -> Any:
    columns = report.audit.columns
    order = np.argsort(report.audit.p_values, kind="stable")[:_MOMENTS]
    rows = [
        {
            "moment": str(columns["moment"][position]),
            "estimate": float(columns["estimate"][position]),
            "lower": float(columns["lower"][position]),
            "upper": float(columns["upper"][position]),
            "finding": "not zero" if columns["moment"][position] in report.audit.rejected else "may be zero",
        }
        for position in order
    ]
    names = ["may be zero", "not zero"]
    base = altair.Chart(_data(altair, rows), width=_WIDTH - 220, height=max(60, 22 * len(rows)))
    down = altair.Y("moment:N", sort=None, title=None, axis=altair.Axis(labelLimit=260))
    colour = altair.Color("finding:N", title=None, scale=_palette(altair, names), sort=None)
    tips = ["moment:N", *(altair.Tooltip(f"{name}:Q", format=".3g") for name in ("estimate", "lower", "upper"))]
    zero = altair.Chart(_data(altair, [{"x": 0}])).mark_rule(strokeDash=[4, 3], color="#555555").encode(x="x:Q")
    interval = base.mark_rule(strokeWidth=2).encode(y=down, x="lower:Q", x2="upper:Q", color=colour, tooltip=tips)
    point = base.mark_point(filled=True, size=70).encode(
        y=down,
        x=altair.X("estimate:Q", title="mean error weighted by the test, with its interval"),
        color=colour,
        shape=_shapes(altair, "finding:N", names, ["circle", "square"]),
        tooltip=tips,
    )
    return altair.layer(zero, interval, point)


def _stress(altair: Any, report: Report) -> Any:
    stress = report.stress
    titles = ["if the forecasts are right", "on these outcomes", "in its own worst world"]
    values = [stress.nominal, stress.realised, stress.worst]
    rows = [
        {"policy": name, "world": title, "utility": float(column[position])}
        for title, column in zip(titles, values, strict=True)
        if column is not None
        for position, name in enumerate(stress.names)
    ]
    return (
        altair.Chart(_data(altair, rows), width=_WIDTH - 120, height=26 * len(rows))
        .mark_bar()
        .encode(
            y=altair.Y("policy:N", title=None, sort=None),
            yOffset=altair.YOffset("world:N", sort=None),
            x=altair.X("utility:Q", title="expected utility"),
            color=altair.Color("world:N", title=None, scale=_palette(altair, titles), sort=None),
            tooltip=["policy:N", "world:N", altair.Tooltip("utility:Q", format=".4g")],
        )
    )


def _grid(report: Report) -> Any:
    """Evenly spaced forecasts, and both sides of every threshold, so that jumps stand upright."""
    low, high = (float(bound[0]) for bound in report.problem.space.bounds)
    ends = [end for band in report.bands for end in (band.first, band.last)]
    return np.unique(np.concatenate([np.linspace(low, high, _POINTS), ends]))
