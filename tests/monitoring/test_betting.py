"""Wealth of bets: every stake and starting time, no drift at the limit."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from prudent.monitoring import BettingProcess


def test_wealth_is_that_of_all_bettors() -> None:
    """Every stake and every starting time, followed one by one."""
    values = np.random.default_rng(1).random(60)
    evidence = BettingProcess(0.0, 1.0, 0.4)
    found = evidence.extend(values[:25]).tolist() + evidence.extend(values[25:]).tolist()
    stakes = np.geomspace(0.9, 0.9e-3, 24) / 0.4
    waiting = np.log(2) / np.log(np.arange(62) + 2)
    for t in (1, 10, 25, 26, 60):
        wealth = waiting[t]
        for start in range(t):
            share = waiting[start] - waiting[start + 1]
            wealth += share * np.mean([np.prod(1 + stake * (values[start:t] - 0.4)) for stake in stakes])
        assert found[t - 1] == pytest.approx(np.log(wealth), abs=1e-10)


def test_wealth_has_no_drift_at_the_limit() -> None:
    """One step from any past keeps its mean: the property that makes looking free."""
    evidence = BettingProcess(0.0, 1.0, 0.3)
    evidence.extend(np.array([1.0, 0.0, 0.0, 1.0]))
    before = evidence.log_value
    ahead = []
    for value in (1.0, 0.0):
        copy = deepcopy(evidence)
        ahead.append(copy.extend(np.array([value]))[0])
    assert 0.3 * np.exp(ahead[0]) + 0.7 * np.exp(ahead[1]) == pytest.approx(np.exp(before), rel=1e-12)
