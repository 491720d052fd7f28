"""The map from the paper to the code leads somewhere."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROOMS = ["problem", "policies", "guarantees", "cases", "slack", "solvers", "evidence", "adversary", "plots"]


def defined(path: Path) -> set[str]:
    return set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE))


def test_every_named_test_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) > 25
    for path, function in named:
        assert (ROOT / path).is_file(), path
        assert not function or function in defined(ROOT / path), function
    corrections = re.findall(r"`(test_3_\w+)`", PAGE)
    assert len(corrections) > 15
    assert set(corrections) <= defined(ROOT / "tests" / "test_counterexamples.py")


def test_every_named_module_exists() -> None:
    named = re.findall(rf"`((?:{'|'.join(ROOMS)})(?:\.\w+)+)`", PAGE)
    assert len(named) > 30
    for name in set(named):
        import_module(f"prudent.{name}")
    beside = set(re.findall(r"`(reproduction\.\w+)`", PAGE)) - {"reproduction.json", "reproduction.md"}
    assert len(beside) > 5
    for name in beside:
        import_module(name)


def test_every_theorem_of_the_test_suite_is_on_the_map() -> None:
    """Those named after a statement of the paper."""
    statements = {name for name in defined(ROOT / "tests" / "test_theorems.py") if "theorem_3" in name or "_4_" in name}
    assert statements
    assert all(name in PAGE for name in statements)
