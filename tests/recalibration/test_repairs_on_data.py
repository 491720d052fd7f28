"""Repairs on data: what the table of ``python -m benchmarks.repair`` shows, asserted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.repair import (
    Case,
    Measured,
    classifier_cases,
    collapse,
    measure,
    online,
    regression_cases,
    synthetic_case,
)

pytestmark = pytest.mark.slow


def check(row: Measured) -> None:
    assert row.rejected_after == 0, row  # on held-out rows, all within the simultaneous band
    assert row.error_after <= 1.01 * row.error_before
    # Nobody is worse off beyond what chance allows among so many decision makers.
    assert (row.gains >= -1.7 * row.margins - 1e-12).all(), row


@pytest.mark.parametrize("case", list(classifier_cases()), ids=lambda case: case.name)
def test_digits(case: Case) -> None:
    check(measure(case))


def test_five_classes() -> None:
    row = measure(synthetic_case())
    check(row)
    assert row.rejected_before > 50
    assert row.fresh_after < 0.05 * row.fresh_before
    assert row.shortfall_after < 0.2 * row.shortfall_before
    assert row.gains.mean() > 0.01


def test_regressions(data_directory: Path) -> None:
    for case in regression_cases(data_directory):
        check(measure(case))


def test_the_gap_collapses() -> None:
    found = {name: (optimum - plug_in, bound) for name, optimum, plug_in, bound in collapse(synthetic_case(3), 1_000)}
    for number in (1, 2, 3):
        gap, bound = found[f"problem {number}, after"]
        assert gap <= bound + 1e-9
        assert gap <= found[f"problem {number}, before"][0] + 1e-6


def test_online_sums() -> None:
    ratios, naive = zip(*(online(steps) for steps in (100, 1_000, 5_000)), strict=True)
    assert max(ratios) < 3
    assert naive[2] > 3 * naive[0]
    assert np.isfinite(ratios).all()
