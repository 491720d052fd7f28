"""Long work in a terminal: a pseudo-terminal of the operating system, as a person would have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals exist on POSIX systems only")

SCRIPT = """
import numpy as np, prudent
rng = np.random.default_rng(0)
problems = [prudent.DecisionProblem.from_payoffs(rng.normal(size=(6, 4))) for _ in range({problems})]
logits = rng.normal(size=(20_000, 4))
sharp = np.exp(3 * logits)
labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
forecasts = sharp / sharp.sum(axis=1, keepdims=True)
calibrator = prudent.DecisionCalibrator(problems, random_state=0, verbose=True).fit(forecasts, labels)
print("interrupted", calibrator.interrupted_, len(calibrator.patches_) > 0, flush=True)
"""


def run_in_terminal(problems: int, interrupt: bool) -> tuple[str, str]:
    """Run the script with standard error on a terminal; interrupt it once patches are there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(problems=problems)], stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # Linux says so when the other side is closed
                break
            if not read:
                break
            seen += read
            if interrupt and b" patches" in seen and b", 0 patches" not in read:
                process.send_signal(signal.SIGINT)
                interrupt = False
        assert process.stdout is not None
        output = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, seen.decode()
    return output, seen.decode()


def test_one_line_says_how_far_the_work_is() -> None:
    output, seen = run_in_terminal(2, interrupt=False)
    assert output == "interrupted False True\n"
    assert "\rdecision calibration: " in seen
    assert "patches, held-out squared error" in seen
    assert seen.endswith("\n")
    assert seen.count("\n") == 1  # one line, written over itself


def test_an_interrupt_keeps_the_best_state() -> None:
    output, _ = run_in_terminal(300, interrupt=True)
    assert output == "interrupted True True\n"
