"""Long work in a terminal: one line that says how far it is, and an interrupt that loses nothing."""

from __future__ import annotations

import sys

from tests.terminal import in_terminal

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


def calibrate(problems: int, interrupt_at: bytes | None = None) -> tuple[str, str]:
    command = [sys.executable, "-c", SCRIPT.format(problems=problems)]
    code, output, seen = in_terminal(command, interrupt_at=interrupt_at)
    assert code == 0, seen
    return output, seen


def test_one_line_says_how_far_the_work_is() -> None:
    output, seen = calibrate(2)
    assert output == "interrupted False True\n"
    assert "\rdecision calibration: " in seen
    assert "patches, held-out squared error" in seen
    assert seen.endswith("\n")
    assert seen.count("\n") == 1  # one line, written over itself


def test_an_interrupt_keeps_the_best_state() -> None:
    output, _ = calibrate(300, interrupt_at=rb", [1-9][0-9]* patches")
    assert output == "interrupted True True\n"


FIT = """
import numpy as np, prudent, prudent.progress
from prudent.progress import show_steps
prudent.progress._SECONDS_UNTIL_STEPS_ARE_SHOWN = {patience}
rng = np.random.default_rng(0)
problem = prudent.DecisionProblem(rng.normal(size=(4, 3)))
policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal())
with show_steps("fit", wanted=True):
    policy.fit(rng.random((500, 3)))
print(policy.certificate_.status.value, flush=True)
"""


def test_a_fit_tells_its_steps_once_it_takes_long() -> None:
    for patience, lines in ((0.0, 1), (60.0, 0)):
        code, output, seen = in_terminal([sys.executable, "-c", FIT.format(patience=patience)])
        assert code == 0, seen
        assert output == "optimal\n"
        assert seen.count("\n") == lines
        assert ("\rfit: step 1 on 500 rows, " in seen) == bool(lines)
