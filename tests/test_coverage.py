"""Confidence statements hold as often as they say, by simulation; `python -m benchmarks.coverage` has all tables."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.coverage import (
    SITUATIONS,
    Situation,
    audited_guarantees_that_hold,
    certificates_that_hold,
    compared,
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
def test_intervals_cover_and_are_short(situation: Situation, n: int) -> None:
    samples = 200 if n < 5_000 else 100
    for moments, tests in compared(situation):
        found = simulate(situation, tests, moments, n, samples)
        assert found.covered >= least(0.95, samples), found
        if n == 5_000 and moments <= 6 and tests != "log-odds":
            assert found.length < 2.2, found


@pytest.mark.parametrize("tests", ["powers", "log-odds"])
def test_students_t_fails_where_few_rows_carry_a_mean(tests: str) -> None:
    """Why it is not taken there: what was not seen has no variance."""
    claims, rare = SITUATIONS[-2:]
    for situation, n in ((claims, 500), (rare, 100)):
        found = simulate(situation, tests, 1, n, 200)
        assert found.student_covered < 0.7
        assert found.covered >= least(0.95, 200)


def test_certificates_hold_in_the_worst_world() -> None:
    assert certificates_that_hold(500, 1_000) >= least(0.95, 1_000)


def test_audited_guarantees_hold_in_the_true_world() -> None:
    assert audited_guarantees_that_hold(500, 400) >= least(0.95, 400)


@pytest.mark.parametrize("situation", ["calibrated", "at the limit"])
def test_false_alarms_are_rare_over_ten_thousand_looks(situation: str) -> None:
    assert false_alarms(situation, 10_000, 200) <= 0.05


def test_a_drift_is_found() -> None:
    rows = np.array(delays(0.05, 2_000, 20))
    assert (rows > 0).all()
    assert np.median(rows) < 6_000
