"""Passes over tables on a terminal: a line that says how far they are, and an end when somebody asks for it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.terminal import Terminal, in_terminal

import prudent
from prudent import guarantees
from prudent.cli.application import application
from prudent.cli.boundary import run
from prudent.problem import EXAMPLE_PROBLEM, read_problem

EXECUTABLE = str(Path(sys.executable).parent / "prudent")
PATIENCE = 300.0  # seconds until a test gives up on a process; nothing is measured

# A query that nobody would wait for, and a connection that is asked for more afterwards.
ENDLESS = """
import duckdb, prudent
from prudent.progress import show_steps
connection = duckdb.connect()
columns = prudent.scan(connection.sql("SELECT random() AS v FROM range(100000000000)"), "v")
policy = prudent.RobustPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5]), prudent.guarantees.Unbiased())
try:
    with show_steps("fit"):
        policy.fit(columns)
except KeyboardInterrupt:
    print("interrupted", hasattr(policy, "fitted_"), connection.sql("SELECT 42").fetchall(), flush=True)
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "problem.toml").write_text(EXAMPLE_PROBLEM)
    (tmp_path / "logs").mkdir()
    for number in range(2):
        rows = f"SELECT i AS id, (i % 1000 + 0.5) / 1000 AS f, (i % 7 = 0)::INT AS y FROM range({number}, 4000, 2) t(i)"
        duckdb.sql(rows).write_parquet(str(tmp_path / "logs" / f"{number}.parquet"))
    return tmp_path


def test_fit_and_audit_say_which_pass_they_make(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = [EXECUTABLE, "fit", "logs", "--forecast", "f", "-o", "policy.json"]
    code, output, seen = in_terminal(fit, logs)
    assert code == 0, seen
    assert "Wrote policy.json" in output
    assert "\rfit: counting rows" in seen
    assert seen.count("\n") == 1  # one line, written over itself
    monkeypatch.chdir(logs)
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    run(application, ["audit", "logs", "--forecast", "f", "--outcome", "y", "--guarantee", "unbiased"])
    assert "\raudit: measuring moments" in shown.getvalue()


def test_nothing_is_shown_where_nobody_looks(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(logs)
    assert run(application, ["fit", "logs", "--forecast", "f", "-o", "policy.json"]) == 0
    assert capsys.readouterr().err == ""


def test_an_interruption_ends_the_query_and_leaves_the_connection(tmp_path: Path) -> None:
    code, output, seen = in_terminal([sys.executable, "-c", ENDLESS], tmp_path, b"fit: gathering rows")
    assert (code, output) == (0, "interrupted False [(42,)]\n"), seen


@pytest.mark.parametrize(
    ("target", "request_to_stop", "code", "message"),
    [
        ("actions.parquet", signal.SIGINT, 130, "prudent: interrupted.\n"),
        ("actions.csv", signal.SIGTERM, 143, ""),
    ],
    ids=["interrupted", "terminated"],
)
def test_actions_that_are_half_written_go(
    logs: Path, target: str, request_to_stop: signal.Signals, code: int, message: str
) -> None:
    rows = "SELECT i AS id, (i % 1000 + 0.5) / 1000 AS f FROM range(4000, 2000000) t(i)"
    duckdb.sql(rows).write_parquet(str(logs / "logs" / "2.parquet"))
    policy = prudent.RobustPolicy(read_problem(logs / "problem.toml"), guarantees.SelfOrthogonal())
    policy.fit(np.linspace(0, 1, 100)).save(logs / "policy.json")
    (logs / target).write_text("yesterday's")
    before = names(logs)
    options = ["--policy", "policy.json", "--forecast", "f", "--id", "id", "-o", target]
    process = subprocess.Popen(
        [EXECUTABLE, "decide", "logs", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=logs
    )
    deadline = time.monotonic() + PATIENCE
    while names(logs) == before and process.poll() is None and time.monotonic() < deadline:  # until it writes
        time.sleep(0.02)
    assert names(logs) > before
    process.send_signal(request_to_stop)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.decode()) == (code, b"", message), err.decode()
    assert names(logs) == before
    assert (logs / target).read_text() == "yesterday's"


def names(folder: Any) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_one_pass_is_not_called_passes() -> None:
    columns = prudent.scan(duckdb.sql("SELECT unnest([0.1, 0.2, 0.9]) AS v"), "v")
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    message = prudent.RobustPolicy(problem, guarantees.Unbiased()).fit(columns).certificate_.message
    assert " 1 pass" in message
    assert "1 passes" not in message
