"""Commands that measure: ``prudent audit``, ``prudent ladder`` and ``prudent report``."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import prudent
from prudent.cli.options import CaseOptions, GuaranteeName, Pure, SlackText, Tolerance, on_cases, slack_from_text

_DEFAULT_RUNGS = 6
_VIOLATED = 20


@on_cases
def audit(
    given: CaseOptions,
    guarantee: GuaranteeName = None,
) -> int:
    """Measure whether a guarantee holds: no violation is found (exit code 0), or one is (20).

    Without --guarantee: that forecasts, and the utility that they promise, are right on average. Several files,
    folders, globs and large files stay in DuckDB.
    """
    read = given.opened(guarantee)
    with read as (decision, cases):
        result = prudent.audit(decision, cases, guarantee=guarantee, confidence=given.confidence)
    given.show(result.to_dict(), str(result))
    return _VIOLATED if result.rejected else 0


@on_cases
def ladder(
    given: CaseOptions,
    guarantee: Annotated[
        list[str] | None,
        typer.Option("--guarantee", metavar="NAME", help="One to compare; give several. By default six."),
    ] = None,
) -> None:
    """Compare what guarantees are worth on these rows."""
    compared = guarantee or []
    read = given.opened(*compared)
    with read as (decision, cases), given.steps(len(compared) or _DEFAULT_RUNGS) as progress:
        options: dict[str, Any] = {"confidence": given.confidence, "progress": progress}
        result = prudent.guarantee_ladder(decision, cases, guarantees=compared or None, **options)
    given.show({"best": result.best.name, **result.to_dict()}, str(result))


@on_cases
def report(
    given: CaseOptions,
    output: Annotated[str, typer.Option("-o", "--output", metavar="HTML", help="Where the page goes.")] = "report.html",
    guarantee: GuaranteeName = None,
    slack: SlackText = None,
    pure: Pure = False,
    tolerance: Tolerance = None,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "What to do with the forecast",
) -> None:
    """Write one page with advice, rule, audit, ladder and stress test; it needs no network.

    With --guarantee the page shows the robust policy for it instead of the advised rule.
    """
    read = given.opened(guarantee, in_memory=True)
    with read as (decision, cases):
        page = prudent.Report(
            decision,
            cases,
            guarantee=guarantee or "auto",
            slack=slack_from_text(slack, given.outcome),
            randomize=not pure,
            confidence=given.confidence,
            tolerance=tolerance,
            title=title,
            source="standard input" if given.files == ["-"] else ", ".join(Path(file).name for file in given.files),
            command=shlex.join(["prudent", *sys.argv[1:]]),
        )
        page.save(output)
    document = {"report": output, **page.advice.to_dict()}
    said = [str(page.advice.verdict), page.contradiction, f"The report is in {output}."]
    given.show(document, "\n".join(filter(None, said)))
