"""The other process that helps with long files: it answers as the studio does, and nothing is lost without it."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from prudent.studio.application import create_application
from prudent.studio.colleague import Colleague, _receive, _send

ADDRESS = "http://127.0.0.1:8765"
Ask = Callable[..., dict[str, Any]]


class Watched(Colleague):
    """Remembers who answered."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: list[str] = []

    def answer(self, kind: str, question: Any, inputs: str) -> bytes | None:
        found = super().answer(kind, question, inputs)
        self.answered.append(f"{kind} {'there' if found is not None else 'here'}")
        return found


@pytest.fixture
def colleague(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    watched = Watched()
    yield watched
    watched.end()


@pytest.fixture
def client(colleague: Watched) -> Iterator[TestClient]:
    with TestClient(create_application(colleague=colleague), base_url=ADDRESS) as client:
        yield client


@pytest.fixture
def content(rows: Callable[..., bytes]) -> bytes:
    """A long file."""
    return rows(40_000)


def handed_over(colleague: Colleague, asked: dict[str, Any]) -> None:
    for _ in range(1_200):
        if colleague.holds(asked["data"]):
            return
        time.sleep(0.1)
    raise AssertionError("the file was not handed over")


def told(client: TestClient, kind: str, asked: dict[str, Any]) -> dict[str, Any]:
    response = client.post(f"/api/{kind}", json=asked)
    assert response.status_code == 200
    return {name: rounded(value) for name, value in response.json().items() if name != "seconds"}


def rounded(value: Any) -> Any:
    """Numbers to nine digits: a process that takes compiled steps, or several threads, may differ in the last ones."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def test_it_answers_as_the_studio_does_and_can_be_missed(
    client: TestClient, colleague: Watched, content: bytes, ask: Ask
) -> None:
    asked = ask(guarantee=["self-orthogonal"])
    handed_over(colleague, asked)
    with TestClient(create_application(), base_url=ADDRESS) as alone:
        alone.post("/api/data", params={"name": "rows.csv"}, content=content)
        for kind in ("verdict", "ladder"):
            assert told(client, kind, asked) == told(alone, kind, asked)
        assert colleague.answered == ["verdict there", "ladder there"]

        # What has no answer is refused as everywhere.
        wrong = {**asked, "columns": {**asked["columns"], "outcome": ["id"]}}
        refusals = [one.post("/api/verdict", json=wrong) for one in (client, alone)]
        assert refusals[0].status_code == 422
        assert refusals[0].json() == refusals[1].json()

        # Somebody else is asking.
        with colleague._turn:
            other = {**asked, "confidence": 0.9}
            assert told(client, "verdict", other) == told(alone, "verdict", other)

        # It is gone.
        colleague._process.kill()
        colleague._process.wait()
        other = {**asked, "confidence": 0.8}
        assert told(client, "verdict", other) == told(alone, "verdict", other)
        assert colleague.answered[2:] == ["verdict here"] * 3
        assert not colleague.holds(asked["data"])


def test_what_depends_on_other_answers_stays_here(client: TestClient, colleague: Watched, ask: Ask) -> None:
    asked = ask(guarantee="auto")
    handed_over(colleague, asked)
    for kind in ("policy", "verdict", "stress", "ladder"):  # the ladder is known by then
        told(client, kind, asked)
    told(client, "policy", ask(guarantee=["self-orthogonal"]))
    assert colleague.answered == []


def test_short_files_need_no_help(client: TestClient, colleague: Watched, rows: Callable[..., bytes]) -> None:
    assert client.post("/api/data", content=rows(400)).status_code == 200
    assert colleague._process is None


def test_an_end_is_an_end(client: TestClient, colleague: Watched, rows: Callable[..., bytes], ask: Ask) -> None:
    asked = ask(guarantee=["self-orthogonal"])
    handed_over(colleague, asked)
    colleague.end()
    assert colleague._process.poll() is not None
    assert client.post("/api/data", content=rows(41_000)).status_code == 200
    told(client, "verdict", asked)
    assert colleague.answered == []


def test_half_a_message_is_none() -> None:
    stream = io.BytesIO()
    _send(stream, {"answered": True, "size": 3}, b"abc")
    _send(stream, {"answered": False}, b"")
    whole = stream.getvalue()
    reader = io.BytesIO(whole)
    assert _receive(reader) == ({"answered": True, "size": 3}, b"abc")
    assert _receive(reader) == ({"answered": False}, b"")
    assert _receive(reader) is None
    for length in range(whole.index(b"c") + 1):
        assert _receive(io.BytesIO(whole[:length])) is None


def test_nobody_listens_any_more() -> None:
    """Whoever asked is gone when the answer is there: it ends at once, and says nothing."""
    code = "from prudent.studio.colleague import work; work()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        _send(process.stdin, {"kind": "verdict", "question": {}, "inputs": ""}, b"")
        assert process.wait(timeout=120) == 0
        assert process.stderr.read() == b""
