"""``prudent report``."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from prudent.cli.options import (
    AsJson,
    ConfidenceLevel,
    Delimiter,
    Files,
    Forecast,
    GuaranteeName,
    Outcome,
    ProblemFile,
    SlackText,
    Weight,
)


def report(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    output: Annotated[str, typer.Option("-o", "--output", metavar="HTML", help="Where the page goes.")] = "report.html",
    guarantee: GuaranteeName = None,
    slack: SlackText = "audit",
    pure: Annotated[bool, typer.Option("--pure", help="The best rule without randomness.")] = False,
    weight: Weight = None,
    confidence: ConfidenceLevel = 0.95,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "How far to trust the forecast",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Write one page with verdict, guarantee, policy, audit, ladder and stress test; it needs no network.

    Without --guarantee the rung of the ladder that guarantees most is taken.
    """
    from prudent.cli.reading import opened_cases, slack_from_text
    from prudent.cli.rendering import audit_document, certificate_document, print_json
    from prudent.guarantees.names import read_guarantee
    from prudent.problem import read_problem
    from prudent.report import Report

    decision = read_problem(problem)
    promised = "auto" if guarantee is None else read_guarantee(guarantee, decision)
    with opened_cases("report", files, delimiter, decision, forecast, outcome, weight, in_memory=True) as cases:
        page = Report(
            decision,
            cases,
            guarantee=promised,
            slack=slack_from_text(slack, outcome),
            randomize=not pure,
            confidence=confidence,
            title=title,
            source="standard input" if files == ["-"] else ", ".join(Path(file).name for file in files),
            command=shlex.join(["prudent", *sys.argv[1:]]),
        )
    page.save(output)
    if as_json:
        certificate = certificate_document(page.policy.certificate_)
        chosen_by = "ladder" if page.chosen else "user"
        print_json({"report": output, "chosen_by": chosen_by, "certificate": certificate, **audit_document(page.audit)})
    else:
        chosen = (
            f"No --guarantee was given, so the guarantees of the ladder were compared; taken: {page.guarantee_name}.\n"
            if page.chosen
            else ""
        )
        typer.echo(f"{chosen}{page.audit.verdict}\nThe report is in {output}.")
