"""Who may ask, how much, and what bad requests get."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from prudent.studio.application import create_application
from prudent.studio.data_sets import DataSets
from prudent.studio.questions import Question
from prudent.studio.remembering import Memory
from prudent.studio.workshop import Workshop

Ask = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil@127.0.0.1", "127.0.0.1:x", "", "[::1"]
)
def test_other_names_for_this_machine_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/examples", "/assets/page.js"):
        assert client.get(path, headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost:8765", "localhost"])
def test_our_names_are_accepted(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_posts_of_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/examples/staffing", headers=headers).status_code == 403


def test_posts_of_the_page_are_accepted(client: TestClient) -> None:
    headers = {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/examples/staffing", headers=headers).status_code == 200


def test_every_answer_is_under_a_strict_policy_and_none_allows_other_origins(client: TestClient) -> None:
    for path in ("/", "/api/examples", "/nothing", "/assets/page.js"):
        headers = client.get(path, headers={"Origin": "http://evil.example"}).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]


def test_the_page_has_no_inline_script_and_no_foreign_address(client: TestClient) -> None:
    page = client.get("/").text
    assert "<script>" not in page
    assert " style=" not in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_large_files_are_refused_by_bytes_and_rows() -> None:
    small = create_application(DataSets(most_bytes=1 << 20, most_rows=100))
    with TestClient(small, base_url="http://localhost") as client:
        long = client.post("/api/data", content=b"f,y\n" + b"0.5,1\n" * 200_000)
        assert (long.status_code, long.json()["where"]) == (413, "data")
        assert "the file has more than 1 MB, which is what the studio takes" in long.json()["message"]
        question = client.post("/api/policy", content=b" " * (2 << 20))
        assert (question.status_code, question.json()["where"]) == (413, "Content-Length")
        streamed = client.post("/api/data", content=iter([b"f,y\n", *[b"0.5,1\n" * 10_000] * 20]))
        assert (streamed.status_code, streamed.json()["where"]) == (413, "data")
        assert "1 MB" in streamed.json()["message"]
        many = client.post("/api/data", content=b"f,y\n" + b"0.5,1\n" * 101)
        assert many.status_code == 413
        assert "100 rows" in many.json()["message"]


def test_data_make_room_for_newer_ones(client: TestClient, rows: Callable[..., bytes]) -> None:
    identities = [client.post("/api/data", content=rows(20, seed)).json()["id"] for seed in range(20)]
    assert client.get(f"/api/data/{identities[0]}").status_code == 404
    assert client.get(f"/api/data/{identities[-1]}").status_code == 200


def test_lost_data_are_told_apart(client: TestClient, ask: Ask) -> None:
    refused = client.post("/api/policy", json=ask(data="0" * 32))
    assert (refused.status_code, refused.json()["where"]) == (404, "data")


@pytest.mark.parametrize("content", [b"", b"f,y\n", b"\xff\xfef\0", b"PAR1 not really", b"\x1f\x8b0", b"a,b\n1\n"])
def test_bad_files_say_what_is_wrong(client: TestClient, content: bytes) -> None:
    refused = client.post("/api/data", params={"name": "bad.csv"}, content=content)
    assert refused.status_code == 422
    assert refused.json()["where"] == "data"
    assert "bad.csv" in refused.json()["message"]


def test_rows_that_break_rules_are_listed(client: TestClient, ask: Ask) -> None:
    content = b"id,forecast,y\na,0.5,1\nb,high,1\nc,0.4,\nd,1.5,0\ne,0.1,0\n"
    identity = client.post("/api/data", content=content).json()["id"]
    refused = client.post("/api/policy", json=ask(data=identity))
    assert refused.status_code == 422
    assert [(row["row"], row["columns"]) for row in refused.json()["rows"]] == [
        (2, ["forecast"]),
        (3, ["y"]),
        (4, ["forecast"]),
    ]


def test_too_few_columns_are_no_fault_of_rows(client: TestClient) -> None:
    content = b"p_a,p_b,label\n" + b"0.25,0.75,a\n0.5,0.5,c\n" * 60
    identity = client.post("/api/data", content=content).json()["id"]
    decision = {"kind": "payoffs", "actions": ["x", "y"], "classes": ["a", "b"], "payoffs": [[1, 0], [0, 1]]}
    question = {"data": identity, "problem": decision, "guarantee": ["nothing"], "slack": 0.0}
    few = client.post("/api/policy", json={**question, "columns": {"forecast": ["p_a"], "outcome": ["label"]}})
    assert (few.status_code, few.json()["rows"]) == (422, [])
    assert "the forecast needs" in few.json()["message"]
    both = client.post("/api/policy", json={**question, "columns": {"forecast": ["p_a", "p_b"], "outcome": ["label"]}})
    assert len(both.json()["rows"]) == 60


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"problem": {"kind": "linear"}}, "problem.linear.actions"),
        ({"slack": -1}, "slack"),
        ({"guarantee": ["everything"]}, "guarantee"),
        ({"guarantee": []}, "guarantee"),
        ({"confidence": 1}, "confidence"),
        ({"slack": 1e13}, "slack"),
        ({"extra": 1}, "extra"),
        ({"guarantee": "auto", "slack": 0.1}, "slack"),
        ({"columns": {"forecast": ["nope"]}, "guarantee": ["nothing"], "slack": 0}, "columns"),
    ],
)
def test_bad_questions_say_where(client: TestClient, ask: Ask, change: dict[str, Any], where: str) -> None:
    refused = client.post("/api/policy", json=ask(**change))
    assert refused.status_code == 422
    assert refused.json()["where"].startswith(where)
    assert refused.json()["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"data": NaN}', b"[" * 100_000, b"\xff", b'{"slack": 1e999}'])
def test_malformed_bodies_are_refused(client: TestClient, body: bytes) -> None:
    refused = client.post("/api/policy", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code in (400, 422)
    assert set(refused.json()) == {"message", "where", "rows"}


@pytest.mark.parametrize(
    "problem",
    [
        {"rewards": [[1.0], [1.0, 2.0]]},
        {"lower": [1.0], "upper": [0.0]},
        {"costs": [1.0]},
        {"actions": ["same", "same"]},
    ],
)
def test_impossible_decisions_are_refused(client: TestClient, ask: Ask, problem: dict[str, Any]) -> None:
    question = ask()
    question["problem"] |= problem
    refused = client.post("/api/policy", json=question)
    assert (refused.status_code, refused.json()["where"]) == (422, "problem")


def test_memory_forgets_mistakes_and_what_was_used_least() -> None:
    memory: Memory[int] = Memory(2)
    with pytest.raises(ZeroDivisionError):
        memory.get("a", lambda: 1 // 0)
    assert memory.get("a", lambda: 1) == 1
    assert memory.get("b", lambda: 2) == 2
    assert memory.get("a", lambda: 3) == 1
    assert memory.get("c", lambda: 4) == 4
    assert memory.get("b", lambda: 5) == 5


def test_memory_is_bounded_in_bytes_and_keeps_the_last() -> None:
    memory: Memory[Any] = Memory(10, 1_000)
    made = []

    def get(key: str, n: int) -> None:
        memory.get(key, lambda: made.append(key) or {"deep": [np.zeros(n)[1:]]})

    for key, n in (
        ("a", 50),
        ("b", 50),
        ("a", 50),
        ("c", 50),
        ("a", 50),
        ("b", 50),
        ("large", 1_000),
        ("large", 1_000),
    ):
        get(key, n)
    assert made == ["a", "b", "c", "b", "large"]
    get("a", 50)
    memory.forget("arg")
    get("a", 50)
    get("large", 1)
    assert made[5:] == ["a", "large"]


def test_results_go_with_their_data(rows: Callable[..., bytes], ask: Ask) -> None:
    data_sets = DataSets()
    workshop = Workshop(data_sets)
    question = Question.model_validate(ask(data=data_sets.add(rows(50, 1), "rows.csv").id))
    workshop.stress(question)
    workshop.audit(question)
    held = [workshop.sample(question), workshop.rows(question), workshop.policy(question).policy]
    known = [weakref.ref(one) for one in held]
    del held
    for seed in range(2, 18):
        data_sets.add(rows(50, seed), "rows.csv")
    gc.collect()
    assert [reference() for reference in known] == [None] * 3
