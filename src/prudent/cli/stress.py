"""``prudent stress``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prudent.cli.fit import DEFAULT_GUARANTEE
from prudent.cli.options import (
    AsJson,
    ConfidenceLevel,
    Delimiter,
    File,
    Forecast,
    GuaranteeName,
    OptionalOutcome,
    ProblemFile,
    SlackText,
    Weight,
)
from prudent.errors import InputError

__all__ = ["stress"]


def stress(
    file: File,
    forecast: Forecast,
    problem: ProblemFile = "problem.toml",
    outcome: OptionalOutcome = None,
    guarantee: GuaranteeName = None,
    slack: SlackText = "0",
    weight: Weight = None,
    confidence: ConfidenceLevel = 0.95,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", metavar="JSON", help="A policy of yours to compare; give several.")
    ] = None,
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Compare best responding, the robust policy, playing safe and yours, each in the others' worst world.

    Without --guarantee the promise is self-orthogonal.
    """
    from prudent.cli.reading import opened_sample, slack_from_text
    from prudent.cli.rendering import certificate_document, print_json, records
    from prudent.guarantees.names import guarantee_from_name
    from prudent.policies import PlugInPolicy, RobustPolicy, SafetyPolicy, load
    from prudent.problem import read_problem
    from prudent.stress import stress_test

    decision = read_problem(problem)
    promised = guarantee_from_name(guarantee or DEFAULT_GUARANTEE, decision)
    allowed = slack_from_text(slack, outcome)
    names = ["plug-in", "robust", "safety", *(Path(path).stem for path in policy or ())]
    if len(set(names)) < len(names):
        raise InputError(f"policies go by the names of their files, which must differ; got {', '.join(names)}.")
    yours = [load(path) for path in policy or ()]
    with opened_sample(file, delimiter, decision, forecast, outcome, weight) as sample:
        robust = RobustPolicy(decision, promised, slack=allowed, confidence=confidence)
        robust.fit(sample.forecasts, sample.outcomes, sample_weight=sample.weights)
        result = stress_test(
            dict(zip(names, [PlugInPolicy(decision), robust, SafetyPolicy(decision), *yours], strict=True)),
            sample.forecasts,
            sample.outcomes,
            guarantee=promised,
            slack=allowed,
            problem=decision,
            sample_weight=sample.weights,
            confidence=confidence,
        )
    if as_json:
        print_json(
            {
                "guarantee": repr(promised),
                "guarantee_chosen_by": "default" if guarantee is None else "user",
                "optimum": certificate_document(result.optimum),
                "policies": records({"policy": list(result.names), **result.columns}),
                "rows": len(sample.forecasts),
            }
        )
        return
    if guarantee is None:
        typer.echo(f"No --guarantee was given; taken: {DEFAULT_GUARANTEE}.")
    typer.echo(str(result))
