"""Files to download reproduce what the page shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

import prudent
from prudent.evidence.audits import usual_guarantees
from prudent.policies import policy_text
from prudent.slack import Slack
from studio_questions import columns_of, problem_of

Ask = Callable[..., dict[str, Any]]


def test_files_reproduce_the_policy(client: TestClient, content: bytes, ask: Ask, tmp_path: Path) -> None:
    question = ask(guarantee=["self-orthogonal"], slack="audit")
    problem = problem_of(question)
    slack = Slack("audit")
    forecasts, outcomes = columns_of(content)
    policy = prudent.RobustPolicy(problem, usual_guarantees(problem)["self-orthogonal"], slack=slack)
    policy.fit(forecasts, outcomes)
    files = {
        name: client.post(f"/api/files/{name}", json={"question": question, "name": "rows.csv"}).text
        for name in ("policy", "sql", "python", "report")
    }
    assert files["policy"] == policy_text(policy)
    assert files["sql"] == policy.to_sql("duckdb", "forecast", key="id") + "\n"
    guarantee = usual_guarantees(problem)["self-orthogonal"]
    options = {"guarantee": guarantee, "source": "rows.csv", "command": files["python"]}
    assert files["report"] == prudent.Report(problem, forecasts, outcomes, **options).to_html()
    (tmp_path / "rows.csv").write_bytes(content)
    (tmp_path / "policy.py").write_text(files["python"])
    subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "policy.json").read_text() == files["policy"]


def test_sql_without_a_key_gives_probabilities(client: TestClient, ask: Ask) -> None:
    question = ask(guarantee=["unbiased"], slack=0.1)
    question["columns"]["key"] = None
    text = client.post("/api/files/sql", json={"question": question, "dialect": "spark"}).text
    assert text.count("-- the probability of ") == 2
