"""The library stays within its budget; ``make size`` prints where the tokens are."""

from __future__ import annotations

from pathlib import Path

from benchmarks.size import MOST_FILES, MOST_TOKENS, count_tokens, sizes


def test_the_library_stays_within_its_budget() -> None:
    found = list(sizes())
    assert sum(tokens for _, tokens in found) <= MOST_TOKENS
    assert len(found) <= MOST_FILES


def test_comments_and_line_breaks_count_nothing(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("x = (1 +\n     2)  # three\n\n\nprint('x')\n")
    assert count_tokens(path) == 11
