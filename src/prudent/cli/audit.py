"""Commands that measure: ``prudent audit``, ``prudent ladder`` and ``prudent report``."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

import prudent
from prudent.cli.options import (
    AsJson,
    ConfidenceLevel,
    Delimiter,
    Files,
    Forecast,
    GuaranteeName,
    Missing,
    Outcome,
    Period,
    ProblemFile,
    Pure,
    SlackText,
    Weight,
    show,
)
from prudent.cli.reading import opened_cases, slack_from_text
from prudent.progress import ProgressLine

_DEFAULT_RUNGS = 6
_EXIT_CODES = {"trust": 0, "hedge": 10, "repair": 20, "not_enough_data": 30}
_COMPARED = "No --guarantee was given, so the usual guarantees were compared"


def audit(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    guarantee: GuaranteeName = None,
    weight: Weight = None,
    period: Period = None,
    confidence: ConfidenceLevel = 0.95,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", help="The loss that matters, in utility; by default 5% of the utility range."),
    ] = None,
    missing: Missing = "refuse",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> int:
    """Measure whether a guarantee holds: trust (exit code 0), hedge (10), repair (20) or not enough data (30).

    Without --guarantee the usual guarantees are compared, and the one with the highest guaranteed utility is audited.
    Several files, folders, globs and large files stay in DuckDB.
    """
    options: dict[str, Any] = {"confidence": confidence, "tolerance": tolerance}
    promised: Any = guarantee
    chosen, text = {}, ""
    read = opened_cases(
        "audit", problem, files, delimiter, forecast, outcome, weight, period, missing, guarantees=[guarantee]
    )
    with read as (decision, cases):
        if guarantee is None:
            with _progress(_DEFAULT_RUNGS) as progress:
                compared = prudent.guarantee_ladder(decision, cases, confidence=confidence, progress=progress)
            # The choice is made by the same rows, so all guarantees must hold at once.
            promised, options["confidence"] = compared.best.guarantee, compared.rung_confidence
            chosen = {"ladder": _ladder_document(compared)}
            text = (
                f"{_COMPARED}.\n{compared}\n\nThe audit of {compared.best.name!r}, at "
                f"{100 * compared.rung_confidence:.4g}% so that the choice among {len(compared.rungs)} guarantees is "
                f"allowed for:\n"
            )
        result = prudent.audit(decision, cases, guarantee=promised, **options)
    show({"chosen_by": "ladder" if chosen else "user", **result.to_dict(), **chosen}, f"{text}{result}", as_json)
    return _EXIT_CODES[result.verdict.kind.value]


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
    confidence: ConfidenceLevel = 0.95,
    missing: Missing = "refuse",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Compare what guarantees are worth on these rows."""
    compared = guarantee or []
    read = opened_cases(
        "ladder", problem, files, delimiter, forecast, outcome, weight, period, missing, guarantees=compared
    )
    with read as (decision, cases), _progress(len(compared) or _DEFAULT_RUNGS) as progress:
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
    slack: SlackText = "audit",
    pure: Pure = False,
    weight: Weight = None,
    confidence: ConfidenceLevel = 0.95,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "How far to trust the forecast",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Write one page with verdict, guarantee, policy, audit, ladder and stress test; it needs no network.

    Without --guarantee the one with the highest guaranteed utility is taken.
    """
    read = opened_cases(
        "report", problem, files, delimiter, forecast, outcome, weight, guarantees=[guarantee], in_memory=True
    )
    with read as (decision, cases):
        page = prudent.Report(
            decision,
            cases,
            guarantee=guarantee or "auto",
            slack=slack_from_text(slack, outcome),
            randomize=not pure,
            confidence=confidence,
            title=title,
            source="standard input" if files == ["-"] else ", ".join(Path(file).name for file in files),
            command=shlex.join(["prudent", *sys.argv[1:]]),
        )
        page.save(output)
    certificate = page.policy.certificate_.to_dict()
    chosen_by = "ladder" if page.chosen else "user"
    document = {"report": output, "chosen_by": chosen_by, "certificate": certificate, **page.audit.to_dict()}
    chosen = f"{_COMPARED}; taken: {page.guarantee_name}.\n" if page.chosen else ""
    show(document, f"{chosen}{page.audit.verdict}\nThe report is in {output}.", as_json)


def _ladder_document(ladder: Any) -> dict[str, Any]:
    return {"best": ladder.best.name, **ladder.to_dict()}


@contextmanager
def _progress(rungs: int) -> Iterator[Callable[[str], None]]:
    """Say which guarantee is worked on."""
    seen = count(1)
    with closing(ProgressLine("ladder", wanted=True)) as line:
        yield lambda name: line.show(next(seen), rungs, name)
