"""Long work in a terminal: one line that says how far it is, and an interrupt that loses nothing."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.terminal import Terminal, in_terminal

import prudent
from prudent import guarantees
from prudent.progress import show_steps

SCRIPT = """
import numpy as np, prudent
rng = np.random.default_rng(0)
problems = [prudent.DecisionProblem.from_payoffs(rng.normal(size=(6, 4))) for _ in range(300)]
logits = rng.normal(size=(20_000, 4))
sharp = np.exp(3 * logits)
labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
forecasts = sharp / sharp.sum(axis=1, keepdims=True)
calibrator = prudent.recalibration.DecisionCalibrator(problems, start=None, random_state=0, verbose=True)
calibrator.fit(forecasts, labels)
print("interrupted", calibrator.interrupted_, len(calibrator.patches_) > 0, flush=True)
"""


def test_one_line_says_how_far_the_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4_000, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    sharp = np.exp(3 * logits)
    problems = [prudent.DecisionProblem.from_payoffs(rng.normal(size=(6, 4))) for _ in range(2)]
    seen = Terminal()
    monkeypatch.setattr("sys.stderr", seen)
    calibrator = prudent.recalibration.DecisionCalibrator(problems, start=None, random_state=0, verbose=True)
    calibrator.fit(sharp / sharp.sum(axis=1, keepdims=True), labels)
    assert not calibrator.interrupted_
    assert seen.getvalue().startswith("\rdecision calibration: ")
    assert "patches, held-out squared error" in seen.getvalue()
    assert seen.getvalue().endswith("\n")
    assert seen.getvalue().count("\n") == 1  # one line, written over itself


def test_an_interrupt_keeps_the_best_state() -> None:
    command = [sys.executable, "-c", SCRIPT]
    code, output, seen = in_terminal(command, interrupt_at=rb", [1-9][0-9]* patches")
    assert code == 0, seen
    assert output == "interrupted True True\n"


@pytest.mark.parametrize(("patience", "lines"), [(0.0, 1), (60.0, 0)])
def test_a_fit_tells_its_steps_once_it_takes_long(monkeypatch: pytest.MonkeyPatch, patience: float, lines: int) -> None:
    rng = np.random.default_rng(0)
    policy = prudent.RobustPolicy(prudent.DecisionProblem(rng.normal(size=(4, 3))), guarantees.SelfOrthogonal())
    seen = Terminal()
    monkeypatch.setattr("sys.stderr", seen)
    with show_steps("fit", wanted=True, after=patience):
        policy.fit(rng.random((500, 3)))
    assert policy.certificate_.status == prudent.solvers.Status.OPTIMAL
    assert seen.getvalue().count("\n") == lines
    assert ("\rfit: step 1 on 500 rows, " in seen.getvalue()) == bool(lines)
