"""Audits by segment: moments within each value of a column, against plain arithmetic."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import guarantees

PROBLEM = prudent.DecisionProblem([0, 100], [0, 50], actions=["wait", "act"], unit="EUR")


def sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Forecasts that are right on average, and wrong in two of three regions."""
    rng = np.random.default_rng(seed)
    context = {"region": rng.choice(["a", "b", "c"], n), "size": rng.choice([1, 2], n)}
    forecasts = rng.uniform(0.2, 0.8, n)
    off = np.select([context["region"] == "a", context["region"] == "b"], [0.12, -0.12], 0.0)
    return forecasts, (rng.random(n) < forecasts + off).astype(float), context


def test_pooled_moments_hide_what_segments_show() -> None:
    forecasts, outcomes, context = sample(9_000)
    assert not prudent.audit(PROBLEM, forecasts, outcomes).rejected
    found = prudent.audit(PROBLEM, forecasts, outcomes, context=context, by=["region", "size"])
    assert set(found.rejected) == {f"{what}, region={name}" for what in ("1", "utility") for name in "ab"}
    assert "region=" in found.sentence
    table = found.to_frame().set_index("moment")
    act = forecasts > 0.5
    for name in "abc":
        inside = context["region"] == name
        assert table.loc[f"1, region={name}", "estimate"] == pytest.approx(((outcomes - forecasts) * inside).mean())
        earned = (100 * (outcomes - forecasts) * act * inside).mean()
        assert table.loc[f"utility, region={name}", "estimate"] == pytest.approx(earned)
    for size in (1, 2):
        assert table.loc[f"1, size={size}", "lower"] < 0 < table.loc[f"1, size={size}", "upper"]
    assert (table["lower"] <= table["estimate"]).all()
    assert (table["upper"] >= table["estimate"]).all()


def test_the_guarantee_given_is_measured_in_every_segment() -> None:
    forecasts, outcomes, context = sample(2_000)
    found = prudent.audit(None, forecasts, outcomes, guarantee="bins:2", context=context, by="region")
    assert len(found.moment_names) == 2 + 2 * 3
    assert "utility, region=a" not in found.moment_names
    given = prudent.audit(PROBLEM, forecasts, outcomes, guarantee="bins:2", context=context, by="region")
    assert set(given.moment_names) > {*found.moment_names, "utility", "utility, region=a"}


def test_a_guarantee_within_a_column_is_not_measured_twice() -> None:
    forecasts, outcomes, context = sample(2_000)
    inner = guarantees.Within("region", "unbiased")
    given = {"guarantee": inner, "context": context}
    found = prudent.audit(None, forecasts, outcomes, by=["region", "size"], **given)
    assert len(found.moment_names) == 3 + 3 * 2
    assert found.moment_names[:3] == prudent.audit(None, forecasts, outcomes, **given).moment_names


@pytest.mark.parametrize("samples", [pytest.param(60, id="few"), pytest.param(600, id="many", marks=pytest.mark.slow)])
def test_all_intervals_hold_at_once(samples: int) -> None:
    """Of a calibrated forecaster something is rejected in at most five in a hundred samples."""
    wrong = 0
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        forecasts, context = rng.uniform(0.2, 0.8, 600), {"group": rng.integers(0, 5, 600)}
        outcomes = (rng.random(600) < forecasts).astype(float)
        wrong += bool(prudent.audit(PROBLEM, forecasts, outcomes, context=context, by="group").rejected)
    assert wrong <= 0.05 * samples + 2 * np.sqrt(0.05 * 0.95 * samples)


def test_small_segments_are_pooled() -> None:
    forecasts, outcomes, context = sample(400)
    town = np.where(np.arange(400) < 50, np.arange(400).astype(str), context["region"])
    found = prudent.audit(None, forecasts, outcomes, guarantee="unbiased", context={"town": town}, by="town")
    assert found.moment_names == ("1", "1, town=a", "1, town=b", "1, town=c", "1, town=other")
    table = found.to_frame().set_index("moment")
    first = np.arange(400) < 50
    assert table.loc["1, town=other", "estimate"] == pytest.approx(((outcomes - forecasts) * first).mean())


def test_order_and_names_change_nothing_but_names() -> None:
    forecasts, outcomes, context = sample(3_000)
    order = np.random.default_rng(0).permutation(3_000)
    renamed = {"a": "z", "b": "y", "c": "x"}
    other = pd.DataFrame({"size": context["size"], "region": [renamed[name] for name in context["region"]]}).iloc[order]
    first = prudent.audit(PROBLEM, forecasts, outcomes, context=context, by=["region", "size"]).to_frame()
    second = prudent.audit(PROBLEM, forecasts[order], outcomes[order], context=other, by=["size", "region"]).to_frame()
    back = {
        f"{what}, region={new}": f"{what}, region={old}" for old, new in renamed.items() for what in ("1", "utility")
    }
    second["moment"] = second["moment"].replace(back)
    both = (each.set_index("moment").sort_index() for each in (first, second))
    pd.testing.assert_frame_equal(*both, rtol=1e-7, atol=1e-9)


def test_tables_are_measured_as_rows_in_memory() -> None:
    forecasts, outcomes, context = sample(1_000)
    frame = pd.DataFrame({"f": forecasts, "y": outcomes, **context})
    table = prudent.scan(duckdb.from_df(frame), forecasts="f", outcomes="y", context=["region"])
    found = prudent.audit(PROBLEM, table, by="region").to_frame().set_index("moment")
    memory = prudent.audit(PROBLEM, forecasts, outcomes, context=context, by="region").to_frame().set_index("moment")
    pd.testing.assert_frame_equal(found.loc[memory.index], memory, rtol=1e-9)


@pytest.mark.parametrize(
    ("context", "by", "said"),
    [
        (None, "region", "context must have the column 'region'"),
        ({"region": ["a", "b"] * 20}, "town", "context must have the column 'town'"),
        ({"region": ["a"] * 40}, "region", "all have the same region"),
        ({"region": ["a"] * 39 + [None]}, "region", "'region' must have no missing values"),
        ({"region": np.arange(40) / 7}, "region", "must hold text, whole numbers or truth values"),
        ({"region": np.arange(40) // 5}, ["region"], "each of its values occurs in one period only"),
    ],
)
def test_bad_columns_are_refused_in_one_line(context: Any, by: Any, said: str) -> None:
    forecasts, outcomes, _ = sample(40)
    with pytest.raises(prudent.errors.InputError, match=said) as caught:
        prudent.audit(None, forecasts, outcomes, context=context, by=by, periods=np.repeat(np.arange(8), 5))
    assert "\n" not in str(caught.value)


def test_forecasts_right_in_every_segment_are_so_on_fresh_rows() -> None:
    """Multicalibration next to the same guarantee for all rows, on rows that had no part in it."""
    tests = guarantees.SelfOrthogonal(intercept=True)
    for seed in range(3):
        forecasts, outcomes, context = sample(12_000, seed)
        fitting, fresh = slice(0, 6_000), slice(6_000, None)
        region, left, errors = context["region"], [], []
        for guarantee in (tests, guarantees.Within("region", tests)):
            calibrator = prudent.recalibration.GuaranteeCalibrator(guarantee)
            calibrator.fit(forecasts[fitting], outcomes[fitting], context={"region": region[fitting]})
            moved = calibrator.transform(forecasts[fresh], {"region": region[fresh]})
            where = {"context": {"region": region[fresh]}, "by": "region"}
            left.append(len(prudent.audit(None, moved, outcomes[fresh], guarantee=tests, **where).rejected))
            errors.append(np.mean((moved[:, 0] - outcomes[fresh]) ** 2))
        assert left[0] >= 2
        assert left[1] == 0
        assert errors[1] < errors[0] - 0.005
