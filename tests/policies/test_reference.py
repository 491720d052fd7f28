"""The two habits that robust policies are compared with."""

from __future__ import annotations

import numpy as np

import prudent


def test_safety_ignores_the_forecast_even_in_ties() -> None:
    problem = prudent.DecisionProblem([[1, -1], [-1, -1], [0, 1], [0, -1]])
    mixtures = prudent.SafetyPolicy(problem).predict_proba(np.random.default_rng(0).random((50, 2)))
    assert (mixtures == mixtures[0]).all()
