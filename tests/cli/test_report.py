"""``report`` on good input: the page is that of the library."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prudent
from cli.conftest import columns
from prudent import guarantees
from prudent.problem import read_problem

ARGUMENTS = ("report", "rows.csv", "--forecast", "f", "--outcome", "y")


def test_writes_the_page_of_the_library(executable: Callable[..., Any], folder: Path) -> None:
    done = executable(*ARGUMENTS, "--title", "Tomorrow", "-o", "page.html")
    data = columns()
    expected = prudent.Report(
        read_problem("problem.toml"),
        data["f"],
        data["y"],
        title="Tomorrow",
        source="rows.csv",
        command="prudent report rows.csv --forecast f --outcome y --title Tomorrow -o page.html",
    )
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{expected.advice.verdict}\nThe report is in page.html.\n"
    assert (folder / "page.html").read_text(encoding="utf-8") == expected.to_html()


def test_takes_a_guarantee(command: Callable[..., Any], folder: Path) -> None:
    options = ("--guarantee", "self-orthogonal", "--slack", "0.01", "--json")
    done = command(*ARGUMENTS, *options)
    result, data = json.loads(done.out), columns()
    problem = read_problem("problem.toml")
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack=0.01)
    page = html.unescape((folder / result["report"]).read_text(encoding="utf-8"))
    assert f"{policy.fit(data['f']).certificate_.lower:.4g}" in page
    assert "SelfOrthogonal(intercept=False)" in page
    # What to do is told all the same.
    assert result == {"report": "report.html", **prudent.advise(problem, data["f"], data["y"]).to_dict()}


@pytest.mark.parametrize(
    "by_period",
    [
        False,
        True,
    ],
)
def test_periods_tolerance_and_missing_outcomes_are_passed_on(
    command: Callable[..., Any], folder: Path, by_period: bool
) -> None:
    text = (folder / "rows.csv").read_text().splitlines()
    text[3] = ",".join([*text[3].split(",")[:2], "", *text[3].split(",")[3:]])
    (folder / "rows.csv").write_text("\n".join(text) + "\n")
    options = ("--tolerance", "0.02", "--missing", "drop", "--confidence", "0.9", "--json")
    options = ("--period", "g", *options) if by_period else options
    result, data = json.loads(command(*ARGUMENTS, *options).out), columns()
    outcomes = data["y"].astype(float)
    outcomes[2] = float("nan")
    expected = prudent.advise(
        read_problem("problem.toml"),
        data["f"],
        outcomes,
        periods=data["g"] if by_period else None,
        tolerance=0.02,
        confidence=0.9,
        missing="drop",
    )
    assert result == {"report": "report.html", **expected.to_dict()}
    assert result["n_dropped"] == 1


def test_slack_is_measured_unless_it_is_given(command: Callable[..., Any], folder: Path) -> None:
    assert command(*ARGUMENTS, "--guarantee", "unbiased", "-o", "one.html").code == 0
    assert command(*ARGUMENTS, "--guarantee", "unbiased", "--slack", "audit", "-o", "two.html").code == 0
    data = columns()
    policy = prudent.RobustPolicy(read_problem("problem.toml"), "unbiased", slack="audit").fit(data["f"], data["y"])
    one, two = ((folder / name).read_text(encoding="utf-8") for name in ("one.html", "two.html"))
    assert f"{policy.certificate_.lower:.4g}" in one
    assert one.partition('id="again"')[0] == two.partition('id="again"')[0]
