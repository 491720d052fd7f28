"""A folder as a user of the command line has it, and two ways to run a command in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.cli.application import application
from prudent.cli.boundary import run
from prudent.problem import EXAMPLE_PROBLEM, read_problem

EXECUTABLE = str(Path(sys.executable).parent / "prudent")
N_ROWS = 400


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every test finds in its folder."""
    made = tmp_path_factory.mktemp("original")
    rng = np.random.default_rng(0)
    forecasts = rng.random(N_ROWS)
    outcomes = (rng.random(N_ROWS) < forecasts).astype(int)
    columns = {
        "id": [f"a{i}" for i in range(N_ROWS)],
        "f": forecasts,
        "y": outcomes,
        "w": rng.integers(0, 3, N_ROWS),
        "g": rng.integers(0, 40, N_ROWS),
    }
    pq.write_table(pa.table(columns), made / "rows.parquet")
    lines = [",".join(columns), *(",".join(str(cell) for cell in row) for row in zip(*columns.values(), strict=True))]
    (made / "rows.csv").write_text("\n".join(lines) + "\n")
    (made / "problem.toml").write_text(EXAMPLE_PROBLEM)
    problem = read_problem(made / "problem.toml")
    policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal(), salt="s").fit(forecasts)
    policy.save(made / "policy.json")
    prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal(), randomize=False).fit(forecasts).save(
        made / "pure.json"
    )
    return made


@pytest.fixture
def folder(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: problem.toml, rows.csv, rows.parquet, policy.json and pure.json."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def columns(path: str = "rows.parquet") -> dict[str, Any]:
    """The columns of a file."""
    return {name: np.array(values) for name, values in pq.read_table(path).to_pydict().items()}


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """Run a command in this process, through the same door as the executable."""

    def call(*arguments: str) -> Finished:
        capfd.readouterr()
        code = run(application, arguments)
        out, err = capfd.readouterr()
        return Finished(code, out, err)

    return call


@pytest.fixture
def executable() -> Callable[..., Finished]:
    """Run the installed executable as a person would."""

    def call(*arguments: str, **options: Any) -> Finished:
        done = subprocess.run([EXECUTABLE, *arguments], capture_output=True, text=True, check=False, **options)
        return Finished(done.returncode, done.stdout, done.stderr)

    return call
