"""Confidence statements hold as often as they say, by simulation; `python -m benchmarks.coverage` has all tables."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.coverage import (
    SITUATIONS,
    audited_guarantees_that_hold,
    certificates_that_hold,
    delays,
    false_alarms,
    simulate,
)

pytestmark = pytest.mark.slow


def least(nominal: float, samples: int) -> float:
    """Three standard errors below a nominal share."""
    return nominal - 3 * float(np.sqrt(nominal * (1 - nominal) / samples))


@pytest.mark.parametrize("n", [100, 500, 5_000])
@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_automatic_intervals_cover(situation: object, n: int) -> None:
    samples = 500 if n < 5_000 else 200
    for moments, tests in ((1, "powers"), (6, "powers"), (6, "bins"), (30, "bins")):
        covered = simulate(situation, tests, moments, n, samples, ("auto",)).covered["auto"]
        assert covered >= least(0.95, samples), (moments, tests, covered)


@pytest.mark.parametrize("method", ["auto", "bernstein"])
def test_certificates_hold_in_the_worst_world(method: str) -> None:
    assert certificates_that_hold(method, 500, 1_000) >= least(0.95, 1_000)


@pytest.mark.parametrize("center", ["zero", "measured"])
def test_audited_guarantees_hold_in_the_true_world(center: str) -> None:
    assert audited_guarantees_that_hold(center, 500, 400) >= least(0.95, 400)


@pytest.mark.parametrize("situation", ["calibrated", "at the limit"])
def test_false_alarms_are_rare_over_ten_thousand_looks(situation: str) -> None:
    assert false_alarms(situation, 10_000, 200) <= 0.05


def test_a_drift_is_found() -> None:
    rows = np.array(delays(0.05, 2_000, 20))
    assert (rows > 0).all()
    assert np.median(rows) < 6_000
