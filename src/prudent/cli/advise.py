"""Commands that answer from outcomes: ``prudent advise``, ``prudent backtest`` and ``prudent repair``."""

from contextlib import closing
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
    OptionalOutcome,
    Outcome,
    Period,
    ProblemFile,
    Tolerance,
    Weight,
    show,
)
from prudent.cli.reading import opened_cases, steps_shown
from prudent.progress import ProgressLine

_MENU_SIZE = 3


def advise(
    files: Files,
    forecast: Forecast,
    outcome: OptionalOutcome = None,
    problem: ProblemFile = "problem.toml",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="JSON", help="Also write the advised rule to this file.")
    ] = None,
    guarantee: GuaranteeName = None,
    weight: Weight = None,
    period: Period = None,
    every: Every = None,
    confidence: ConfidenceLevel = 0.95,
    tolerance: Tolerance = None,
    missing: Missing = "refuse",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> int:
    """Say what to do: follow the forecast (exit code 0), hedge (10), repair it (20), or not enough data (30).

    Without outcomes a --guarantee is needed, and the advice is the best rule for that.
    """
    read = opened_cases("advise", locals(), guarantees=[guarantee], in_memory=True)
    with read as (decision, cases), steps_shown("advise", _MENU_SIZE) as progress:
        found = prudent.advise(
            decision, cases, guarantee=guarantee, confidence=confidence, tolerance=tolerance, progress=progress
        )
    written = ""
    if output is not None:
        found.policy.save(output)
        written = f"\nThe rule is in {output}."
    show({**found.to_dict(), "output": output}, f"{found}{written}", as_json)
    return found.verdict.kind.exit_code


def backtest(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    period: Annotated[str, typer.Option("--period", metavar="COL", help="Column of periods, in the order of time.")],
    problem: ProblemFile = "problem.toml",
    every: Every = None,
    window: Annotated[
        int | None, typer.Option("--window", help="Take advice on so many latest periods instead of all earlier ones.")
    ] = None,
    weight: Weight = None,
    confidence: ConfidenceLevel = 0.95,
    tolerance: Tolerance = None,
    missing: Missing = "refuse",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Decide every period by advice from the periods before it; compare what was promised with what came."""
    options: dict[str, Any] = {"confidence": confidence, "tolerance": tolerance, "window": window}
    with (
        opened_cases("backtest", locals(), in_memory=True) as (decision, cases),
        closing(ProgressLine("backtest", wanted=True)) as line,
    ):
        found = prudent.backtest(decision, cases, **options, progress=line.show)
    show(found.to_dict(), str(found), as_json)


def repair(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    output: Annotated[str, typer.Option("-o", "--output", metavar="JSON", help="Where the recalibrator goes.")],
    problem: ProblemFile = "problem.toml",
    weight: Weight = None,
    period: Period = None,
    every: Every = None,
    confidence: ConfidenceLevel = 0.95,
    missing: Missing = "refuse",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Fit the recalibration that gains most in this decision, and save it for ``prudent decide --recalibrator``."""
    read = opened_cases("repair", locals(), in_memory=True)
    with read as (decision, cases), steps_shown("repair", _MENU_SIZE) as progress:
        found = prudent.advise(decision, cases, confidence=confidence, progress=progress)
        name, recalibrator = found.best_recalibrator()
    recalibrator.save(output)
    place = found.menu.names.index(name)
    document = {
        "recalibrator": name,
        "gain": float(found.menu.estimates[place]),
        "verdict": found.verdict.to_dict(),
        "output": output,
    }
    show(document, f"{found.verdict}\n{found.menu}\nTaken: {name}. Wrote {output}.", as_json)
