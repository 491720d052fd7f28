"""Long work in a terminal: one line that says how far it is."""

from __future__ import annotations

import numpy as np
import pytest
from tests.terminal import Terminal

import prudent
from prudent import guarantees
from prudent.progress import show_steps


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
