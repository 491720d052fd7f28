"""``prudent fit`` and ``prudent stress``."""

from pathlib import Path
from typing import Annotated, Any

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
from prudent.cli.reading import opened_cases, slack_from_text
from prudent.cli.rendering import certificate_document, print_json
from prudent.errors import InputError
from prudent.formatting import records

_DEFAULT_GUARANTEE = "self-orthogonal"


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
    from prudent.guarantees.names import read_guarantee
    from prudent.policies import RobustPolicy, policy_text
    from prudent.problem import read_problem

    if as_json and output == "-":
        raise InputError("--json and -o - both print to standard output; give the policy a file.")
    decision = read_problem(problem)
    promised = read_guarantee(guarantee or _DEFAULT_GUARANTEE, decision)
    allowed = slack_from_text(slack, outcome)
    options: dict[str, Any] = {"randomize": not pure, "slack": allowed, "confidence": confidence, "salt": salt}
    policy = RobustPolicy(decision, promised, **options)
    with opened_cases("fit", files, delimiter, decision, forecast, outcome, weight) as cases:
        policy.fit(cases)
        n_rows = len(cases)
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
                "rows_snapped": policy.fitted_.n_snapped,
                "output": output,
            }
        )
        return
    if guarantee is None:
        typer.echo(f"No --guarantee was given; taken: {_DEFAULT_GUARANTEE}.")
    typer.echo(f"{policy.certificate_}\n{n_rows:,} rows. Wrote {output}.")


def stress(
    files: Files,
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
    from prudent.adversary.stress_test import stress_test
    from prudent.guarantees.names import read_guarantee
    from prudent.policies import PlugInPolicy, RobustPolicy, SafetyPolicy, load
    from prudent.problem import read_problem

    decision = read_problem(problem)
    promised = read_guarantee(guarantee or _DEFAULT_GUARANTEE, decision)
    allowed = slack_from_text(slack, outcome)
    names = ["plug-in", "robust", "safety", *(Path(path).stem for path in policy or ())]
    if len(set(names)) < len(names):
        raise InputError(f"policies go by the names of their files, which must differ; got {', '.join(names)}.")
    yours = [load(path) for path in policy or ()]
    with opened_cases("stress", files, delimiter, decision, forecast, outcome, weight) as cases:
        robust = RobustPolicy(decision, promised, slack=allowed, confidence=confidence).fit(cases)
        policies = [PlugInPolicy(decision), robust, SafetyPolicy(decision), *yours]
        named = dict(zip(names, policies, strict=True))
        result = stress_test(named, cases, guarantee=promised, slack=allowed, problem=decision, confidence=confidence)
        n_rows = len(cases)
    if as_json:
        print_json(
            {
                "guarantee": repr(promised),
                "guarantee_chosen_by": "default" if guarantee is None else "user",
                "optimum": certificate_document(result.optimum),
                "policies": records({"policy": list(result.names), **result.columns}),
                "rows": n_rows,
            }
        )
        return
    if guarantee is None:
        typer.echo(f"No --guarantee was given; taken: {_DEFAULT_GUARANTEE}.")
    typer.echo(str(result))
