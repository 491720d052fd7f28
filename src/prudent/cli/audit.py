"""Commands that measure: ``prudent audit``, ``prudent ladder`` and ``prudent report``."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import prudent
from prudent.cli.options import (
    AsJson,
    ConfidenceLevel,
    Delimiter,
    Every,
    Files,
    Forecast,
    GuaranteeName,
    Missing,
    Outcome,
    Period,
    ProblemFile,
    Pure,
    SlackText,
    Tolerance,
    Weight,
    show,
)
from prudent.cli.reading import opened_cases, slack_from_text, steps_shown

_DEFAULT_RUNGS = 6
_VIOLATED = 20


def audit(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    guarantee: GuaranteeName = None,
    weight: Weight = None,
    period: Period = None,
    every: Every = None,
    confidence: ConfidenceLevel = 0.95,
    missing: Missing = "refuse",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> int:
    """Measure whether a guarantee holds: no violation is found (exit code 0), or one is (20).

    Without --guarantee: that forecasts, and the utility that they promise, are right on average. Several files,
    folders, globs and large files stay in DuckDB.
    """
    read = opened_cases("audit", locals(), guarantees=[guarantee])
    with read as (decision, cases):
        result = prudent.audit(decision, cases, guarantee=guarantee, confidence=confidence)
    show(result.to_dict(), str(result), as_json)
    return _VIOLATED if result.rejected else 0


def ladder(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    guarantee: Annotated[
        list[str] | None,
        typer.Option("--guarantee", metavar="NAME", help="One to compare; give several. By default six."),
    ] = None,
    weight: Weight = None,
    period: Period = None,
    every: Every = None,
    confidence: ConfidenceLevel = 0.95,
    missing: Missing = "refuse",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Compare what guarantees are worth on these rows."""
    compared = guarantee or []
    read = opened_cases("ladder", locals(), guarantees=compared)
    with read as (decision, cases), steps_shown("ladder", len(compared) or _DEFAULT_RUNGS) as progress:
        options: dict[str, Any] = {"confidence": confidence, "progress": progress}
        result = prudent.guarantee_ladder(decision, cases, guarantees=compared or None, **options)
    show(_ladder_document(result), str(result), as_json)


def report(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    output: Annotated[str, typer.Option("-o", "--output", metavar="HTML", help="Where the page goes.")] = "report.html",
    guarantee: GuaranteeName = None,
    slack: SlackText = None,
    pure: Pure = False,
    weight: Weight = None,
    period: Period = None,
    every: Every = None,
    confidence: ConfidenceLevel = 0.95,
    tolerance: Tolerance = None,
    missing: Missing = "refuse",
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "What to do with the forecast",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Write one page with advice, rule, audit, ladder and stress test; it needs no network.

    With --guarantee the page shows the robust policy for it instead of the advised rule.
    """
    read = opened_cases("report", locals(), guarantees=[guarantee], in_memory=True)
    with read as (decision, cases):
        page = prudent.Report(
            decision,
            cases,
            guarantee=guarantee or "auto",
            slack=slack_from_text(slack, outcome),
            randomize=not pure,
            confidence=confidence,
            tolerance=tolerance,
            title=title,
            source="standard input" if files == ["-"] else ", ".join(Path(file).name for file in files),
            command=shlex.join(["prudent", *sys.argv[1:]]),
        )
        page.save(output)
    document = {"report": output, **page.advice.to_dict()}
    said = [str(page.advice.verdict), page.contradiction, f"The report is in {output}."]
    show(document, "\n".join(filter(None, said)), as_json)


def _ladder_document(ladder: Any) -> dict[str, Any]:
    return {"best": ladder.best.name, **ladder.to_dict()}
