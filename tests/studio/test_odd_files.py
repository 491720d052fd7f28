"""Files that people really have, and some that they should not: an answer or one clear sentence, never a failure."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient


def parquet(names: list[str], *columns: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], names=names), stream, **options)
    return stream.getvalue()


def upload(client: TestClient, content: bytes | str, name: str = "rows.csv") -> Any:
    content = content.encode() if isinstance(content, str) else content
    return client.post("/api/data", params={"name": name}, content=content)


def answers(client: TestClient, summary: dict[str, Any]) -> bool:
    guess = summary["guess"]
    question = {"data": summary["id"], "columns": guess["columns"], "problem": guess["problem"]}
    return client.post("/api/policy", json={**question, "guarantee": ["nothing"], "slack": 0.0}).status_code == 200


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_without_a_usable_name_are_said_and_left_alone(client: TestClient, kind: str) -> None:
    names = ["", "forecast" * 30, "a", "y", "_id" * 80]
    content = ",".join(names) + "\n0,0.5,0.2,1,0\n1,0.6,0.3,0,1\n"
    if kind == "parquet":
        content = parquet(names, [0, 1], [0.5, 0.6], [0.2, 0.3], [1, 0], [0, 1])
    taken = upload(client, content)
    assert taken.status_code == 200, taken.text
    summary = taken.json()
    assert [column["name"] for column in summary["columns"]] == ["a", "y"]
    assert summary["guess"]["columns"] == {"forecast": ["a"], "outcome": ["y"], "weight": None, "key": None}
    assert "Cannot be used: column 1 has no name; the name of column 2 has more than" in summary["guess"]["sentence"]
    assert client.get(f"/api/data/{summary['id']}").json() == summary
    assert answers(client, summary)


def test_a_table_in_which_nothing_can_be_named_is_refused(client: TestClient) -> None:
    refused = upload(client, ",,,,,,,\n1,2,3,4,5,6,7,8\n")
    assert refused.status_code == 422
    assert refused.json()["message"].startswith("rows.csv: no column can be used: column 1 has no name; ")
    assert refused.json()["message"].endswith("and 3 more.")


@pytest.mark.parametrize("values", [(-1e308, 1e308), (-1.79e308, 0.0), (1e308, 1.79e308), (-1.5e308, -1e-308)])
def test_numbers_that_overflow_start_no_decision(client: TestClient, values: tuple[float, float]) -> None:
    taken = upload(client, f"forecast,outcome\n{values[0]!r},{values[1]!r}\n0.3,0.1\n")
    assert taken.status_code == 200
    assert taken.json()["guess"]["problem"] is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_the_same_name_are_refused(client: TestClient, kind: str) -> None:
    names = ["forecast", "forecast", "outcome"]
    content = parquet(names, [0.2, 0.3], [0.4, 0.5], [1, 0]) if kind == "parquet" else ",".join(names) + "\n1,2,3\n"
    refused = upload(client, content, f"rows.{kind}")
    assert refused.status_code == 422
    assert refused.json()["message"] == f"rows.{kind}: 2 columns are named 'forecast'; names must differ."
