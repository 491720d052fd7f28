"""The studio holds on to a bounded number of things, however many questions it is asked."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytestmark = pytest.mark.slow

_FILLING, _MORE = 80, 30  # the longest memories hold 64 results


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
    # A policy is a dozen objects, and four parts make several results each. What is held differs a little from question
    # to question: a verdict that says hedge carries a policy.
    assert go(_FILLING, _MORE) <= full + 20 * _MORE
