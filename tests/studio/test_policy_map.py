"""Maps over two coordinates and three classes: what the page colours is what the policy plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import prudent
from prudent.evidence.audits import usual_guarantees
from prudent.policies import Policy
from prudent.slack import Slack

PLANE = {
    "kind": "linear",
    "actions": ["neither", "first", "both"],
    "rewards": [[0.0, 0.0], [1.0, 0.2], [1.0, 1.0]],
    "costs": [0.0, 0.45, 0.95],
    "lower": [0.0, -1.0],
    "upper": [1.0, 1.0],
}


def two_columns(n: int = 500) -> tuple[bytes, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    forecasts = np.stack([rng.random(n), 2 * rng.random(n) - 1], axis=1).round(6)
    outcomes = np.clip(forecasts + rng.normal(0, 0.2, (n, 2)), [0, -1], [1, 1]).round(6)
    lines = [",".join(map(str, [*f, *y])) for f, y in zip(forecasts, outcomes, strict=True)]
    return "\n".join(["f1,f2,y1,y2", *lines, ""]).encode(), forecasts, outcomes


def plane_question(client: TestClient, content: bytes, **changes: Any) -> dict[str, Any]:
    identity = client.post("/api/data", content=content).json()["id"]
    columns = {"forecast": ["f1", "f2"], "outcome": ["y1", "y2"], "weight": None, "key": None}
    return {"data": identity, "columns": columns, "problem": PLANE, "guarantee": ["self-orthogonal"], **changes}


def check_regions(regions: dict[str, Any], policy: Policy) -> None:
    steps, space = regions["steps"], policy.problem.space
    if regions["kind"] == "plane":
        low, high = space.bounds
        middles = [low + (np.array([i, j]) + 0.5) / steps * (high - low) for i in range(steps) for j in range(steps)]
    else:
        up = [np.array([i, j, steps - 1 - i - j]) + 1 / 3 for i in range(steps) for j in range(steps - i)]
        down = [np.array([i, j, steps - 2 - i - j]) + 2 / 3 for i in range(steps - 1) for j in range(steps - 1 - i)]
        middles = [middle / steps for middle in up + down]
    shares = policy.predict_proba(np.array(middles))
    assert regions["likeliest"] == shares.argmax(axis=1).tolist()
    np.testing.assert_allclose(regions["hundredths"], 100 * shares.max(axis=1), atol=0.5 + 1e-9)
    assert sum(crowd["share"] for crowd in regions["crowds"]) == pytest.approx(1)
    examples = regions["examples"]
    np.testing.assert_allclose(examples["shares"], policy.predict_proba(examples["forecasts"]), atol=1e-6)


def test_two_outcome_columns_from_end_to_end(client: TestClient) -> None:
    content, forecasts, outcomes = two_columns()
    question = plane_question(client, content)
    answer = client.post("/api/policy", json=question).json()
    problem = prudent.DecisionProblem(
        PLANE["rewards"], PLANE["costs"], actions=PLANE["actions"], space=prudent.Box([0.0, -1.0], [1.0, 1.0])
    )
    guarantee = usual_guarantees(problem)["self-orthogonal"]
    policy = prudent.RobustPolicy(problem, guarantee, slack=Slack("audit"))
    policy.fit(forecasts, outcomes)
    assert answer["cards"][0]["value"] == policy.certificate_.lower
    assert "curve" not in answer
    assert answer["regions"]["kind"] == "plane"
    check_regions(answer["regions"], policy)
    verdict = client.post("/api/verdict", json=question).json()["verdict"]
    assert verdict == prudent.advise(problem, forecasts, outcomes).verdict.to_dict()
    ladder = client.post("/api/ladder", json=question).json()
    expected = prudent.guarantee_ladder(problem, forecasts, outcomes)
    assert [rung["guaranteed"] for rung in ladder["rungs"]] == [rung.guaranteed for rung in expected.rungs]
    assert len(client.post("/api/stress", json=question).json()["names"]) == 3
    told = client.post("/api/explain", json={"question": question, "forecast": [0.5, 0.0]}).json()
    assert told["probabilities"] == policy.predict_proba([[0.5, 0.0]])[0].tolist()
    assert client.post("/api/files/report", json={"question": question}).status_code == 200


def test_three_classes_have_a_triangle_and_four_have_none(client: TestClient) -> None:
    summary = client.post("/api/examples/triage").json()
    start = summary["guess"]
    question = {"data": summary["id"], "columns": start["columns"], "problem": start["problem"], "slack": 0.05}
    question["guarantee"] = ["unbiased"]
    regions = client.post("/api/policy", json=question).json()["regions"]
    assert regions["kind"] == "triangle"
    saved = client.post("/api/files/policy", json={"question": question}).text
    check_regions(regions, loaded(saved))
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(4), 50).round(6)
    shares[:, 0] = (1 - shares[:, 1:].sum(axis=1)).round(6)
    rows = "\n".join(",".join(map(str, [*row, "abcd"[k % 4]])) for k, row in enumerate(shares))
    identity = client.post("/api/data", content=f"a,b,c,d,label\n{rows}\n".encode()).json()["id"]
    problem = {
        "kind": "payoffs",
        "actions": ["x", "y"],
        "classes": list("abcd"),
        "payoffs": [[1, 0, 0, 0], [0, 1, 1, 1]],
    }
    columns = {"forecast": list("abcd"), "outcome": ["label"]}
    asked = {"data": identity, "columns": columns, "problem": problem, "guarantee": ["unbiased"], "slack": 0.1}
    assert client.post("/api/policy", json=asked).json()["regions"] is None


def loaded(text: str) -> Policy:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.json"
        path.write_text(text)
        return prudent.load(path)
