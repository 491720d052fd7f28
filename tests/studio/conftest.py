"""A studio in this process, and questions to it."""

from __future__ import annotations

import copy
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from prudent.studio.application import create_application
from prudent.studio.session import DataSets
from studio_page import Watched, watching

EXECUTABLE = Path(sys.executable).parent / "prudent"
ADDRESS = "http://127.0.0.1:8765"
LINEAR = {
    "kind": "linear",
    "actions": ["wait", "act"],
    "rewards": [[0.0], [1.0]],
    "costs": [0.0, 0.4],
    "lower": [0.0],
    "upper": [1.0],
}


def rows_as_csv(n: int = 400, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    outcomes = (rng.random(n) < forecasts).astype(int)
    lines = ["id,forecast,y", *(f"a{i},{f},{y}" for i, (f, y) in enumerate(zip(forecasts, outcomes, strict=True)))]
    return ("\n".join(lines) + "\n").encode()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave generated requests out where slow tests are not wanted: a list of them alone takes seconds."""
    return True if collection_path.name == "test_schemas.py" and "not slow" in config.option.markexpr else None


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(create_application(DataSets(most_bytes=2_000_000, most_rows=50_000)), base_url=ADDRESS) as client:
        yield client


@pytest.fixture
def rows() -> Callable[..., bytes]:
    """A file of any length."""
    return rows_as_csv


@pytest.fixture
def content() -> bytes:
    return rows_as_csv()


@pytest.fixture
def ask(client: TestClient, content: bytes) -> Callable[..., dict[str, Any]]:
    """Upload the rows, and make questions about them."""
    identity = client.post("/api/data", params={"name": "rows.csv"}, content=content).json()["id"]

    def question(**changes: Any) -> dict[str, Any]:
        return {
            "data": identity,
            "columns": {"forecast": ["forecast"], "outcome": ["y"], "weight": None, "key": "id"},
            "problem": copy.deepcopy(LINEAR),
            **changes,
        }

    return question


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The studio as a person starts it, and its end by Ctrl-C."""
    command = [EXECUTABLE, "studio", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+/", line).group()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == ""


@pytest.fixture
def tabs(address: str) -> Iterator[Watched]:
    with watching(address) as watched:
        yield watched
        # Chromium itself reports answers such as 422, which are what these tests are about.
        assert [text for text in watched.complaints if "Failed to load resource" not in text] == []
        assert all(url.startswith((address, "blob:" + address)) for url in watched.requests)
