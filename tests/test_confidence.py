"""One confidence for one statement: by default, and whoever makes it."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import prudent
from golden import data
from prudent.cli.application import application
from prudent.cli.boundary import run
from prudent.problem import read_problem
from prudent.recalibration.base import CONFIDENCE
from prudent.studio.schemas import Question


def defaults() -> Iterator[tuple[str, Any]]:
    """Every default of a confidence in the library."""
    for module in pkgutil.walk_packages(prudent.__path__, "prudent."):
        for name, member in vars(importlib.import_module(module.name)).items():
            made = member.__init__ if inspect.isclass(member) else member
            if inspect.isfunction(made) and made.__module__.startswith("prudent."):
                for parameter in inspect.signature(made).parameters.values():
                    if parameter.name == "confidence" and parameter.default is not inspect.Parameter.empty:
                        yield f"{made.__module__}.{name}", parameter.default


def test_every_default_is_the_same() -> None:
    found = dict(defaults())
    assert {
        "prudent.evidence.audits.audit",
        "prudent.report.contents.Report",
        "prudent.cli.commands.fit",
    } <= found.keys()
    assert set(found.values()) - {None} == {CONFIDENCE}  # slack that was not measured has none
    assert Question.model_fields["confidence"].default == CONFIDENCE
    page = Path(prudent.__file__).parent / "studio" / "assets" / "state.js"
    assert set(re.findall(r"confidence: ([0-9.]+)", page.read_text())) == {str(CONFIDENCE)}


class Identity(RegressorMixin, BaseEstimator):
    """A model whose forecast is the feature."""

    def fit(self, X: Any, y: Any) -> Identity:
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows")
    data.write_folder(path)
    return path


def test_python_command_line_report_and_model_say_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forecasts, outcomes = data.line()
    with chdir(folder):
        problem = read_problem("line.toml")
        run(
            application, ["advise", "line.csv", "--problem", "line.toml", "--forecast", "f", "--outcome", "y", "--json"]
        )
    printed = json.loads(capsys.readouterr().out)
    maker = prudent.RobustDecisionMaker(Identity(), problem).fit(forecasts[:, None], outcomes)
    advice = [prudent.advise(problem, forecasts, outcomes), prudent.Report(problem, forecasts, outcomes).advice]
    for found in (*advice, maker.advice_):
        assert found.confidence == found.certificate.confidence == found.gain.confidence == CONFIDENCE
        assert found.verdict.sentence == printed["verdict"]["sentence"]


@pytest.mark.parametrize("guarantee", ["auto", "self-orthogonal"], ids=["chosen", "named"])
def test_python_command_line_and_report_measure_the_same(
    guarantee: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit of a guarantee that was chosen among five has 99%, so that all hold at once with 95%."""
    forecasts, outcomes = data.line()
    with chdir(folder):
        problem = read_problem("line.toml")
    report = prudent.Report(problem, forecasts, outcomes, guarantee=guarantee)
    expected = 0.99 if guarantee == "auto" else CONFIDENCE
    assert report.audit.confidence == pytest.approx(expected)
    assert f"at once with {100 * expected:g}% confidence" in str(report.audit)
    assert report.robust.slack_.confidence == CONFIDENCE
    assert "holds with confidence 95%" in str(report.robust.certificate_)
    if guarantee != "auto":
        arguments = ["audit", "line.csv", "--problem", "line.toml", "--forecast", "f", "--outcome", "y", "--json"]
        with chdir(folder):
            run(application, [*arguments, "--guarantee", guarantee])
        printed = json.loads(capsys.readouterr().out)
        found = prudent.audit(problem, forecasts, outcomes, guarantee=guarantee)
        assert printed["confidence"] == found.confidence == CONFIDENCE
        assert printed["columns"]["upper"] == found.intervals[:, 1].tolist() == report.audit.intervals[:, 1].tolist()
