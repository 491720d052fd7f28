"""The session: results go with their data, are bounded, and can leave out rows that break a rule."""

from __future__ import annotations

import csv
import gc
import io
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from prudent.studio.data_sets import DataSets, RequestError
from prudent.studio.schemas import Question
from prudent.studio.session import Session

Ask = Callable[..., dict[str, Any]]
_FILLING, _MORE = 80, 30  # a cache holds 64 results
BROKEN = {3: ("high", None), 10: (None, ""), 11: ("1.5", None), 50: ("", ""), 77: (" inf ", None), 90: (None, "nan")}
SENTENCE = (
    "6 of 400 rows left out because 'forecast' is empty or not a finite number (3); 'forecast' lies outside the "
    "outcome space (1); 'y' is empty or not a finite number (2)"
)


def test_results_go_with_their_data(rows: Callable[..., bytes], ask: Ask) -> None:
    data_sets = DataSets()
    session = Session(data_sets)
    question = Question.model_validate(ask(data=data_sets.add(rows(50, 1), "rows.csv").id))
    report = session.report(question)
    held = [session.rows(question)[0], report.rows, report.policy, report.stress, report.audit]
    known = [weakref.ref(one) for one in held]
    del held, report
    for seed in range(2, 18):
        newest = data_sets.add(rows(50, seed), "rows.csv").id
    session.rows(Question.model_validate(ask(data=newest)))
    gc.collect()
    assert [reference() for reference in known] == [None] * 5
    with pytest.raises(RequestError, match="does not hold these data any more"):
        session.report(question)


def test_results_are_computed_once_for_what_they_depend_on(rows: Callable[..., bytes], ask: Ask) -> None:
    data_sets = DataSets()
    session = Session(data_sets)
    identity = data_sets.add(rows(50, 1), "rows.csv").id

    def asked(**changes: Any) -> Question:
        return Question.model_validate(ask(data=identity, **changes))

    best, picked, surer = asked(), asked(guarantee=["self-orthogonal"]), asked(confidence=0.99)
    for part in ("advice", "ladder", "policy", "robust", "audit", "stress"):
        assert getattr(session.report(best), part) is getattr(session.report(asked()), part)
        assert getattr(session.report(picked), part) is getattr(
            session.report(asked(guarantee=["self-orthogonal"])), part
        )
    assert session.report(best).ladder is session.report(picked).ladder
    assert session.report(best).ladder is not session.report(surer).ladder
    assert session.report(best).advice is session.report(picked).advice
    assert session.report(best).advice is not session.report(surer).advice
    assert session.report(best).policy is session.report(best).advice.policy
    assert session.report(best).robust is session.report(best).ladder.best.policy
    assert session.report(picked).policy is session.report(picked).robust
    assert session.report(best).policy is not session.report(picked).policy
    assert session.report(picked).audit is session.report(asked(guarantee=["self-orthogonal"], slack=0.1)).audit
    renamed = asked()
    renamed.problem.actions[0] = "rest"
    assert session.rows(renamed)[0] is session.rows(best)[0]
    assert session.report(renamed).policy.problem.actions[0] == "rest"


REFUSED = {
    "capacity must be an action among wait, act with a number or share": ["act"],
    "cannot be kept by any rule at once": ["wait=30%", "act=100"],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_an_impossible_capacity_is_refused_with_its_reason(client: TestClient, ask: Ask, reason: str) -> None:
    for part in ("policy", "verdict", "stress"):
        refused = client.post(f"/api/{part}", json=ask(capacity=REFUSED[reason]))
        assert (refused.status_code, refused.json()["where"]) == (422, "capacity")
        assert reason in refused.json()["message"]


def test_results_within_a_capacity_are_their_own(client: TestClient, ask: Ask) -> None:
    plain = client.post("/api/policy", json=ask()).json()
    for limit in ("act=20%", "act=40", "act=20%"):
        within = client.post("/api/policy", json=ask(capacity=[limit])).json()
        assert within["shares"][1] == pytest.approx(0.2 if limit == "act=20%" else 0.1, abs=1e-9)
        assert within["cards"][4]["value"] > 0
        assert within["curve"]["acts_on"] == "forecast"
    assert client.post("/api/policy", json=ask()).json()["cards"] == plain["cards"]


@pytest.mark.parametrize("guarantee", ["auto", ["self-orthogonal"]])
def test_the_script_knows_context_and_capacity(client: TestClient, ask: Ask, tmp_path: Path, guarantee: Any) -> None:
    rng = np.random.default_rng(1)
    forecasts, region = rng.uniform(0.1, 0.9, 2_000).round(6), rng.integers(1, 3, 2_000)
    outcomes = (rng.random(2_000) < np.clip(forecasts + np.where(region == 1, 0.2, -0.2), 0, 1)).astype(int)
    lines = (f"{r},{f},{y}" for r, f, y in zip(region, forecasts, outcomes, strict=True))
    content = "\n".join(["region,forecast,y", *lines]).encode()
    columns = {"forecast": ["forecast"], "outcome": ["y"], "context": ["region"]}
    identity = client.post("/api/data", content=content).json()["id"]
    question = ask(data=identity, columns=columns, capacity=["act=700"], guarantee=guarantee)
    found = client.post("/api/policy", json=question).json()["context"]
    assert found == ({"region": ["1", "2"]} if guarantee == "auto" else {})
    files = {
        name: client.post(f"/api/files/{name}", json={"question": question}) for name in ("python", "policy", "sql")
    }
    assert ('"region"' in files["sql"].text) == (guarantee == "auto")
    (tmp_path / "data.csv").write_bytes(content)
    (tmp_path / "policy.py").write_text(files["python"].text)
    subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "policy.json").read_text() == files["policy"].text


@pytest.mark.slow
def test_what_is_held_does_not_grow_with_the_number_of_questions(
    client: TestClient, ask: Callable[..., dict[str, Any]]
) -> None:
    def go(first: int, rounds: int) -> int:
        for k in range(first, first + rounds):
            question = ask(guarantee=["self-orthogonal"], slack=round(0.001 * (k + 1), 6))
            question["problem"]["costs"][1] = 0.3 + 0.001 * k
            for part in ("policy", "verdict", "stress", "ladder"):
                assert client.post(f"/api/{part}", json=question).status_code == 200
        gc.collect()
        return len(gc.get_objects())

    full = go(0, _FILLING)
    # A policy is a dozen objects, and four parts make several results each. How many are held depends on the question:
    # a verdict that says hedge holds a policy.
    assert go(_FILLING, _MORE) <= full + 20 * _MORE


@pytest.fixture
def damaged(content: bytes) -> bytes:
    rows = list(csv.reader(io.StringIO(content.decode())))
    for row, (forecast, outcome) in BROKEN.items():
        rows[row][1] = rows[row][1] if forecast is None else forecast
        rows[row][2] = rows[row][2] if outcome is None else outcome
    return "\n".join(",".join(row) for row in [*rows, []]).encode()


@pytest.fixture
def sound(content: bytes) -> bytes:
    lines = content.decode().splitlines(keepends=True)
    return "".join(line for number, line in enumerate(lines) if number not in BROKEN).encode()


def test_answers_are_those_of_the_other_rows_and_say_so(
    client: TestClient, ask: Ask, damaged: bytes, sound: bytes
) -> None:
    ids = [client.post("/api/data", content=content).json()["id"] for content in (damaged, sound)]
    question, plain = ask(data=ids[0], skip_broken_rows=True), ask(data=ids[1])
    refused = client.post("/api/policy", json={**question, "skip_broken_rows": False})
    assert (refused.status_code, len(refused.json()["rows"])) == (422, 7)  # one row breaks two rules
    for part in ("policy", "verdict", "stress", "ladder"):
        answer, expected = (client.post(f"/api/{part}", json=asked).json() for asked in (question, plain))
        if part == "policy":
            assert (answer.pop("left_out"), expected.pop("left_out")) == (SENTENCE, None)
        del answer["inputs"], expected["inputs"]
        assert answer == expected
    assert "6 of 400 rows left out" in client.post("/api/files/report", json={"question": question}).text


def test_nothing_is_left_out_of_sound_rows_and_everything_is_refused(client: TestClient, ask: Ask) -> None:
    assert client.post("/api/policy", json=ask(skip_broken_rows=True)).json()["left_out"] is None
    identity = client.post("/api/data", content=b"id,forecast,y\na,2,1\nb,3,0\n").json()["id"]
    refused = client.post("/api/policy", json=ask(data=identity, skip_broken_rows=True))
    assert (refused.status_code, refused.json()["where"]) == (422, "columns")
    assert "no row is left: 2 of 2 rows" in refused.json()["message"]


def test_the_script_leaves_out_the_same_rows(client: TestClient, ask: Ask, damaged: bytes, tmp_path: Path) -> None:
    identity = client.post("/api/data", content=damaged).json()["id"]
    question = ask(data=identity, skip_broken_rows=True, guarantee=["unbiased"], slack=0.02)
    files = {name: client.post(f"/api/files/{name}", json={"question": question}).text for name in ("python", "policy")}
    (tmp_path / "data.csv").write_bytes(damaged)
    (tmp_path / "policy.py").write_text(files["python"])
    done = subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert SENTENCE in done.stdout
    assert (tmp_path / "policy.json").read_text() == files["policy"]
