"""``prudent ladder``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from prudent.cli.options import (
    AsJson,
    ConfidenceLevel,
    Delimiter,
    File,
    Forecast,
    Group,
    Missing,
    Outcome,
    ProblemFile,
    Weight,
    WhenMissing,
)

__all__ = ["ladder"]


class Center(StrEnum):
    """Where measured slack is centred."""

    zero = "zero"
    measured = "measured"


def ladder(
    file: File,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    guarantee: Annotated[
        list[str] | None,
        typer.Option("--guarantee", metavar="NAME", help="A rung; give several. By default six from weak to strong."),
    ] = None,
    weight: Weight = None,
    group: Group = None,
    confidence: ConfidenceLevel = 0.95,
    center: Annotated[Center, typer.Option("--center", help="Where the measured slack is centred.")] = Center.zero,
    missing: Missing = WhenMissing.refuse,
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Compare what guarantees are worth on these rows."""
    from prudent.auditing import guarantee_ladder
    from prudent.cli.progress_lines import rung_progress
    from prudent.cli.reading import opened_sample
    from prudent.cli.rendering import ladder_document, print_json
    from prudent.guarantees.names import guarantee_from_name
    from prudent.problem import read_problem

    decision = read_problem(problem)
    rungs = {name: guarantee_from_name(name, decision) for name in guarantee or ()}
    with (
        opened_sample(file, delimiter, decision, forecast, outcome, weight, group, missing.value) as sample,
        rung_progress("ladder", *([len(rungs)] if rungs else ())) as progress,
    ):
        result = guarantee_ladder(
            sample.forecasts,
            sample.outcomes,
            decision,
            rungs or None,
            confidence=confidence,
            center=center.value,
            sample_weight=sample.weights,
            groups=sample.groups,
            missing=missing.value,
            progress=progress,
        )
    if as_json:
        print_json(ladder_document(result))
    else:
        typer.echo(str(result))
