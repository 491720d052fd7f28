"""``prudent audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.options import (
    AsJson,
    ConfidenceLevel,
    Delimiter,
    Files,
    Forecast,
    Group,
    GuaranteeName,
    Missing,
    Outcome,
    ProblemFile,
    Weight,
    WhenMissing,
)

if TYPE_CHECKING:
    from prudent.auditing import Verdict

__all__ = ["audit"]


def audit(
    files: Files,
    forecast: Forecast,
    outcome: Outcome,
    problem: ProblemFile = "problem.toml",
    guarantee: GuaranteeName = None,
    weight: Weight = None,
    group: Group = None,
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

    Without --guarantee the ladder of guarantees is walked and the rung that guarantees most is audited. Several files,
    folders, globs and large files stay in DuckDB.
    """
    from prudent.auditing import audit as audit_guarantee
    from prudent.auditing import audit_best_rung
    from prudent.cli.progress_lines import rung_progress
    from prudent.cli.reading import opened_rows
    from prudent.cli.rendering import audit_document, ladder_document, print_json
    from prudent.guarantees.names import guarantee_from_name
    from prudent.problem import read_problem

    decision = read_problem(problem)
    promised = None if guarantee is None else guarantee_from_name(guarantee, decision)
    with opened_rows("audit", files, delimiter, decision, forecast, outcome, weight, group, missing.value) as given:
        data = (given.forecasts, given.outcomes)
        rows: dict[str, Any] = {"sample_weight": given.weights, "groups": given.groups, "missing": given.missing}
        if promised is not None:
            result = audit_guarantee(
                *data, promised, problem=decision, confidence=confidence, tolerance=tolerance, **rows
            )
            ladder = None
            text = str(result)
        else:
            with rung_progress("ladder") as progress:
                walked = audit_best_rung(
                    *data, decision, tolerance=tolerance, confidence=confidence, progress=progress, **rows
                )
            result, ladder = walked.audit, walked.ladder
            text = f"No --guarantee was given, so the ladder was walked.\n{walked}"
    if as_json:
        chosen = {} if ladder is None else {"ladder": ladder_document(ladder)}
        print_json({"chosen_by": "ladder" if chosen else "user", **audit_document(result), **chosen})
    else:
        typer.echo(text)
    return _exit_code(result.verdict)


def _exit_code(verdict: Verdict) -> int:
    return {"trust": 0, "hedge": 10, "repair": 20, "not_enough_data": 30}[verdict.kind.value]
