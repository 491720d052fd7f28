"""The ledger pairs the first forecast with the first outcome of an id, in any order and in any batches."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.monitoring.ledger import Ledger


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [1, 7, 60])
def test_first_forecasts_meet_first_outcomes(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    names = rng.integers(0, 15, 60).tolist()
    ledger, pairs = Ledger(), []
    first: list[dict[int, float]] = [{}, {}]
    duplicates = 0
    for start in range(0, 60, size):
        batch = names[start : start + size]
        values = start + np.arange(len(batch), dtype=float)[:, None]
        late = rng.random() < 0.4
        present = np.ones(len(batch), dtype=bool) if late else rng.random(len(batch)) < 0.5
        for name, value, given in zip(batch, values[:, 0], present, strict=True):
            new_forecast = not late and name not in first[0]
            new_outcome = given and name not in first[1]
            duplicates += (given and not new_outcome) or not (new_forecast or new_outcome)
            first[0] |= {name: value} if new_forecast else {}
            first[1] |= {name: -value} if new_outcome else {}
        _, forecasts, outcomes = ledger.add(batch, None if late else values, -values[present], present)
        pairs += list(zip(forecasts, outcomes, strict=True))
    expected = [([first[0][name]], [first[1][name]]) for name in first[0].keys() & first[1].keys()]
    assert sorted(pairs) == sorted(expected)
    assert ledger.n_duplicates == duplicates
    assert {name for name, _ in ledger.awaiting(1)} == first[0].keys() - first[1].keys()
    assert {name for name, _ in ledger.awaiting(0)} == first[1].keys() - first[0].keys()
