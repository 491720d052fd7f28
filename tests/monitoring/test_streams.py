"""Wealth of bets: every stake and starting time, no drift at the limit, stakes as large as a row allows."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from prudent.monitoring import BettingProcess

STAKES = 2.0 ** np.arange(-10, 6)


def test_wealth_is_that_of_all_bettors() -> None:
    """Every column, stake and starting time, followed one by one."""
    rng = np.random.default_rng(1)
    scales = np.array([1.0, 3.0])
    least = -rng.random((60, 2)) * scales
    values = least + rng.random((60, 2)) * scales
    evidence = BettingProcess(scales)
    found = np.concatenate([evidence.extend(values[:25], least[:25]), evidence.extend(values[25:], least[25:])])
    waiting = np.log(2) / np.log(np.arange(62) + 2)
    for t in (1, 10, 25, 26, 60):
        wealth = waiting[t]
        for start in range(t):
            rows = slice(start, t)
            won = [
                np.prod(1 + np.minimum(stake / scales[c], -0.9 / least[rows, c]) * values[rows, c])
                for c in range(2)
                for stake in STAKES
            ]
            wealth += (waiting[start] - waiting[start + 1]) * np.mean(won)
        assert found[t - 1] == pytest.approx(np.log(wealth), abs=1e-10)


def test_wealth_has_no_drift_at_the_limit() -> None:
    """One step from any past keeps its mean: the property that makes looking free."""
    evidence = BettingProcess(1.0)
    least = np.full((4, 1), -0.3)
    evidence.extend(np.array([0.7, -0.3, -0.3, 0.7])[:, None], least)
    before = evidence.log_value
    ahead = []
    for value in (0.7, -0.3):
        copy = deepcopy(evidence)
        ahead.append(copy.extend(np.array([[value]]), least[:1])[0])
    assert 0.3 * np.exp(ahead[0]) + 0.7 * np.exp(ahead[1]) == pytest.approx(np.exp(before), rel=1e-12)


def test_evidence_grows_with_the_variance_and_not_with_the_range() -> None:
    """Rows that cannot lose much are bet on with large stakes, however wide the space is."""
    values = 0.01 * np.random.default_rng(2).normal(1.0, 0.5, (40, 1)).clip(-1)
    needed = []
    for scale, least in ((1.0, -1.0), (1.0, -0.01), (0.1, -0.01)):
        path = BettingProcess(scale).extend(values, np.full(values.shape, least))
        needed.append(int((path < np.log(100)).sum()))
    assert needed[0] == 40  # not at all
    assert needed[1] <= 32
    assert needed[2] <= 20


def test_a_value_that_cannot_be_negative_breaks_nothing() -> None:
    path = BettingProcess(1.0).extend(np.array([[0.0], [0.5]]), np.array([[0.0], [0.1]]))
    assert path[0] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(path).all()


def test_the_strongest_column_and_its_start() -> None:
    rng = np.random.default_rng(3)
    values = rng.choice([-0.5, 0.5], (400, 3), p=[0.6, 0.4])
    values[250:, 1] = rng.choice([-0.5, 0.5], 150, p=[0.2, 0.8])
    evidence = BettingProcess(np.ones(3))
    evidence.extend(values, np.full(values.shape, -0.5))
    assert evidence.strongest == 1
    assert 230 <= evidence.lowest_at[1] <= 270
    assert evidence.size(1) == pytest.approx(0.3, abs=0.1)
