"""What importing the library brings along, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_prudent_brings_nothing_beyond_the_core() -> None:
    """scikit-learn itself loads what it finds installed, so the comparison is with it."""
    core = modules_after("import numpy, scipy.linalg, sklearn.base, sklearn.utils.validation, tempfile, json")
    added = modules_after("import prudent") - core
    assert {name for name in added if not name.startswith("_")} <= {"prudent", *sys.stdlib_module_names}
