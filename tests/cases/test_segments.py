"""Which rows are looked at alone, and which together."""

from __future__ import annotations

import numpy as np

import prudent
from prudent.cases.segments import find_segments


def test_segments_are_the_values_with_enough_rows_and_periods() -> None:
    kind = np.repeat(["a", "b", "c", "d"], [40, 30, 29, 60])
    periods = np.arange(159) % 5
    periods[kind == "d"] = np.arange(60) % 3  # in three periods only
    rows = prudent.Cases(np.full(159, 0.5), context={"kind": kind}).on(prudent.Box(0, 1))
    found = {name: len(own) for name, own in find_segments(rows, "kind")}
    assert found == {"kind=a": 40, "kind=b": 30, "kind=d": 60, "other kind": 29}
    timed = prudent.Cases(np.full(159, 0.5), periods=periods, context={"kind": kind}).on(prudent.Box(0, 1))
    parts = dict(find_segments(timed, ["kind"]))
    assert {name: len(own) for name, own in parts.items()} == {"kind=a": 40, "kind=b": 30, "other kind": 89}
    np.testing.assert_array_equal(parts["other kind"], np.flatnonzero(np.isin(kind, ["c", "d"])))


def test_every_row_is_in_one_segment_of_each_column() -> None:
    rng = np.random.default_rng(0)
    context = {"a": rng.integers(0, 40, 1_000), "b": rng.choice(["x", "y"], 1_000)}
    rows = prudent.Cases(np.full(1_000, 0.5), context=context).on(prudent.Box(0, 1))
    for name in context:
        everything = np.concatenate([own for _, own in find_segments(rows, name)])
        np.testing.assert_array_equal(np.sort(everything), np.arange(1_000))
