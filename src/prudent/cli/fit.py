"""``prudent fit``."""

from __future__ import annotations

from typing import Annotated

import typer

from prudent.cli.options import (
    AsJson,
    ConfidenceLevel,
    Delimiter,
    Files,
    Forecast,
    GuaranteeName,
    OptionalOutcome,
    ProblemFile,
    SlackText,
    Weight,
)
from prudent.errors import InputError
from prudent.progress import show_steps

__all__ = ["DEFAULT_GUARANTEE", "fit"]

DEFAULT_GUARANTEE = "self-orthogonal"


def fit(
    files: Files,
    forecast: Forecast,
    output: Annotated[str, typer.Option("--output", "-o", metavar="JSON", help="The policy; - prints it.")],
    problem: ProblemFile = "problem.toml",
    outcome: OptionalOutcome = None,
    guarantee: GuaranteeName = None,
    slack: SlackText = "0",
    weight: Weight = None,
    confidence: ConfidenceLevel = 0.95,
    pure: Annotated[bool, typer.Option("--pure", help="The best policy without draws.")] = False,
    salt: Annotated[str, typer.Option("--salt", help="Mixed into draws; two salts draw independently.")] = "",
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Find the optimal policy for what forecasts promise, and save it.

    Without --guarantee the promise is self-orthogonal. Several files, folders, globs and large files stay in DuckDB.
    """
    from prudent.cli.reading import opened_rows, slack_from_text
    from prudent.cli.rendering import certificate_document, print_json
    from prudent.guarantees.names import guarantee_from_name
    from prudent.policies import PureRobustPolicy, RobustPolicy, policy_text
    from prudent.problem import read_problem

    if as_json and output == "-":
        raise InputError("--json and -o - both print to standard output; give the policy a file.")
    decision = read_problem(problem)
    promised = guarantee_from_name(guarantee or DEFAULT_GUARANTEE, decision)
    allowed = slack_from_text(slack, outcome)
    family = PureRobustPolicy if pure else RobustPolicy
    policy = family(decision, promised, slack=allowed, confidence=confidence, salt=salt)
    with opened_rows("fit", files, delimiter, decision, forecast, outcome, weight) as rows:
        with show_steps("fit", wanted=rows.connection is None):  # else passes over the table are shown
            policy.fit(rows.forecasts, rows.outcomes, sample_weight=rows.weights)
        n_rows = rows.n_rows
    if output == "-":
        typer.echo(policy_text(policy), nl=False)
        return
    policy.save(output)
    if as_json:
        print_json(
            {
                "policy": type(policy).__name__,
                "guarantee": repr(policy.guarantee_),
                "guarantee_chosen_by": "default" if guarantee is None else "user",
                "certificate": certificate_document(policy.certificate_),
                "rows": n_rows,
                "rows_snapped": policy.n_snapped_,
                "output": output,
            }
        )
        return
    if guarantee is None:
        typer.echo(f"No --guarantee was given; taken: {DEFAULT_GUARANTEE}.")
    typer.echo(f"{policy.certificate_}\n{n_rows:,} rows. Wrote {output}.")
