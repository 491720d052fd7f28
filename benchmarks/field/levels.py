"""Decisions on how much to provide, where too little costs more than too much."""

from __future__ import annotations

import numpy as np

import prudent
from benchmarks.field.forecaster import Setting

_RATIOS = (2, 4, 9)  # what a level that is missing costs, over one that is idle: critical fractiles 67%, 80%, 90%


def level_settings(needed: list[int], actions: list[str], classes: list[str]) -> dict[str, Setting]:
    """Provide one of the levels ``0, 1, ...``; each class of outcomes needs one. The unit is the highest, all idle."""
    settings, over = {}, np.arange(len(actions))[:, None] - np.array(needed)
    for ratio in _RATIOS:
        payoffs = -np.where(over > 0, over, -ratio * over).astype(float)
        problem = prudent.DecisionProblem.from_payoffs(payoffs, actions=actions, classes=classes)
        settings[f"short costs {ratio}"] = Setting(problem, float(len(actions) - 1))
    return settings
