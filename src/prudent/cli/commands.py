"""Commands about cases: what to do, what is measured, and what policies decide."""

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Option, echo

import prudent
from prudent.cli.options import (
    Capacity,
    CaseOptions,
    FileOptions,
    GuaranteeName,
    Pure,
    SlackText,
    Tolerance,
    UnknownOutcomes,
    on_cases,
    slack_from_text,
)
from prudent.errors import InputError
from prudent.policies import Policy, horizons
from prudent.policies.file_decisions import capacity_from_text
from prudent.progress import show_steps, tell


@on_cases
def advise(
    given: UnknownOutcomes,
    output: Annotated[
        str | None, Option("-o", "--output", metavar="JSON", help="Also write the advised rule to this file.")
    ] = None,
    guarantee: GuaranteeName = None,
    tolerance: Tolerance = None,
    capacity: Capacity = None,
) -> int:
    """Say what to do: follow the forecast (exit code 0), hedge (10), repair it (20), or not enough data (30).

    Without outcomes a --guarantee is needed, and the advice is the best rule for that.
    """
    with given.opened(guarantee, in_memory=True) as (decision, cases):
        found = prudent.advise(
            decision,
            cases,
            guarantee=guarantee,
            confidence=given.confidence,
            tolerance=tolerance,
            capacity=capacity_from_text(capacity, decision, len(cases)),
            progress=tell,
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
        str, Option(metavar="COL", help="Column of periods, in the order of time.")
    ],
    window: Annotated[
        int | None, Option(help="Take advice on so many latest periods instead of all earlier ones.")
    ] = None,
    tolerance: Tolerance = None,
) -> None:
    """Decide every period by advice from the periods before it; compare what was promised with what came."""
    with given.opened(in_memory=True) as (decision, cases):
        found = prudent.backtest(
            decision, cases, confidence=given.confidence, tolerance=tolerance, window=window, progress=tell
        )
    given.show(found.to_dict(), str(found))


@on_cases
def repair(
    given: CaseOptions,
    output: Annotated[str, Option("-o", "--output", metavar="JSON", help="Where the recalibrator goes.")],
) -> None:
    """Fit the recalibration that gains most in this decision, and save it for ``prudent decide --recalibrator``."""
    with given.opened(in_memory=True) as (decision, cases):
        found = prudent.advise(decision, cases, confidence=given.confidence, progress=tell)
        name, recalibrator = found.best_recalibrator()
    recalibrator.save(output)
    place = found.menu.names.index(name)
    gain, verdict = float(found.menu.estimates[place]), found.verdict.to_dict()
    document = {"recalibrator": name, "gain": gain, "verdict": verdict, "output": output}
    given.show(document, f"{found.verdict}\n{found.menu}\nTaken: {name}. Wrote {output}.")


_VIOLATED = 20


@on_cases
def audit(given: CaseOptions, guarantee: GuaranteeName = None) -> int:
    """Measure whether a guarantee holds: no violation is found (exit code 0), or one is (20).

    Without --guarantee: that forecasts, and the utility that they promise, are right on average. Several files,
    folders, globs and large files stay in DuckDB. With --context every value of these columns is measured, too.
    """
    with given.opened(guarantee) as (decision, cases):
        result = prudent.audit(decision, cases, guarantee=guarantee, by=given.context, confidence=given.confidence)
    given.show(result.to_dict(), str(result))
    return _VIOLATED if result.rejected else 0


@on_cases
def ladder(
    given: CaseOptions,
    guarantee: Annotated[
        list[str] | None, Option("--guarantee", metavar="NAME", help="One to compare; give several. By default six.")
    ] = None,
) -> None:
    """Compare what guarantees are worth on these rows."""
    compared = guarantee or []
    with given.opened(*compared) as (decision, cases):
        result = prudent.guarantee_ladder(
            decision, cases, guarantees=compared or None, confidence=given.confidence, progress=tell
        )
    given.show({"best": result.best.name, **result.to_dict()}, str(result))


@on_cases
def report(
    given: CaseOptions,
    output: Annotated[str, Option("-o", "--output", metavar="HTML", help="Where the page goes.")] = "report.html",
    guarantee: GuaranteeName = None,
    slack: SlackText = None,
    tolerance: Tolerance = None,
    capacity: Capacity = None,
    title: Annotated[str, Option(help="Of the page.")] = "What to do with the forecast",
) -> None:
    """Write one page with advice, rule, audit, ladder and stress test; it needs no network.

    With --guarantee the page shows the robust policy for it instead of the advised rule.
    """
    files = "standard input" if given.files == ["-"] else ", ".join(Path(file).name for file in given.files)
    with given.opened(guarantee, in_memory=True) as (decision, cases):
        page = prudent.Report(
            decision,
            cases,
            guarantee=guarantee or "auto",
            slack=slack_from_text(slack, given.outcome),
            confidence=given.confidence,
            tolerance=tolerance,
            capacity=capacity_from_text(capacity, decision, len(cases)),
            title=title,
            source=". ".join(filter(None, [files, given.said.rstrip(".")])),
            command=shlex.join(["prudent", *sys.argv[1:]]),
        )
        page.save(output)
    document = {"report": output, **page.advice.to_dict()}
    said = [str(page.advice.verdict), page.contradiction, f"The report is in {output}."]
    given.show(document, "\n".join(filter(None, said)))


_DEFAULT_GUARANTEE = "self-orthogonal"
_DEFAULT_TAKEN = f"No --guarantee was given; taken: {_DEFAULT_GUARANTEE}.\n"


@on_cases
def fit(
    given: UnknownOutcomes,
    output: Annotated[str, Option("--output", "-o", metavar="JSON", help="The policy; - prints it.")],
    guarantee: GuaranteeName = None,
    slack: SlackText = None,
    pure: Pure = False,
    salt: Annotated[str, Option(help="Mixed into draws; two salts draw independently.")] = "",
    capacity: Capacity = None,
) -> None:
    """Find a policy, and save it: the advised one where there are outcomes, else the best for a guarantee.

    With --guarantee it is the policy with the highest utility guaranteed, with slack measured where there are outcomes.
    Without either the guarantee is self-orthogonal. Several files, folders, globs and large files stay in DuckDB.
    """
    from prudent.policies import policy_text

    _one_output(given.as_json, output)
    allowed = slack_from_text(slack, given.outcome)
    advised = bool(given.outcome) and guarantee is None
    if advised and (slack is not None or pure or salt):
        raise InputError(
            "--slack, --pure and --salt belong to a --guarantee; with outcomes and none the rule is the advised one."
        )
    policy: Policy
    with given.opened(guarantee, in_memory=advised) as (decision, cases):
        n_rows, confidence = len(cases), given.confidence
        limits = capacity_from_text(capacity, decision, n_rows)
        if advised:
            found = prudent.advise(decision, cases, confidence=confidence, capacity=limits, progress=tell)
            policy, certificate, said = found.policy, found.certificate, f"{found.verdict}"
        else:
            policy = robust = prudent.RobustPolicy(
                decision,
                guarantee or _DEFAULT_GUARANTEE,
                randomize=not pure,
                slack=allowed,
                confidence=confidence,
                salt=salt,
                capacity=limits,
            ).fit(cases)
            certificate = robust.certificate_
            said = f"{'' if guarantee else _DEFAULT_TAKEN}{certificate}"
    if output == "-":
        echo(policy_text(policy), nl=False)
        return
    policy.save(output)
    fitted = getattr(policy, "fitted_", None)
    document = {
        "policy": type(policy).__name__,
        "chosen_by": "advice" if advised else "user" if guarantee else "default",
        "guarantee": None if fitted is None else repr(fitted.guarantee),
        "certificate": certificate.to_dict(),
        "rows": n_rows,
        "rows_snapped": 0 if fitted is None else fitted.n_snapped,
        "output": output,
    }
    given.show(document, f"{said}\n{n_rows:,} rows. Wrote {output}.")


@on_cases
def decide(
    given: FileOptions,
    policy: Annotated[str, Option(metavar="JSON", help="What prudent fit wrote.")],
    output: Annotated[str, Option("--output", "-o", metavar="FILE", help="Ends in .csv or .parquet; - prints CSV.")],
    id_column: Annotated[
        str | None, Option("--id", metavar="COL", help="Column of ids: the same id gets the same draw.")
    ] = None,
    seed: Annotated[int | None, Option(min=0, max=2**32 - 1, help="Draw by the order of rows, without ids.")] = None,
    probabilities: Annotated[
        bool, Option("--probabilities", help="Also write the probability of each action.")
    ] = False,
    recalibrator: Annotated[
        str | None, Option(metavar="JSON", help="What prudent repair wrote; applied first.")
    ] = None,
    capacity: Capacity = None,
) -> None:
    """Write one action per row, in the order of files and rows; they may be larger than memory."""
    from prudent.policies import decide_files

    _one_output(given.as_json, output)
    if id_column is not None and seed is not None:
        raise InputError("--id and --seed are two sources of draws; give one of them.")
    fitted = prudent.load(policy)
    if recalibrator is not None:
        fitted = prudent.RecalibratedPolicy(prudent.recalibration.Recalibrator.load(recalibrator), fitted)
    with show_steps("decide"):
        decisions = decide_files(
            fitted,
            given.files,
            given.forecast,
            output,
            id_column=id_column,
            seed=seed,
            probabilities=probabilities,
            reading=given.reading,
            outside=given.outside,
            missing=given.missing,
            not_over=tuple(filter(None, (policy, recalibrator))),
            capacity=partial(capacity_from_text, capacity, fitted._problem) if capacity else None,
        )
    if output == "-":
        return
    given.clipped = decisions.n_clipped
    rows, counts = decisions.n_rows, {str(label): count for label, count in decisions.counts.items()}
    shares = ", ".join(f"{label} {count / rows:.1%}" for label, count in counts.items())
    certain = decisions.certificates
    document = {
        "rows": rows,
        "actions": counts,
        "rows_snapped": decisions.n_snapped,
        "rows_dropped": decisions.n_dropped,
        "output": output,
        "certificates": [each.to_dict() for each in certain],
    }
    said = "".join(f"\nOn these cases: {each}." for each in certain).replace("..", ".")
    if rows > horizons.MOST_CERTIFIED and (isinstance(fitted, prudent.RobustPolicy) or fitted.past_ is not None):
        most = f"{horizons.MOST_CERTIFIED:,}"
        said = f"\nMore than {most} rows are not certified here: ask policy.certify(prudent.scan(...))."
    if decisions.n_dropped:
        said += f"\nRows without forecast that were left out: {decisions.n_dropped:,}."
    given.show(document, f"{rows:,} rows: {shares}. Wrote {output}.{said}")


@on_cases
def stress(
    given: UnknownOutcomes,
    guarantee: GuaranteeName = None,
    slack: SlackText = None,
    policy: Annotated[
        list[str] | None, Option(metavar="JSON", help="A policy of yours to compare; give several.")
    ] = None,
) -> None:
    """Compare the plug-in, robust and safety policies and yours, each in the others' worst world.

    Without --guarantee the guarantee is self-orthogonal.
    """
    promised, allowed = guarantee or _DEFAULT_GUARANTEE, slack_from_text(slack, given.outcome)
    names = ["plug-in", "robust", "safety", *(Path(path).stem for path in policy or ())]
    if len(set(names)) < len(names):
        raise InputError(f"policies go by the names of their files, which must differ; got {', '.join(names)}.")
    yours = [prudent.load(path) for path in policy or ()]
    with given.opened(guarantee) as (decision, cases):
        robust = prudent.RobustPolicy(decision, promised, slack=allowed, confidence=given.confidence).fit(cases)
        policies = [prudent.PlugInPolicy(decision), robust, prudent.SafetyPolicy(decision), *yours]
        named = dict(zip(names, policies, strict=True))
        result = prudent.stress_test(
            named, cases, guarantee=promised, slack=allowed, problem=decision, confidence=given.confidence
        )
        n_rows = len(cases)
    document = {
        "guarantee": repr(robust.guarantee_),
        "guarantee_chosen_by": "user" if guarantee else "default",
        "rows": n_rows,
        **result.to_dict(),
    }
    given.show(document, f"{'' if guarantee else _DEFAULT_TAKEN}{result}")


def _one_output(as_json: bool, output: str) -> None:
    if as_json and output == "-":
        raise InputError("--json and -o - both print to standard output; give -o a file.")
