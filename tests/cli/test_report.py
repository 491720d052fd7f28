"""``report`` on good input: the page is that of the library."""

from __future__ import annotations

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
    assert "No --guarantee was given, so the usual guarantees were compared" in done.out
    assert str(expected.audit.verdict) in done.out
    assert (folder / "page.html").read_text(encoding="utf-8") == expected.to_html()


def test_takes_a_guarantee(command: Callable[..., Any], folder: Path) -> None:
    options = ("--guarantee", "self-orthogonal", "--slack", "0.01", "--pure", "--json")
    result = json.loads(command(*ARGUMENTS, *options).out)
    policy = prudent.RobustPolicy(
        read_problem("problem.toml"), guarantees.SelfOrthogonal(), slack=0.01, randomize=False
    )
    assert result["certificate"]["lower"] == pytest.approx(policy.fit(columns()["f"]).certificate_.lower, abs=1e-9)
    assert result["chosen_by"] == "user"
    assert (folder / result["report"]).is_file()
