"""Routes, errors, and the queue of computations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient

from prudent.studio.application import RequestQueue, create_application
from prudent.studio.session import DataSets

Ask = Callable[..., dict[str, Any]]


def test_the_page_and_its_assets_are_served_under_their_media_types(client: TestClient) -> None:
    for path, kind in (("/", "text/html"), ("/assets/page.js", "text/javascript"), ("/assets/icon.svg", "image/svg")):
        got = client.get(path)
        assert (got.status_code, got.headers["content-type"].startswith(kind)) == (200, True)
        assert client.head(path).status_code == 200
        assert client.post(path).status_code == 405
    assert client.get("/assets/nothing.js").status_code == 404


def test_lost_data_are_told_apart(client: TestClient, ask: Ask) -> None:
    refused = client.post("/api/policy", json=ask(data="0" * 32))
    assert (refused.status_code, refused.json()["where"]) == (404, "data")


@pytest.mark.parametrize("content", [b"", b"f,y\n", b"\xff\xfef\0", b"PAR1 not really", b"\x1f\x8b0", b"a,b\n1\n"])
def test_bad_files_say_what_is_wrong(client: TestClient, content: bytes) -> None:
    refused = client.post("/api/data", params={"name": "bad.csv"}, content=content)
    assert refused.status_code == 422
    assert refused.json()["where"] == "data"
    assert "bad.csv" in refused.json()["message"]


def test_too_few_columns_are_no_fault_of_rows(client: TestClient) -> None:
    content = b"p_a,p_b,label\n" + b"0.25,0.75,a\n0.5,0.5,c\n" * 60
    identity = client.post("/api/data", content=content).json()["id"]
    decision = {"kind": "payoffs", "actions": ["x", "y"], "classes": ["a", "b"], "payoffs": [[1, 0], [0, 1]]}
    question = {"data": identity, "problem": decision, "guarantee": ["nothing"], "slack": 0.0}
    few = client.post("/api/policy", json={**question, "columns": {"forecast": ["p_a"], "outcome": ["label"]}})
    assert (few.status_code, few.json()["rows"]) == (422, [])
    assert "forecasts must name 2 column" in few.json()["message"]
    both = client.post("/api/policy", json={**question, "columns": {"forecast": ["p_a", "p_b"], "outcome": ["label"]}})
    assert len(both.json()["rows"]) == 60


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


def test_requests_about_the_same_data_run_one_after_another() -> None:
    """Requests about other data do not wait for them."""
    steps: list[str] = []
    go = Event()

    def compute(name: str) -> Callable[[], str]:
        def computed() -> str:
            steps.append(f"{name} starts")
            assert go.wait(60)
            steps.append(f"{name} ends")
            return name

        return computed

    async def ask() -> None:
        queue = RequestQueue()
        same = [asyncio.create_task(queue.compute(compute(name), "one")) for name in "abc"]
        other = asyncio.create_task(queue.compute(compute("d"), "two"))
        while len(steps) < 2:  # threads start in any order
            await asyncio.sleep(0.01)
        assert sorted(steps) == ["a starts", "d starts"]
        go.set()
        assert await asyncio.gather(*same, other) == ["a", "b", "c", "d"]

    asyncio.run(ask())
    in_line = [step for step in steps if not step.startswith("d")]
    assert in_line == [f"{name} {step}" for name in "abc" for step in ("starts", "ends")]


def test_a_failure_does_not_hold_up_the_queue() -> None:
    async def ask() -> str:
        queue = RequestQueue()
        with pytest.raises(ZeroDivisionError):
            await queue.compute(lambda: 1 // 0, "one")
        return await queue.compute(lambda: "next", "one")

    assert asyncio.run(ask()) == "next"


def test_a_client_that_leaves_during_an_upload_is_no_failure() -> None:
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": b"f,y\n", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-length", b"1000")]
    scope = {"type": "http", "method": "POST", "path": "/api/data", "query_string": b"", "headers": headers}
    asyncio.run(create_application()(scope, receive, send))  # type: ignore[arg-type]
    assert messages == []
    assert sent[0]["status"] == 400


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil@127.0.0.1", "127.0.0.1:x", "", "[::1"]
)
def test_other_names_for_this_machine_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", f"/api/data/{'0' * 32}", "/assets/page.js"):
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
    for path in ("/", f"/api/data/{'0' * 32}", "/nothing", "/assets/page.js"):
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
        assert (long.status_code, long.json()["where"]) == (413, "body")
        assert "the file has more than 1 MB, which is what the studio takes" in long.json()["message"]
        question = client.post("/api/policy", content=b" " * (2 << 20))
        assert (question.status_code, question.json()["where"]) == (413, "body")
        streamed = client.post("/api/data", content=iter([b"f,y\n", *[b"0.5,1\n" * 10_000] * 20]))
        assert (streamed.status_code, streamed.json()["where"]) == (413, "body")
        assert "1 MB" in streamed.json()["message"]
        many = client.post("/api/data", content=b"f,y\n" + b"0.5,1\n" * 101)
        assert many.status_code == 413
        assert "100 rows" in many.json()["message"]
