"""What the server answers is what the library computes."""

from __future__ import annotations

import hashlib
import html
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

import prudent
from prudent.evidence.audits import usual_guarantees
from prudent.policies import policy_text
from studio_questions import columns_of, problem_of

Ask = Callable[..., dict[str, Any]]


def answered(response: Any) -> dict[str, Any]:
    """An answer without what says when it was given, and to what."""
    return {name: value for name, value in response.json().items() if name != "inputs"}


def test_columns_are_guessed(client: TestClient, content: bytes) -> None:
    summary = client.post("/api/data", params={"name": "rows.csv"}, content=content).json()
    assert summary["rows"] == 400
    others = dict.fromkeys(("weight", "period", "every"))
    assert summary["guess"]["columns"] == {
        "forecast": ["forecast"],
        "outcome": ["y"],
        "key": "id",
        "context": [],
        **others,
    }
    assert summary["guess"]["problem"]["lower"] == [0.0]
    assert client.get(f"/api/data/{summary['id']}").json() == summary


def test_classes_are_guessed_from_the_names_of_probabilities(client: TestClient) -> None:
    content = b"p_ill,p_well,state\n0.2,0.8,well\n0.7,0.3,ill\n"
    guess = client.post("/api/data", content=content).json()["guess"]
    assert guess["columns"]["forecast"] == ["p_ill", "p_well"]
    assert guess["problem"]["classes"] == ["ill", "well"]


@pytest.mark.parametrize("values", [(-1.0, 1.0), (-3.0, 2.9), (1e-13, 2e-13), (-1e300, 1e300), (5.0, 5.0)])
def test_any_range_of_numbers_can_be_brought(client: TestClient, values: tuple[float, float]) -> None:
    rows = "".join(f"{value!r},{value!r}\n" for value in values)
    summary = client.post("/api/data", content=f"forecast,y\n{rows}".encode())
    assert summary.status_code == 200
    problem = summary.json()["guess"]["problem"]
    if problem is not None:
        assert problem["lower"][0] <= min(values) <= max(values) <= problem["upper"][0]
        question = {"data": summary.json()["id"], "columns": summary.json()["guess"]["columns"], "problem": problem}
        answered = client.post("/api/policy", json={**question, "guarantee": ["unbiased"], "slack": 0.0})
        assert answered.status_code == 200, answered.text


def test_parquet_gives_the_same_answer_as_csv(client: TestClient, content: bytes, ask: Ask) -> None:
    forecasts, outcomes = columns_of(content)
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": [str(i) for i in range(400)], "forecast": forecasts, "y": outcomes}), stream)
    summary = client.post("/api/data", params={"name": "rows.parquet"}, content=stream.getvalue()).json()
    first = client.post("/api/policy", json=ask()).json()
    second = client.post("/api/policy", json=ask(data=summary["id"])).json()
    for answer in (first, second):
        del answer["inputs"]
    assert first == second


@pytest.mark.parametrize(
    ("guarantee", "slack"),
    [(["self-orthogonal"], 0.02), (["unbiased", "bins"], "audit"), (["nothing"], 0.0), ("auto", "audit")],
)
def test_everything_equals_a_report_of_the_same_inputs(
    client: TestClient, content: bytes, ask: Ask, guarantee: Any, slack: Any
) -> None:
    question = ask(guarantee=guarantee, slack=slack)
    problem = problem_of(question)
    chosen: Any = guarantee
    if guarantee != "auto":
        rungs = usual_guarantees(problem)
        chosen = rungs[guarantee[0]]
        for name in guarantee[1:]:
            chosen = chosen & rungs[name]
    report = prudent.Report(problem, *columns_of(content), guarantee=chosen, slack=slack)
    policy = client.post("/api/policy", json=question).json()
    values = [card["value"] for card in policy["cards"]]
    if guarantee == "auto":
        advice = report.advice
        assert values == [advice.certificate.lower, advice.gain.estimate, advice.promise.realised, advice.stakes]
    else:
        certificate, nominal = report.robust.certificate_, report.stress.nominal
        assert (values[0], values[2]) == (certificate.lower, certificate.upper)
        assert values[1] == pytest.approx(nominal[1], abs=1e-12)
        assert values[3] == pytest.approx(nominal[0] - nominal[1], abs=1e-12)
    assert policy["bands"] == [{"first": b.first, "last": b.last, "played": str(b)} for b in report.bands]
    assert answered(client.post("/api/verdict", json=question)) == report.advice.to_dict()
    stress = client.post("/api/stress", json=question).json()
    assert stress["worst"] == report.stress.worst.tolist()
    assert stress["realised"] == report.stress.realised.tolist()
    ladder = client.post("/api/ladder", json=question).json()
    assert [rung["guaranteed"] for rung in ladder["rungs"]] == [rung.guaranteed for rung in report.ladder.rungs]
    assert ladder["best"] == report.ladder.best.name
    saved = client.post("/api/files/policy", json={"question": question}).text
    assert saved == policy_text(report.policy)


@pytest.mark.parametrize("change", [{}, {"guarantee": ["self-orthogonal"], "slack": 0.3}])
def test_the_verdict_does_not_depend_on_what_is_explored(
    client: TestClient, content: bytes, ask: Ask, change: dict[str, Any]
) -> None:
    advice = prudent.advise(problem_of(ask()), *columns_of(content))
    assert answered(client.post("/api/verdict", json=ask(**change))) == advice.to_dict()
    report = html.unescape(client.post("/api/files/report", json={"question": ask(**change)}).text)
    assert str(advice.verdict).partition(": ")[2][1:] in report


def test_a_guarantee_that_the_outcomes_contradict_says_so(client: TestClient, ask: Ask) -> None:
    """Every outcome is one: forecasts are too low on average."""
    content = "id,forecast,y\n" + "".join(f"a{i},{i / 500},1\n" for i in range(500))
    data = client.post("/api/data", content=content.encode()).json()["id"]
    for slack, contradicts in ((0.0, True), (0.6, False), ("audit", False)):
        cards = client.post("/api/policy", json=ask(data=data, guarantee=["unbiased"], slack=slack)).json()["cards"]
        assert ("contradict" in cards[0]["hint"]) == contradicts


def test_an_edited_decision_is_answered_as_if_it_were_the_first(client: TestClient, content: bytes, ask: Ask) -> None:
    for cost in (0.3, 0.6, 0.3, 0.45):
        question = ask()
        question["problem"]["costs"][1] = cost
        report = prudent.Report(problem_of(question), *columns_of(content))
        cards = client.post("/api/policy", json=question).json()["cards"]
        assert cards[0]["value"] == report.advice.certificate.lower
        assert answered(client.post("/api/verdict", json=question)) == report.advice.to_dict()
        ladder = client.post("/api/ladder", json=question).json()["rungs"]
        assert [rung["slack"] for rung in ladder] == [rung.slack for rung in report.ladder.rungs]
        assert [rung["realised"] for rung in ladder] == [rung.realised for rung in report.ladder.rungs]


@pytest.mark.parametrize("weights", [None, "positive", "some zero"])
@pytest.mark.parametrize(
    ("guarantee", "slack"), [(["self-orthogonal"], "audit"), (["self-orthogonal", "unbiased"], 0.01), ("auto", "audit")]
)
def test_a_stress_test_of_many_rows_equals_the_library_after_edits(
    client: TestClient, ask: Ask, guarantee: Any, slack: Any, weights: str | None
) -> None:
    """Many rows are solved through cells, and much is remembered from one edit to the next."""
    rng = np.random.default_rng(3)
    forecasts = rng.random(5_000).round(6)
    outcomes = (rng.random(5_000) < forecasts**1.2).astype(float)
    weight = rng.integers(1 if weights == "positive" else 0, 4, 5_000).astype(float)
    rows = zip(forecasts.tolist(), outcomes.tolist(), weight.tolist(), strict=True)
    content = "forecast,y,w\n" + "".join(f"{v!r},{y!r},{w!r}\n" for v, y, w in rows)
    data = client.post("/api/data", content=content.encode()).json()["id"]
    for cost in (0.3, 0.45):
        question = ask(data=data, guarantee=guarantee, slack=slack)
        question["columns"] = {"forecast": ["forecast"], "outcome": ["y"], "weight": "w" if weights else None}
        question["problem"]["costs"][1] = cost
        policy, stress = (client.post(f"/api/{part}", json=question).json() for part in ("policy", "stress"))
        problem, chosen = problem_of(question), guarantee
        if guarantee != "auto":
            rungs = usual_guarantees(problem)
            chosen = rungs[guarantee[0]] if len(guarantee) == 1 else rungs[guarantee[0]] & rungs[guarantee[1]]
        report = prudent.Report(
            problem, forecasts, outcomes, guarantee=chosen, slack=slack, weights=weight if weights else None
        )
        certificate = report.advice.certificate if guarantee == "auto" else report.robust.certificate_
        assert policy["cards"][0]["value"] == certificate.lower
        assert answered(client.post("/api/verdict", json=question)) == report.advice.to_dict()
        assert stress["worst"] == report.stress.worst.tolist()
        assert stress["nominal"] == report.stress.nominal.tolist()
        assert stress["realised"] == report.stress.realised.tolist()
        assert stress["under"] == report.stress.under.tolist()


def test_an_answer_names_the_bytes_of_its_question(client: TestClient, ask: Ask) -> None:
    body = json.dumps(ask(), indent=3).encode()
    answer = client.post("/api/policy", content=body, headers={"Content-Type": "application/json"}).json()
    assert answer["inputs"] == hashlib.sha256(body).hexdigest()


def test_without_outcomes_there_is_a_policy_and_no_verdict(client: TestClient, ask: Ask) -> None:
    question = ask(guarantee=["self-orthogonal"], slack=0.0)
    question["columns"]["outcome"] = []
    assert client.post("/api/policy", json=question).status_code == 200
    assert client.post("/api/stress", json=question).json()["realised"] is None
    for path in ("verdict", "ladder"):
        refused = client.post(f"/api/{path}", json=question)
        assert (refused.status_code, "outcomes" in refused.json()["message"]) == (422, True)
    refused = client.post("/api/policy", json={**question, "slack": "audit"})
    assert (refused.status_code, refused.json()["where"]) == (422, "slack")


@pytest.mark.parametrize("name", ["patients", "staffing", "triage"])
def test_every_example_answers(client: TestClient, name: str) -> None:
    summary = client.post(f"/api/examples/{name}").json()
    question = {"data": summary["id"], **{part: summary["guess"][part] for part in ("columns", "problem")}}
    answer = client.post("/api/policy", json=question)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["cards"]) == 4
    assert client.post("/api/verdict", json=question).status_code == 200
    point = [1 / 3] * 3 if name == "triage" else [0.5 if name == "staffing" else 150.0]
    told = client.post("/api/explain", json={"question": question, "forecast": point}).json()
    assert told["story"].startswith("At the forecast")
    assert sum(told["probabilities"]) == pytest.approx(1)


def test_periods_are_those_of_the_library(client: TestClient) -> None:
    rng = np.random.default_rng(9)
    forecasts = rng.random(600)
    outcomes = (rng.random(600) < forecasts).astype(float)
    days = [str(np.datetime64("2011-01-01") + int(k)) for k in rng.integers(0, 240, 600)]
    lines = [f"{f!r},{y},{day}" for f, y, day in zip(forecasts.tolist(), outcomes.tolist(), days, strict=True)]
    content = "\n".join(["forecast,y,day", *lines]) + "\n"
    data = client.post("/api/data", content=content.encode()).json()["id"]
    problem = {"kind": "linear", "actions": ["wait", "act"], "rewards": [[0.0], [1.0]], "costs": [0.0, 0.4]}
    question = {
        "data": data,
        "columns": {"forecast": ["forecast"], "outcome": ["y"], "period": "day", "every": "month"},
        "problem": {**problem, "lower": [0.0], "upper": [1.0]},
    }
    answer = client.post("/api/verdict", json=question).json()
    cases = prudent.Cases(forecasts, outcomes, periods=days, every="month")
    decision = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"])
    expected = prudent.advise(decision, cases)
    assert expected.next_period is not None
    assert answer["next_period"]["lower"] == expected.next_period.lower
    assert answer["certificate"]["lower"] == expected.certificate.lower
    page = client.post("/api/files/report", json={"question": question, "name": "days.csv"}).text
    assert "What advice would have come to" in page
    broken = client.post("/api/verdict", json={**question, "columns": {**question["columns"], "period": "y"}})
    assert broken.status_code == 422
    assert "must be dates" in broken.json()["message"]
