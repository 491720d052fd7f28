"""Files to download: each reproduces what the page shows."""

from pprint import pformat
from typing import Any

from prudent.policies import policy_text
from prudent.studio.schemas import Download, Question
from prudent.studio.session import Session


def policy_json(session: Session, wanted: Download) -> str:
    """Return the policy as ``policy.save`` writes it."""
    return policy_text(session.report(wanted.question).policy)


def sql_text(session: Session, wanted: Download) -> str:
    """Return the policy as SQL: an action where it draws nothing or by a key, else the probability of each action."""
    policy, columns = session.report(wanted.question).policy, wanted.question.columns
    if policy.deterministic or columns.key:
        return f"{policy.to_sql(wanted.dialect, columns.forecast, key=columns.key)}\n"
    written: Any = policy.to_sql(wanted.dialect, columns.forecast, output="probabilities")
    names = [" ".join(str(action).split()) for action in written]
    return "\n".join(
        f"-- the probability of {name}\n{text}\n" for name, text in zip(names, written.values(), strict=True)
    )


def python_snippet(session: Session, wanted: Download) -> str:
    """Return Python code that fits the same policy, by the calls that the studio makes."""
    report = session.report(wanted.question)
    policy_text(report.policy)  # the script would fail where this does
    question, columns = wanted.question, wanted.question.columns
    opened = f"open_table({wanted.name!r}, reading={session.data_sets.get(question.data).reading!r})"
    named = f"{columns.forecast}, {columns.outcome}, {columns.weight!r}, {columns.period!r}"
    options = ", ".join(f"{name}={value!r}" for name, value in question.reading.items())
    table = pformat(question.problem.table(), width=110, sort_dicts=False).replace("\n", "\n    ")
    rungs = "from prudent.evidence.audits import usual_guarantees\n" if question.rungs else ""
    return f"""import prudent
from prudent.cases.file_rows import read_sample
from prudent.cases.file_sets import Reading
from prudent.cases.file_table import open_table
{rungs}from prudent.problem import problem_from_table

problem = problem_from_table(
    {table}
)
with {opened} as table:
    sample = read_sample(table, problem.space, {named}, {options})
cases = sample.cases
if sample.left_out:
    print(sample.left_out)

{_fit(question, report.capacity)}
policy.save("policy.json")
"""


def html_report(session: Session, wanted: Download) -> str:
    """Return the page of ``prudent.Report`` for the same inputs."""
    question, (_, left_out) = wanted.question, session.rows(wanted.question)
    source = wanted.name if left_out is None else f"{wanted.name}, {left_out}"
    return session.report(question, source=source, command=python_snippet(session, wanted)).to_html()


def _fit(question: Question, capacity: Any) -> str:
    confidence = f"confidence={question.confidence}" + (f", capacity={capacity}" if capacity else "")
    if not question.rungs:
        return f"advice = prudent.advise(problem, cases, {confidence})\npolicy = advice.policy\nprint(advice)"
    joined = " & ".join(f"rungs[{name!r}]" for name in question.rungs)
    options = f"slack={question.slack!r}, {confidence}"
    fit = f"prudent.RobustPolicy(problem, {joined}, {options})\npolicy.fit(cases)"
    return f"rungs = usual_guarantees(problem)\npolicy = {fit}\nprint(policy.certificate_)"
