"""The ledger pairs the first forecast with the first outcome of an id, in any order and in any batches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from prudent.recalibration.ledger import Ledger


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("early", [True, False])
def test_first_forecasts_meet_first_outcomes(seed: int, size: int, early: bool) -> None:
    rng = np.random.default_rng(seed)
    names = rng.integers(0, 15, 60).tolist()
    ledger, pairs, learned = Ledger(early), [], {}
    first: list[dict[int, float]] = [{}, {}]
    counts = {"n_repeated": 0, "n_conflicting": 0, "n_unknown": 0}
    for start in range(0, 60, size):
        batch = names[start : start + size]
        values = (start + np.arange(len(batch), dtype=float)) % 3
        late = rng.random() < 0.4
        given = [[-value] if late or rng.random() < 0.5 else None for value in values]
        for name, value, outcome in zip(batch, values, given, strict=True):
            new = not late and name not in first[0]
            first[0] |= {name: value} if new else {}
            if outcome is None:
                counts["n_repeated"] += not new
            elif name in first[1]:
                counts["n_repeated" if first[1][name] == outcome[0] else "n_conflicting"] += 1
            elif name in first[0] or early:
                first[1][name] = outcome[0]
            else:
                counts["n_unknown"] += 1
        found = ledger.match(batch, None if late else [[value] for value in values], given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ledger.note(found)
        pairs += found.pairs
        learned |= found.learned
    expected = [([[first[0][name]]], [first[1][name]]) for name in first[0].keys() & first[1].keys()]
    assert sorted(pairs) == sorted(expected)
    assert learned == {name: [first[1][name]] for name in first[0].keys() & first[1].keys()}
    assert {name: getattr(ledger, name) for name in counts} == counts
    assert set(ledger.awaiting(1)) == first[0].keys() - first[1].keys()
    assert set(ledger.awaiting(0)) == first[1].keys() - first[0].keys()


def test_a_match_changes_nothing_until_it_is_noted() -> None:
    ledger = Ledger(early=True)
    found = ledger.match(["a"], [[0.5]], [[1.0]])
    assert ledger == Ledger(early=True)
    ledger.note(found)
    assert ledger.rows == {"a": ([[0.5]], [1.0])}


def test_warnings_name_a_few_ids() -> None:
    ledger = Ledger(early=False)
    with pytest.warns(UserWarning, match=r"^6 ids .* never predicted.*: 0, 1, 2, 3, 4, \.\.\.\. Check"):
        ledger.note(ledger.match(list(range(6)), None, [[1.0]] * 6))
