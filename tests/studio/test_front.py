"""The page comes before the library is loaded; answers wait for it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from threading import Event
from typing import Any

from fastapi.testclient import TestClient

from prudent.studio.application import create_application
from prudent.studio.front import Front


def test_the_page_does_not_wait_for_the_library() -> None:
    loaded = Event()

    def load() -> Any:
        assert loaded.wait(60)
        return create_application()

    with TestClient(Front(load), base_url="http://127.0.0.1:8765") as client:
        for path, kind in (("/", "text/html"), ("/assets/page.js", "text/javascript"), ("/favicon.ico", "image/svg")):
            got = client.get(path)
            assert got.status_code == 200
            assert got.headers["content-type"].startswith(kind)
            assert "default-src 'self'" in got.headers["content-security-policy"]
        assert client.post("/").status_code == 405
        assert client.head("/").content == b""
        assert client.get("/", headers={"Host": "elsewhere.example"}).status_code == 400
        loaded.set()
        assert len(client.get("/api/examples").json()) == 3
        assert client.get("/assets/nothing.js").status_code == 404


def test_a_question_that_waits_is_refused_when_the_server_ends() -> None:
    """Also while the library is being loaded; a server that waited for it would give up with a traceback."""
    loaded, sent = Event(), []

    async def ask() -> None:
        front = Front(lambda: loaded.wait(60))
        scope = {"type": "http", "method": "POST", "path": "/api/policy", "headers": []}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"{}"}

        async def send(message: Any) -> None:
            sent.append(message)

        question = asyncio.create_task(front(scope, receive, send))
        await asyncio.sleep(0)
        assert not question.done()
        front.end()
        try:
            await asyncio.wait_for(question, 30)
        finally:
            loaded.set()

    asyncio.run(ask())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["message"] == "The studio is ending."


def test_the_page_is_the_same_before_and_after(client: TestClient) -> None:
    with TestClient(Front(create_application), base_url="http://127.0.0.1:8765") as early:
        assert early.get("/").text == client.get("/").text


def test_the_front_needs_no_library() -> None:
    code = (
        "import sys, prudent.studio; print([name for name in ('numpy', 'fastapi', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
