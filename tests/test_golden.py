"""Commands, the studio, files and SQL answer as they did: ``PYTHONPATH=tests python -m golden`` writes answers anew."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golden.cases import CASES, DEGENERATE, EXPECTED, answer
from golden.comparison import NOT_UNIQUE, PLAYED, TOLERANCE, differences


@pytest.mark.parametrize(("family", "name"), [(family, name) for family, names in CASES.items() for name in names])
def test_the_answer_is_the_one_that_was_kept(family: str, name: str) -> None:
    expected = json.loads((EXPECTED / family / f"{name}.json").read_text(encoding="utf-8"))
    tolerance = PLAYED if family == "sql" else TOLERANCE
    ignored = NOT_UNIQUE if name in DEGENERATE else frozenset[str]()
    assert list(differences(expected, answer(family, name), tolerance, ignored)) == []


def test_every_file_belongs_to_a_case_and_all_together_are_small() -> None:
    files = list(EXPECTED.rglob("*.*"))
    assert {(file.parent.name, file.stem) for file in files} == {(f, name) for f in CASES for name in CASES[f]}
    assert sum(file.stat().st_size for file in files) < 300_000


@pytest.mark.parametrize(
    ("before", "after", "n_differences"),
    [
        ({"a": [1, 2.0, "x"]}, {"a": [1, 2.0 + 1e-9, "x"]}, 0),
        ({"seconds": 1.0, "method": "a"}, {"seconds": 2.0, "method": "b"}, 0),
        ("worth 0.25 (gap 1e-13). Method: a, because b.", "worth 0.25 (gap 0.0). Method: c, because d.", 0),
        ("p > 0.1470588171501284D", "p > 0.14705881715012836D", 0),
        ("p > 0.25D", "p > 0.26D", 1),
        ({"a": 1, "b": 2.0}, {"a": 2, "b": 2.1}, 2),
        ({"a": 1}, {"b": 1}, 2),
        ([1, 2], [1, 2, 3], 1),
        (True, 1, 1),
        ("worth 0.25", "worth 0.26", 1),
        ("worth 0.25", "is worth 0.25", 1),
        ("r1 < 0.5", "r2 < 0.5", 1),
        ("300 rows", "301 rows", 1),
    ],
)
def test_differences_are_seen(before: Any, after: Any, n_differences: int) -> None:
    assert len(list(differences(before, after, TOLERANCE))) == n_differences
