"""``prudent audit`` and ``prudent ladder``."""

from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Annotated, Any

import typer

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
    Weight,
    WhenMissing,
)
from prudent.cli.reading import opened_cases
from prudent.cli.rendering import audit_document, ladder_document, print_json
from prudent.progress import ProgressLine

_DEFAULT_RUNGS = 6
_EXIT_CODES = {"trust": 0, "hedge": 10, "repair": 20, "not_enough_data": 30}


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
    missing: Missing = WhenMissing.refuse,
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> int:
    """Measure what forecasts promise: trust (exit code 0), hedge (10), repair (20) or not enough data (30).

    Without --guarantee the guarantees of the ladder are compared, and the one that guarantees most is audited. Several
    files, folders, globs and large files stay in DuckDB.
    """
    from prudent.evidence.audits import audit as audit_guarantee
    from prudent.evidence.ladder import guarantee_ladder
    from prudent.guarantees.names import read_guarantee
    from prudent.problem import read_problem

    decision = read_problem(problem)
    promised = None if guarantee is None else read_guarantee(guarantee, decision)
    options: dict[str, Any] = {"confidence": confidence, "tolerance": tolerance}
    with opened_cases("audit", files, delimiter, decision, forecast, outcome, weight, period, missing.value) as cases:
        text, chosen = "", {}
        if promised is None:
            with closing(ProgressLine("ladder", wanted=True)) as line:
                progress = _counting(line, _DEFAULT_RUNGS)
                compared = guarantee_ladder(decision, cases, confidence=confidence, progress=progress)
            # The choice is made by the same rows, so all guarantees must hold at once.
            promised, options["confidence"] = compared.best.guarantee, compared.rung_confidence
            chosen = {"ladder": ladder_document(compared)}
            text = (
                f"No --guarantee was given, so the guarantees of the ladder were compared.\n{compared}\n\n"
                f"The audit of {compared.best.name!r}, at {100 * compared.rung_confidence:.4g}% so that the choice "
                f"among {len(compared.rungs)} guarantees is allowed for:\n"
            )
        result = audit_guarantee(decision, cases, guarantee=promised, **options)
    if as_json:
        print_json({"chosen_by": "ladder" if chosen else "user", **audit_document(result), **chosen})
    else:
        typer.echo(f"{text}{result}")
    return _EXIT_CODES[result.verdict.kind.value]


def ladder(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    guarantee: Annotated[
        list[str] | None,
        typer.Option("--guarantee", metavar="NAME", help="A rung; give several. By default six from weak to strong."),
    ] = None,
    weight: Weight = None,
    period: Period = None,
    confidence: ConfidenceLevel = 0.95,
    missing: Missing = WhenMissing.refuse,
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Compare what guarantees are worth on these rows."""
    from prudent.evidence.ladder import guarantee_ladder
    from prudent.guarantees.names import read_guarantee
    from prudent.problem import read_problem

    decision = read_problem(problem)
    rungs = {name: read_guarantee(name, decision) for name in guarantee or ()}
    with (
        opened_cases("ladder", files, delimiter, decision, forecast, outcome, weight, period, missing.value) as cases,
        closing(ProgressLine("ladder", wanted=True)) as line,
    ):
        progress = _counting(line, len(rungs) or _DEFAULT_RUNGS)
        result = guarantee_ladder(decision, cases, guarantees=rungs or None, confidence=confidence, progress=progress)
    if as_json:
        print_json(ladder_document(result))
    else:
        typer.echo(str(result))


def _counting(line: ProgressLine, rungs: int) -> Callable[[str], None]:
    """Say which rung of the ladder is worked on."""
    seen = count(1)
    return lambda name: line.show(next(seen), rungs, name)
