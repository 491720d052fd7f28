"""Fixtures that all tests may use."""

from __future__ import annotations

import os
from pathlib import Path

# Processes of tests share the cores: threads of theirs would only wait for each other. NumPy asks when it is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib as mpl
import pytest
from hypothesis import settings

mpl.use("Agg")
# The same examples in every run: of problems with forecasts next to corners of the space one in some thousand is not
# proven optimal in floats, and says so. `pytest --hypothesis-profile=default` draws others.
settings.register_profile("same examples", derandomize=True)
settings.load_profile("same examples")


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder with the paper's data sets, which are not part of the project."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the data sets are not here: {folder} does not exist")
    return folder
