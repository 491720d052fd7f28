"""Every Python block and every shell block of the README and the documentation runs, and prints what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    )
]

# A shell block, and the block of text with its output where one follows.
SHELL = re.compile(r"```shell\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
BASH = shutil.which("bash") or ""
SHELL_PAGES = [page for page in PAGES if SHELL.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "documentation", "exec"), {})


def without_rounding(text: str) -> str:
    """Numbers below 1e-9 are rounding, which differs between machines."""
    return re.sub(r"\b\d(\.\d+)?e-[1-9]\d\b", "rounding", text)


@pytest.mark.skipif(not BASH, reason="there is no bash to run the blocks")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=pytest.mark.slow if page.name == "command-line.md" else ())
        for page in SHELL_PAGES
    ],
)
def test_shell_blocks_run_in_order_and_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    """All blocks of a page share a folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for commands, output in SHELL.findall(page.read_text(encoding="utf-8")):
        done = subprocess.run(
            [BASH, "-eu", "-o", "pipefail", "-c", commands],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (commands, done.stdout)
        if output:
            assert without_rounding(done.stdout) == without_rounding(output), commands


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), (page.name, target)
