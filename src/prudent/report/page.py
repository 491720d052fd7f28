"""The page: a template filled with results."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from prudent.errors import MissingExtraError
from prudent.report.charts import charts, javascript
from prudent.writing import written

if TYPE_CHECKING:
    from prudent.report.contents import Report

__all__ = ["render"]

_HEADINGS = {
    "trust": "Trust it",
    "hedge": "Hedge",
    "repair": "Repair the forecaster",
    "not_enough_data": "Not enough data",
}
_MOMENTS = 12


def render(report: Report) -> str:
    """Return a report as one HTML page that needs nothing else."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("jinja2", "report", "a report") from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["number"] = _number
    template = environment.from_string(resources.files("prudent.report").joinpath("page.html.j2").read_text("utf-8"))
    kind = report.audit.verdict.kind.value
    # A closing tag inside a text would end the script early.
    specifications = {name: json.dumps(chart).replace("<", "\\u003c") for name, chart in charts(report).items()}
    return template.render(
        report=report,
        heading=_HEADINGS[kind],
        kind=kind,
        sentence=_sentence(str(report.audit.verdict)),
        charts=specifications,
        written=written,
        descriptions=_descriptions(report),
        javascript=javascript(),
        stress_rows=_stress_rows(report),
        moments=_moments(report),
        best=report.ladder.best,
        confidence=f"{100 * report.rung_confidence:g}%",
        labels=[str(action) for action in report.problem.actions],
        reproduce=report.command or _snippet(report),
    )


def _number(value: float) -> str:
    """Four digits; what is left of zero after rounding is zero."""
    return "0" if abs(value) < 1e-9 else written(value, 4)


def _sentence(verdict: str) -> str:
    """The verdict without the word that the heading has said already."""
    _, _, rest = verdict.partition(": ")
    return (rest[:1].upper() + rest[1:]) if rest else verdict


def _stress_rows(report: Report) -> list[dict[str, Any]]:
    stress = report.stress
    return [
        {
            "name": name,
            "nominal": float(stress.nominal[position]),
            "realised": None if stress.realised is None else float(stress.realised[position]),
            "worst": float(stress.worst[position]),
        }
        for position, name in enumerate(stress.names)
    ]


def _moments(report: Report) -> list[dict[str, Any]]:
    columns = report.audit.columns
    order = report.audit.p_values.argsort(kind="stable")[:_MOMENTS]
    names = ("moment", "estimate", "lower", "upper", "p-value")
    return [{name.replace("-", "_"): columns[name][position] for name in names} for position in order]


def _descriptions(report: Report) -> dict[str, str]:
    """What each picture shows, for those who cannot see it."""
    stress = report.stress
    worst = ", ".join(f"{name} {written(value, 4)}" for name, value in zip(stress.names, stress.worst, strict=True))
    bands = "; ".join(f"from {written(band.first, 4)} to {written(band.last, 4)}: {band}" for band in report.bands)
    best, moments = report.ladder.best, report.audit.moment_names
    return {
        "policy": f"Which action is played at which forecast. {bands}.",
        "belief": "The mean outcome that the policy is prepared for, against the forecast, which is the dashed line.",
        "actions": "How often each action is played by the robust policy and by best responding.",
        "ladder": (
            f"Utility guaranteed under each guarantee; the highest is {written(best.guaranteed, 4)}, with {best.name}."
        ),
        "audit": f"Moments with intervals; {len(report.audit.rejected)} of {len(moments)} are not zero.",
        "stress": f"Expected utility of each policy in several worlds; in their own worst worlds: {worst}.",
    }


def _snippet(report: Report) -> str:
    arguments = "" if report.chosen else f", guarantee=prudent.guarantees.{report.policy.guarantee!r}"
    return (
        "import prudent\n\n"
        f"problem = prudent.{report.problem!r}\n"
        f"prudent.Report(problem, forecasts, outcomes{arguments}, confidence={report.confidence}).save('report.html')"
    )
