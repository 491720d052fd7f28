"""README and quickstart, word for word: as a script, under a strict type checker, and as a notebook."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs" / "quickstart.md"]
PATIENCE = 600  # seconds, for machines that do other things, too


@pytest.fixture(params=PAGES, ids=lambda page: page.stem)
def blocks(request: pytest.FixtureRequest) -> list[str]:
    """The Python blocks of a page, in order."""
    found = re.findall(r"```python\n(.*?)```", request.param.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(found) >= 2
    return found


@pytest.fixture
def script(blocks: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "first_steps.py"
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


def test_the_blocks_are_one_script(script: Path) -> None:
    command = [sys.executable, "-W", "error", script.name]
    done = subprocess.run(
        command, cwd=script.parent, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment()
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "guaranteed utility" in done.stdout
    assert (script.parent / "policy.json").exists()


@pytest.mark.slow
def test_the_script_passes_a_strict_type_checker(script: Path) -> None:
    """As somebody has it who only has the script: without the project's settings."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--ignore-missing-imports",
        "--cache-dir",
        "cache",
        script.name,
    ]
    done = subprocess.run(
        command, cwd=script.parent, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment()
    )
    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n"), done.stderr


@pytest.mark.filterwarnings("default")  # of the notebook's own packages
def test_the_blocks_are_a_notebook_that_shows_results(blocks: list[str], tmp_path: Path) -> None:
    """Whatever a block prints is shown as HTML when it stands alone in a cell: results of the library as printed."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    cells, shown = [], []
    for block in blocks:
        alone = [nbformat.v4.new_code_cell(expression) for expression in printed(block)]
        cells += [nbformat.v4.new_code_cell(block), *alone]
        shown += alone
    notebook: Any = nbformat.v4.new_notebook(cells=cells)
    options = {"timeout": PATIENCE, "startup_timeout": PATIENCE, "resources": {"metadata": {"path": str(tmp_path)}}}
    nbclient.NotebookClient(notebook, **options).execute(env=environment())
    said = "".join(output.text for cell in notebook.cells for output in cell.outputs if output.output_type == "stream")
    pages = [output.data.get("text/html") for cell in shown for output in cell.outputs]
    results = [page for page in pages if page is not None]
    assert len(results) >= 2
    for page in results:
        assert page.startswith("<pre>")
        assert page.removeprefix("<pre>").removesuffix("</pre>") in escape(said)


def printed(block: str) -> list[str]:
    """What the lines of a block print, where they print one thing."""
    return [
        ast.unparse(line.value.args[0])
        for line in ast.parse(block).body
        if isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Call)
        and ast.unparse(line.value.func) == "print"
        and len(line.value.args) == 1
    ]


def environment() -> dict[str, str]:
    """Where other processes find the library."""
    source = str(ROOT / "src")
    given = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": given, "MYPYPATH": source}
