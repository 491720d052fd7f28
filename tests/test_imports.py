"""What importing the library brings along, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import prudent


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


EVERYTHING = "from prudent import *"


@pytest.mark.parametrize("package", [prudent, prudent.policies, prudent.problem], ids=lambda package: package.__name__)
def test_every_public_name_is_found(package: ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense


def test_importing_a_policy_leaves_the_rest_alone() -> None:
    code = "import sys; from prudent import RobustPolicy; print(*sorted(m for m in sys.modules if 'prudent' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    later = {"prudent.monitoring", "prudent.recalibration", "prudent.report", "prudent.evidence"}
    assert not later & set(done.stdout.split())


def test_importing_prudent_brings_nothing_beyond_the_core() -> None:
    """scikit-learn itself loads what it finds installed, so the comparison is with it."""
    core = modules_after("import numpy, scipy.linalg, sklearn.base, sklearn.utils.validation, tempfile, json")
    added = modules_after(EVERYTHING) - core
    assert {name for name in added if not name.startswith("_")} <= {"prudent", *sys.stdlib_module_names}
