"""Files to take away: each reproduces what the page shows."""

from __future__ import annotations

import csv
import io
from pprint import pformat

from prudent.errors import InputError
from prudent.policies import Policy, action_bands, policy_text
from prudent.studio.questions import Download, Question
from prudent.studio.workshop import QuestionError, Workshop

__all__ = ["html_report", "policy_json", "python_snippet", "sql_text", "thresholds_csv"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def policy_json(workshop: Workshop, wanted: Download) -> str:
    """Return the policy as ``policy.save`` writes it."""
    return policy_text(workshop.policy(wanted.question).policy)


def thresholds_csv(workshop: Workshop, wanted: Download) -> str:
    """Return the bands of the policy."""
    try:
        return bands_text(workshop.policy(wanted.question).policy)
    except InputError as error:
        raise QuestionError(str(error), "columns.forecast") from error


def bands_text(policy: Policy) -> str:
    """Write bands as CSV: ends to the last digit, and the probability of each action at both.

    Examples
    --------
    >>> import prudent
    >>> from prudent.studio.takeaway import bands_text
    >>> policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.25], actions=["wait", "=act()"]))
    >>> print(bands_text(policy))
    first,last,played,wait at first,wait at last,'=act() at first,'=act() at last
    0.0,0.25,wait,1.0,1.0,0.0,0.0
    0.25000000000000006,1.0,'=act(),0.0,0.0,1.0,1.0
    <BLANKLINE>
    """
    bands = action_bands(policy)
    actions = policy._problem.actions
    header = ["first", "last", "played", *(f"{action} at {end}" for action in actions for end in ("first", "last"))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_defused(cell) for cell in header])
    for band in bands:
        ends = zip(band.at_first.tolist(), band.at_last.tolist(), strict=True)
        writer.writerow([band.first, band.last, _defused(str(band)), *(share for pair in ends for share in pair)])
    return text.getvalue()


def sql_text(workshop: Workshop, wanted: Download) -> str:
    """Return the policy as SQL: an action where it draws nothing or by a key, else the probability of each action."""
    question = wanted.question
    policy = workshop.policy(question).policy
    try:
        if policy.deterministic or question.columns.key:
            key = None if policy.deterministic else question.columns.key
            return f"{policy.to_sql(wanted.dialect, question.columns.forecast, key=key)}\n"
        written = policy.to_sql(wanted.dialect, question.columns.forecast, output="probabilities")
    except InputError as error:
        raise QuestionError(str(error), "columns") from error
    if isinstance(written, str):
        raise AssertionError("probabilities are written by action")
    names = [" ".join(str(action).split()) for action in written]
    return "\n".join(
        f"-- the probability of {name}\n{text}\n" for name, text in zip(names, written.values(), strict=True)
    )


def python_snippet(workshop: Workshop, wanted: Download) -> str:
    """Return a few lines of Python that come to the same policy."""
    workshop.policy(wanted.question)  # what cannot be fitted here cannot be there
    return _snippet(workshop, wanted)


def _snippet(workshop: Workshop, wanted: Download) -> str:
    """Write the same calls that the studio makes."""
    question = wanted.question
    columns = question.columns
    delimiter = workshop.data_sets.get(question.data).delimiter
    opened = repr(wanted.name) if delimiter == "," else f"{wanted.name!r}, delimiter={delimiter!r}"
    imports = ["import prudent"]
    if question.guarantee != "auto":
        imports.append("from prudent.auditing import usual_guarantees")
    skip = question.skip_broken_rows
    readers = "WithoutRows, find_unusable_rows, open_table, read_sample" if skip else "open_table, read_sample"
    imports += ["from prudent.problem import problem_from_table", f"from prudent.tables import {readers}"]
    arguments = [pformat(columns.forecast), pformat(columns.outcome), pformat(columns.weight)]
    table = pformat(question.problem.table(), width=110, sort_dicts=False).replace("\n", "\n    ")
    finding = [
        f"with open_table({opened}) as table:",
        f"    unusable = find_unusable_rows(table, problem.space, {', '.join(arguments)})",
        "print(unusable)",
    ]
    rows = "WithoutRows(table, unusable.rows)" if skip else "table"
    lines = [
        *imports,
        "",
        f"problem = problem_from_table(\n    {table}\n)",
        *(finding if skip else []),
        f"with open_table({opened}) as table:",
        f"    sample = read_sample({rows}, problem.space, {', '.join(arguments)})",
        "",
        *_fit(question),
        'policy.save("policy.json")',
        "print(policy.certificate_)",
    ]
    return "\n".join(lines) + "\n"


def html_report(workshop: Workshop, wanted: Download) -> str:
    """Return the page of ``prudent.Report`` for the same inputs."""
    return workshop.report(wanted.question, wanted.name, _snippet(workshop, wanted)).to_html()


def _fit(question: Question) -> list[str]:
    family = "PureRobustPolicy" if question.pure else "RobustPolicy"
    if question.guarantee == "auto":
        options = f"pure={question.pure}, confidence={question.confidence}, sample_weight=sample.weights"
        return [
            f"report = prudent.Report(problem, sample.forecasts, sample.outcomes, {options})",
            "policy = report.policy",
        ]
    joined = " & ".join(f"rungs[{name!r}]" for name in dict.fromkeys(question.guarantee))
    slack = 'prudent.Slack("audit", center="measured")' if question.slack == "audit" else repr(question.slack)
    return [
        "rungs = usual_guarantees(problem)",
        f"policy = prudent.{family}(problem, {joined}, slack={slack}, confidence={question.confidence})",
        "policy.fit(sample.forecasts, sample.outcomes, sample_weight=sample.weights)",
    ]


def _defused(cell: str) -> str:
    """Keep spreadsheets from taking a text for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
