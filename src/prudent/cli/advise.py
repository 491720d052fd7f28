"""Commands that answer from outcomes: ``prudent advise``, ``prudent backtest`` and ``prudent repair``."""

from contextlib import closing
from typing import Annotated, Any

import typer

import prudent
from prudent.cli.options import CaseOptions, GuaranteeName, Tolerance, UnknownOutcomes, on_cases
from prudent.progress import ProgressLine

_MENU_SIZE = 3


@on_cases
def advise(
    given: UnknownOutcomes,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="JSON", help="Also write the advised rule to this file.")
    ] = None,
    guarantee: GuaranteeName = None,
    tolerance: Tolerance = None,
) -> int:
    """Say what to do: follow the forecast (exit code 0), hedge (10), repair it (20), or not enough data (30).

    Without outcomes a --guarantee is needed, and the advice is the best rule for that.
    """
    read = given.opened(guarantee, in_memory=True)
    with read as (decision, cases), given.steps(_MENU_SIZE) as progress:
        found = prudent.advise(
            decision, cases, guarantee=guarantee, confidence=given.confidence, tolerance=tolerance, progress=progress
        )
    written = ""
    if output is not None:
        found.policy.save(output)
        written = f"\nThe rule is in {output}."
    given.show({**found.to_dict(), "output": output}, f"{found}{written}")
    return found.verdict.kind.exit_code


@on_cases
def backtest(
    given: CaseOptions,
    period: Annotated[  # noqa: ARG001  # one of the options that were given, here required
        str, typer.Option("--period", metavar="COL", help="Column of periods, in the order of time.")
    ],
    window: Annotated[
        int | None, typer.Option("--window", help="Take advice on so many latest periods instead of all earlier ones.")
    ] = None,
    tolerance: Tolerance = None,
) -> None:
    """Decide every period by advice from the periods before it; compare what was promised with what came."""
    options: dict[str, Any] = {"confidence": given.confidence, "tolerance": tolerance, "window": window}
    with (
        given.opened(in_memory=True) as (decision, cases),
        closing(ProgressLine("backtest", wanted=True)) as line,
    ):
        found = prudent.backtest(decision, cases, **options, progress=line.show)
    given.show(found.to_dict(), str(found))


@on_cases
def repair(
    given: CaseOptions,
    output: Annotated[str, typer.Option("-o", "--output", metavar="JSON", help="Where the recalibrator goes.")],
) -> None:
    """Fit the recalibration that gains most in this decision, and save it for ``prudent decide --recalibrator``."""
    read = given.opened(in_memory=True)
    with read as (decision, cases), given.steps(_MENU_SIZE) as progress:
        found = prudent.advise(decision, cases, confidence=given.confidence, progress=progress)
        name, recalibrator = found.best_recalibrator()
    recalibrator.save(output)
    place = found.menu.names.index(name)
    document = {
        "recalibrator": name,
        "gain": float(found.menu.estimates[place]),
        "verdict": found.verdict.to_dict(),
        "output": output,
    }
    given.show(document, f"{found.verdict}\n{found.menu}\nTaken: {name}. Wrote {output}.")
