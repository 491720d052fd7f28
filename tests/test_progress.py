"""Long work in a terminal: one line that says how far it is."""

from __future__ import annotations

import numpy as np
import pytest
from tests.terminal import Terminal

import prudent
from prudent import guarantees
from prudent.progress import show_steps


def test_a_fit_tells_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    policy = prudent.RobustPolicy(prudent.DecisionProblem(rng.normal(size=(4, 3))), guarantees.SelfOrthogonal())
    seen = Terminal()
    monkeypatch.setattr("sys.stderr", seen)
    with show_steps("fit"):
        policy.fit(rng.random((500, 3)))
    assert policy.certificate_.status == prudent.solvers.Status.OPTIMAL
    assert seen.getvalue().count("\n") == 1
    assert "\rfit: step 1 on 500 rows, " in seen.getvalue()
