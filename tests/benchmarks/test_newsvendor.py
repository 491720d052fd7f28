"""Orders and beds of ``python -m benchmarks.newsvendor``: what its tables show, asserted."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.newsvendor import beds, bikes, decided, references


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_finer_grids_do_not_make_the_rule_for_bikes_worse(data_directory: Path, seed: int) -> None:
    case = bikes(data_directory, seed)
    known = references(case)
    coarse, fine = (decided(case, n_points, ["Cumulative", "utility"]) for n_points in (6, 41))
    for kind in ("Cumulative", "utility"):
        assert fine.robust[kind][1] >= coarse.robust[kind][1] - 1e-9, kind
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
