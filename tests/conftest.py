"""Fixtures that all tests may use."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder with the paper's data sets, which are not part of the project."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the data sets are not here: {folder} does not exist")
    return folder
