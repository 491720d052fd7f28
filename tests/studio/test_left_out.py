"""Going on without rows that break a rule: the others are all that count, and the answer says so."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

import prudent
from prudent.tables import WithoutRows, find_unusable_rows, open_bytes, read_sample

Ask = Callable[..., dict[str, Any]]
BROKEN = {3: ("high", None), 10: (None, ""), 11: ("1.5", None), 50: ("", ""), 77: (" inf ", None), 90: (None, "nan")}
SENTENCE = (
    "6 of 400 rows left out because 'forecast' is empty or not a finite number (3); 'forecast' lies outside the "
    "outcome space (1); 'y' is empty or not a finite number (2)"
)


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
        for changing in ("inputs", "seconds", "fit_seconds"):
            answer.pop(changing, None)
            expected.pop(changing, None)
        assert answer == expected
    assert "6 of 400 rows left out" in client.post("/api/files/report", json={"question": question}).text


def test_the_script_leaves_out_the_same_rows(client: TestClient, ask: Ask, damaged: bytes, tmp_path: Path) -> None:
    identity = client.post("/api/data", content=damaged).json()["id"]
    question = ask(data=identity, skip_broken_rows=True, guarantee=["unbiased"], slack=0.02)
    files = {name: client.post(f"/api/files/{name}", json={"question": question}).text for name in ("python", "policy")}
    (tmp_path / "data.csv").write_bytes(damaged)
    (tmp_path / "policy.py").write_text(files["python"])
    done = subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert SENTENCE in done.stdout
    assert (tmp_path / "policy.json").read_text() == files["policy"]


def test_nothing_is_left_out_of_sound_rows_and_everything_is_refused(client: TestClient, ask: Ask) -> None:
    assert client.post("/api/policy", json=ask(skip_broken_rows=True)).json()["left_out"] is None
    identity = client.post("/api/data", content=b"id,forecast,y\na,2,1\nb,3,0\n").json()["id"]
    refused = client.post("/api/policy", json=ask(data=identity, skip_broken_rows=True))
    assert (refused.status_code, refused.json()["where"]) == (422, "columns")
    assert "no row is left: 2 of 2 rows" in refused.json()["message"]


def test_classes_weights_and_numbers_of_rows() -> None:
    stream = io.BytesIO()
    table = {
        "p": [0.5, 0.2, None, 0.7, 0.6],
        "q": [0.5, 0.8, 0.5, 0.5, 0.4],
        "label": ["b", "c", "a", "a", "a"],
        "w": [1.0, 1.0, 1.0, 1.0, -1.0],
    }
    pq.write_table(pa.table(table), stream, row_group_size=2)
    space = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1]], classes=["a", "b"]).space
    columns = ["p", "q"], ["label"], "w"
    found = find_unusable_rows(open_bytes(stream.getvalue(), "rows.parquet"), space, *columns)
    assert found.rows.tolist() == [False, True, True, True, True]
    assert list(found.reasons.values()) == [1, 1, 1, 1]
    left = WithoutRows(open_bytes(stream.getvalue(), "rows.parquet"), found.rows)
    assert read_sample(left, space, *columns).forecasts.tolist() == [[0.5, 0.5]]
    kept = WithoutRows(open_bytes(stream.getvalue(), "rows.parquet"), np.array([True, False, True, False, False]))
    assert kept.at(1, "p") == "rows.parquet, row 4, column 'p'"
