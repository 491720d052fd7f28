"""Python, the command line, the report and the studio give the same advice, to the last digit."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from fastapi.testclient import TestClient

import prudent
from prudent.cli.application import application
from prudent.cli.boundary import run
from prudent.evidence.audits import usual_guarantees
from prudent.policies import policy_text
from prudent.problem import read_problem
from prudent.recalibration import IsotonicCalibrator, ScalingCalibrator
from prudent.studio.application import create_application

PROBLEM = 'actions = ["wait", "act"]\nrewards = [0.0, 1.0]\ncosts = [0.0, 0.5]\n'
LINEAR = {
    "kind": "linear",
    "actions": ["wait", "act"],
    "rewards": [[0.0], [1.0]],
    "costs": [0.0, 0.5],
    "lower": [0.0],
    "upper": [1.0],
}
#: Kind of the verdict, its exit code, the number of rows, and the power of the forecast that outcomes come with.
KINDS = [("follow", 0, 4_000, 1.0), ("repair", 20, 4_000, 2.0), ("not_enough_data", 30, 100, 1.2)]


def rows(n: int, power: float) -> tuple[np.ndarray, np.ndarray, str]:
    """Forecasts, outcomes, and both as a file."""
    rng = np.random.default_rng(1)
    forecasts = rng.random(n).round(6)
    outcomes = (rng.random(n) < forecasts**power).astype(int)
    lines = (f"a{i},{f},{y}" for i, (f, y) in enumerate(zip(forecasts, outcomes, strict=True)))
    return forecasts, outcomes, "\n".join(["id,f,y", *lines]) + "\n"


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command in a folder with the problem, and return its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    Path("problem.toml").write_text(PROBLEM)

    def call(*arguments: str) -> tuple[int, Any]:
        capfd.readouterr()
        code = run(application, [*arguments, "--json"])
        return code, json.loads(capfd.readouterr().out)

    return call


@pytest.mark.parametrize(("kind", "code", "n", "power"), KINDS)
def test_every_face_gives_the_same_advice(ask: Callable[..., Any], kind: str, code: int, n: int, power: float) -> None:
    forecasts, outcomes, text = rows(n, power)
    Path("rows.csv").write_text(text)
    problem = read_problem("problem.toml")
    advice = prudent.advise(problem, forecasts, outcomes)
    expected, rule = advice.to_dict(), policy_text(advice.policy)
    assert advice.verdict.kind.value == kind
    options = ("rows.csv", "--forecast", "f", "--outcome", "y")

    assert ask("advise", *options, "-o", "rule.json") == (code, {**expected, "output": "rule.json"})
    assert Path("rule.json").read_text() == rule
    assert ask("fit", *options, "-o", "fitted.json")[0] == 0
    assert Path("fitted.json").read_text() == rule

    assert ask("report", *options, "-o", "page.html") == (0, {"report": "page.html", **expected})
    report = prudent.Report(problem, forecasts, outcomes)
    assert report.advice.to_dict() == expected
    assert policy_text(report.policy) == rule
    assert str(advice.verdict).partition(": ")[2][1:] in html.unescape(Path("page.html").read_text(encoding="utf-8"))

    with TestClient(create_application(), base_url="http://127.0.0.1:8765") as client:
        data = client.post("/api/data", params={"name": "rows.csv"}, content=text.encode()).json()["id"]
        columns = {"forecast": ["f"], "outcome": ["y"], "weight": None, "key": "id"}
        question = {"data": data, "columns": columns, "problem": LINEAR}
        answer = client.post("/api/verdict", json=question).json()
        assert {name: answer[name] for name in expected} == expected
        cards = client.post("/api/policy", json=question).json()["cards"]
        assert cards[0]["value"] == advice.certificate.lower
        assert client.post("/api/files/policy", json={"question": question}).text == rule


def test_without_outcomes_the_faces_give_the_same_hedge(ask: Callable[..., Any]) -> None:
    forecasts, _, text = rows(500, 1.0)
    Path("rows.csv").write_text(text)
    advice = prudent.advise(read_problem("problem.toml"), forecasts, guarantee="self-orthogonal")
    assert advice.verdict.kind.value == "hedge"
    options = ("rows.csv", "--forecast", "f", "--guarantee", "self-orthogonal")
    assert ask("advise", *options, "-o", "rule.json") == (10, {**advice.to_dict(), "output": "rule.json"})
    robust = prudent.RobustPolicy(read_problem("problem.toml"), "self-orthogonal").fit(forecasts)
    assert ask("fit", *options, "-o", "fitted.json")[1]["certificate"] == robust.certificate_.to_dict()
    for saved in ("rule.json", "fitted.json"):
        np.testing.assert_array_equal(
            prudent.load(saved).predict_proba(forecasts), advice.policy.predict_proba(forecasts)
        )
    with TestClient(create_application(), base_url="http://127.0.0.1:8765") as client:
        data = client.post("/api/data", params={"name": "rows.csv"}, content=text.encode()).json()["id"]
        question = {
            "data": data,
            "columns": {"forecast": ["f"], "outcome": [], "weight": None, "key": "id"},
            "problem": LINEAR,
            "guarantee": ["self-orthogonal"],
            "slack": 0.0,
        }
        card = client.post("/api/policy", json=question).json()["cards"][0]
    named = usual_guarantees(read_problem("problem.toml"))["self-orthogonal"]
    explored = prudent.advise(read_problem("problem.toml"), forecasts, guarantee=named)
    assert card["value"] == pytest.approx(explored.certificate.lower, abs=1e-12)


def test_every_face_keeps_to_a_capacity_and_looks_at_context(ask: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    forecasts, region = rng.uniform(0.1, 0.9, 3_000).round(6), rng.choice(["north", "south"], 3_000)
    outcomes = (rng.random(3_000) < forecasts + np.where(region == "north", 0.1, -0.1)).astype(int)
    lines = (f"a{i},{r},{f},{y}" for i, (r, f, y) in enumerate(zip(region, forecasts, outcomes, strict=True)))
    text = "\n".join(["id,region,f,y", *lines]) + "\n"
    Path("rows.csv").write_text(text)
    problem, context, capacity = read_problem("problem.toml"), {"region": region}, {"act": 900 / 3_000}
    advice = prudent.advise(problem, forecasts, outcomes, context=context, capacity=capacity)
    expected, rule = advice.to_dict(), policy_text(advice.policy)
    assert (advice.verdict.kind.value, len(expected["by_segment"]["columns"]["segment"])) == ("repair", 2)
    price = advice.policy.policy.shadow_prices_["act"]
    options = ("rows.csv", "--forecast", "f", "--outcome", "y", "--context", "region", "--capacity", "act=900")
    assert ask("advise", *options, "-o", "rule.json") == (20, {**expected, "output": "rule.json"})
    assert Path("rule.json").read_text() == rule
    assert ask("report", *options, "-o", "page.html") == (0, {"report": "page.html", **expected})
    page = html.unescape(Path("page.html").read_text(encoding="utf-8"))
    assert all(words in page for words in ("region=north", "one more place for act", f"<dd>{price:.4g}<small>"))
    cases = prudent.Cases(forecasts, outcomes, context=context)
    stress = prudent.Report(problem, cases, capacity=capacity).stress
    with TestClient(create_application(), base_url="http://127.0.0.1:8765") as client:
        data = client.post("/api/data", params={"name": "rows.csv"}, content=text.encode()).json()["id"]
        columns = {"forecast": ["f"], "outcome": ["y"], "context": ["region"]}
        question = {"data": data, "columns": columns, "problem": LINEAR, "capacity": ["act=30%"]}
        answer = client.post("/api/verdict", json=question).json()
        assert {name: answer[name] for name in expected} == expected
        found = client.post("/api/policy", json=question).json()
        assert (found["cards"][0]["value"], found["cards"][-1]["value"]) == (advice.certificate.lower, price)
        assert found["cards"][-1]["hint"] == "the rule gives it to 30.0%, of at most 30.0%"
        assert found["shares_best_respond"][1] == pytest.approx(0.3, abs=1e-9)
        assert found["context"] == {"region": ["north", "south"]}
        assert client.post("/api/files/policy", json={"question": question}).text == rule
        assert client.post("/api/stress", json=question).json()["worst"] == stress.worst.tolist()
        for name in ("north", "south"):
            case = {"question": question, "forecast": [0.62], "context": {"region": name}}
            told = advice.policy.explain(0.62, context={"region": name})
            assert client.post("/api/explain", json=case).json()["story"] == str(told)


def test_a_rule_in_use_is_kept() -> None:
    """Only Python knows other rules in use than to follow the forecast."""
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
    forecasts, outcomes, _ = rows(4_000, 1.0)
    rule = prudent.FixedRule(problem, thresholds=[0.5])
    advice = prudent.advise(problem, forecasts, outcomes, against=rule)
    assert (advice.verdict.kind.value, advice.verdict.kind.exit_code) == ("keep", 0)
    assert advice.policy.get_params() == rule.get_params()
    assert str(advice).startswith("Keep the rule in use: ")


SPACES = {
    "interval": (prudent.Box(0, 1), ["isotonic", "platt", "bias", "shift", "affine"]),
    "two classes": (prudent.Simplex(2), ["isotonic", "platt", "bias", "temperature"]),
    "three classes": (prudent.Simplex(3), ["isotonic", "bias", "temperature", "vector"]),
    "long interval": (prudent.Box(-20, 300), ["isotonic", "shift", "affine"]),
}


@pytest.mark.parametrize(("where", "method"), [(where, each) for where, (_, kinds) in SPACES.items() for each in kinds])
def test_sql_of_a_recalibrated_rule_plays_what_python_plays(where: str, method: str, tmp_path: Path) -> None:
    space = SPACES[where][0]
    rng = np.random.default_rng(4)
    if isinstance(space, prudent.Simplex):
        classes = space.n_classes
        problem = prudent.DecisionProblem.from_payoffs(
            np.vstack([np.eye(classes), np.full(classes, 0.7)]), actions=[*"abc"[:classes], "ask"]
        )
        forecasts = rng.dirichlet(np.ones(classes), 1_500)
        outcomes: Any = [rng.choice(classes, p=row**2 / (row**2).sum()) for row in forecasts]
    else:
        low, high = space.interval
        problem = prudent.DecisionProblem(
            [0.0, 1.0, 2.0], [0.0, 0.4 * high, 1.1 * high], actions=["none", "some", "all"], space=space
        )
        forecasts = (low + (high - low) * rng.random(1_500))[:, None]
        share = ((forecasts[:, 0] - low) / (high - low)) ** 2
        outcomes = low + (high - low) * (rng.random(1_500) < share)
    calibrator = IsotonicCalibrator(space=space) if method == "isotonic" else ScalingCalibrator(method, space=space)
    policy = prudent.RecalibratedPolicy(calibrator.fit(forecasts, outcomes), prudent.PlugInPolicy(problem))
    policy.save(tmp_path / "rule.json")
    names = [f"p{j}" for j in range(forecasts.shape[1])]
    table = {"id": np.arange(len(forecasts)), **dict(zip(names, forecasts.T, strict=True))}
    ends = ", ".join(f"{name} DOUBLE" for name in names)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (id BIGINT, {ends})")
        rows_of = list(zip(*(column.tolist() for column in table.values()), strict=True))
        connection.executemany(f"INSERT INTO t VALUES (?{', ?' * len(names)})", rows_of[:400])
        for rule in (policy, prudent.load(tmp_path / "rule.json")):
            sql = rule.to_sql("duckdb", names if len(names) > 1 else names[0], table="t")
            played = [row[0] for row in connection.execute(f"SELECT {sql} FROM t ORDER BY id").fetchall()]
            assert played == policy.predict(forecasts[:400]).tolist()
    assert len(set(played)) > 1
