"""Requests generated from the OpenAPI schemas: every one gets an answer or a documented error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from prudent.studio.application import create_application
from prudent.studio.schemas import ColumnSummary, guess
from prudent.studio.session import DataSets

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the fuzzer's own packages
]

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

APPLICATION = create_application(DataSets(most_bytes=1 << 20, most_rows=10_000))
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APPLICATION, headers={"Host": "127.0.0.1"})
ROWS = b"a,b,c\n" + b"".join(b"%.3f,%.3f,%d\n" % (i / 60, 1 - i / 60, i % 2) for i in range(60))


def identity_of_held_data() -> str:
    from fastapi.testclient import TestClient

    with TestClient(APPLICATION, base_url="http://127.0.0.1") as client:
        return str(client.post("/api/data", content=ROWS).json()["id"])


HELD = identity_of_held_data()


def aim(body: Any) -> None:
    """Let a question be about data that are there, so that it gets further than the first check."""
    question = body.get("question", body) if isinstance(body, dict) else None
    if not isinstance(question, dict) or "data" not in question:
        return
    question["data"] = HELD
    problem, columns = question.get("problem"), question.get("columns")
    if isinstance(problem, dict) and isinstance(columns, dict):
        classes = problem.get("kind") == "payoffs"
        columns |= {"forecast": ["a", "b"] if classes else ["a"], "outcome": ["c"], "weight": None, "key": None}
        if classes:
            problem["classes"] = ["0", "1"]


@SCHEMA.parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_no_request_fails_inside(case: Any) -> None:
    send(case)


@SCHEMA.include(path_regex="^/api/(policy|verdict|stress|ladder|explain|files)").parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_no_question_about_real_rows_fails_inside(case: Any) -> None:
    aim(case.body)
    send(case)


def send(case: Any) -> None:
    response = case.call(headers={"Host": "127.0.0.1"})
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert set(response.json()) == {"message", "where", "rows"}


def share(name: str, *values: str) -> ColumnSummary:
    return ColumnSummary(name=name, kind="number", lower=0.0, upper=1.0, values=list(values))


def text(name: str, *values: str) -> ColumnSummary:
    return ColumnSummary(name=name, kind="text", lower=None, upper=None, values=list(values))


@pytest.mark.parametrize("prefix", ["", "p_", "Chance of "])
def test_probabilities_are_named_by_the_classes_after_one_prefix(prefix: str) -> None:
    columns = [share(f"{prefix}Well"), share(f"{prefix}Ill"), text("state", "ill", "well")]
    found = guess(columns)
    assert found.columns is not None
    assert found.columns.forecast == [f"{prefix}Well", f"{prefix}Ill"]
    assert found.columns.outcome == ["state"]
    assert found.problem is not None
    assert found.problem.table()["classes"] == ["well", "ill"]


@pytest.mark.parametrize(
    "names",
    [
        ["p_ill", "p_well", "q_ill", "q_well"],  # which?
        ["p_ill", "q_well"],
        ["pill", "pwell"],  # not at the start of a word
        ["p_ill"],
    ],
)
def test_other_names_are_no_classes(names: list[str]) -> None:
    found = guess([*map(share, names), text("state", "ill", "well")])
    assert found.problem is not None
    assert found.problem.kind == "linear"


def test_an_outcome_is_not_its_own_forecast() -> None:
    found = guess([share("class_0", "0.5"), share("class_1", "0", "1")])
    assert found.problem is not None
    assert found.problem.kind == "linear"
