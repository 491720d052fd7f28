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
    assert {"prudent.evidence.audits.audit", "prudent.report.contents.Report", "prudent.cli.fit.fit"} <= found.keys()
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


@pytest.mark.parametrize("guarantee", [None, "self-orthogonal"], ids=["chosen", "named"])
def test_python_command_line_report_and_model_say_the_same(
    guarantee: str | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit of a guarantee that was chosen among five has 99%, so that all hold at once with 95%."""
    forecasts, outcomes = data.line()
    named = {} if guarantee is None else {"guarantee": guarantee}
    with chdir(folder):
        problem = read_problem("line.toml")
        options = [] if guarantee is None else ["--guarantee", guarantee]
        arguments = ["audit", "line.csv", "--problem", "line.toml", "--forecast", "f", "--outcome", "y", "--json"]
        run(application, [*arguments, *options])
    printed = json.loads(capsys.readouterr().out)
    report = prudent.Report(problem, forecasts, outcomes, **named)
    maker = prudent.RobustDecisionMaker(Identity(), problem, **named).fit(forecasts[:, None], outcomes)
    expected = 0.99 if guarantee is None else 0.95
    audits = [report.audit, maker.audit_]
    if guarantee is not None:
        audits.append(prudent.audit(problem, forecasts, outcomes, guarantee=guarantee))
    for found in audits:
        assert found.confidence == pytest.approx(expected)
        assert str(found.verdict) == printed["verdict"]["sentence"]
    assert printed["confidence"] == pytest.approx(expected)
    assert f"({100 * expected:g}% confidence" in printed["verdict"]["sentence"]
    for policy in (report.policy, maker.policy_):
        assert policy.slack_.confidence == CONFIDENCE
        assert "holds with confidence 95%" in str(policy.certificate_)
