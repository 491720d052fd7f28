"""Orders and beds of ``python -m benchmarks.newsvendor``: what its tables show, asserted."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.newsvendor import beds, bikes, decided, references


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_finer_grids_do_not_make_the_rule_for_bikes_worse(data_directory: Path, seed: int) -> None:
    case = bikes(data_directory, seed)
    known = references(case)
    coarse, fine = (decided(case, n_points, ["Cumulative", "utility"]) for n_points in (6, 41))
    assert fine.robust["utility"][1] >= coarse.robust["utility"][1]
    # One order for all days: the next one of the grid of orders earns up to 2% less.
    assert fine.robust["Cumulative"][1] >= 0.98 * coarse.robust["Cumulative"][1]
    assert fine.robust["Cumulative"][0] >= 0.96 * coarse.robust["Cumulative"][0]
    assert fine.follow >= coarse.follow
    assert fine.follow > 0.99 * known["critical fractile"]
    assert fine.advice[1] >= coarse.advice[1]
    for row in (coarse, fine):
        assert row.advice[0] <= row.advice[1]
        assert all(lower <= earned for lower, earned in row.robust.values())


@pytest.mark.slow
def test_beds_of_the_next_season(data_directory: Path) -> None:
    case = beds(data_directory)
    known = references(case)
    rows = [decided(case, n_points, ["utility"]) for n_points in (11, 41)]
    assert rows[0].follow < rows[1].follow
    assert rows[1].follow > 0.99 * known["critical fractile"] > known["best single amount"]
    assert all(lower <= earned for row in rows for lower, earned in (row.advice, *row.robust.values()))
