"""The command line: its commands, and those that read no rows."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prudent
import prudent.cli
from prudent.demo import run_demonstration
from prudent.problem import read_problem


def test_demo_prints_both_answers(executable: Callable[..., Any]) -> None:
    done = executable("demo")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{run_demonstration()}\n"
    before, _, after = done.out.partition("2. WITH OUTCOMES")
    assert "Hedge: " in before
    assert re.search(r"^(Follow|Repair|Hedge|Not enough)", after.strip())


def test_demo_prints_json_alone(command: Callable[..., Any]) -> None:
    document, found = json.loads(command("demo", "--json").out), run_demonstration()
    assert document == {"without_outcomes": found.before.to_dict(), "with_outcomes": found.after.to_dict()}


def test_the_report_of_the_demo_shows_its_second_answer(command: Callable[..., Any], folder: Path) -> None:
    assert "The report is in demo.html" in command("demo", "--report", "demo.html").out
    _, _, sentence = str(run_demonstration().after.verdict).partition(": ")
    assert sentence[1:] in html.unescape((folder / "demo.html").read_text(encoding="utf-8"))


def test_help_and_version(executable: Callable[..., Any]) -> None:
    shown = executable("--help")
    assert shown.code == 0
    for name in ("demo", "init", "advise", "audit", "fit", "decide", "repair", "stress", "ladder", "report", "studio"):
        assert name in shown.out
    assert executable("--version").out == f"prudent {prudent.__version__}\n"


def test_without_its_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as caught:
        prudent.cli.main()
    assert caught.value.code == 2
    assert "pip install 'prudent[cli]'" in capsys.readouterr().err


class TestInit:
    def test_writes_a_problem_that_can_be_read(self, executable: Callable[..., Any], tmp_path: Path) -> None:
        done = executable("init", cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        problem = read_problem(tmp_path / "problem.toml")
        assert problem == prudent.DecisionProblem(
            [0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"]
        )

    def test_does_not_replace_a_file_unless_told(self, command: Callable[..., Any], folder: Path) -> None:
        (folder / "problem.toml").write_text("mine")
        assert command("init").code == 2
        assert (folder / "problem.toml").read_text() == "mine"
        assert command("init", "--force").code == 0
        assert "rewards" in (folder / "problem.toml").read_text()

    def test_prints_to_a_pipe(self, command: Callable[..., Any], folder: Path) -> None:
        assert command("init", "-").out == (folder / "problem.toml").read_text()
