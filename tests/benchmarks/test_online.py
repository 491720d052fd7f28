"""The shift of ``python -m benchmarks.online``: what its tables show, asserted."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.online import DELAYS, alarms, bikes, earned, growth, problems


@pytest.mark.slow
def test_what_online_correction_earns_and_when_the_monitor_tells(data_directory: Path) -> None:
    shift = bikes(data_directory)
    problem = problems()["bet at 4500"]
    follow, *online, mean, recent, everything, best = earned(problem, shift)
    assert follow < 0 < everything
    assert min(*online, mean) > 0.85 * best
    assert recent < min(online)
    for name, problem in problems().items():
        _, (moments, utility, robust, _, first) = alarms(problem, shift)
        assert moments is not None
        assert moments <= 20, name
        assert (utility is not None) == (name in ("maintenance", "bet at 4500", "demand hurts"))
        assert first is not None
        assert robust is not None
        assert robust >= moments


def test_growth_with_delays() -> None:
    for delay in DELAYS:
        for ratios in growth(delay, [50, 100]):
            assert max(ratios) < 1.5
