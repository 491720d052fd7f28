"""Shifts within segments: what plain arithmetic says, shrinkage, files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

import prudent
from prudent.recalibration import IsotonicCalibrator, Recalibrator, ScalingCalibrator, SegmentedCalibrator

OFF = {"north": 0.8, "south": -0.8, "east": 0.0}


def sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Probabilities whose log-odds are off by a number in each region."""
    rng = np.random.default_rng(seed)
    region = rng.choice(list(OFF), n)
    forecasts = rng.uniform(0.05, 0.95, n)
    chances = expit(logit(forecasts) + np.array([OFF[name] for name in region]))
    return forecasts, (rng.random(n) < chances).astype(float), {"region": region}


def segmented(*columns: str, method: str = "bias", space: Any = None) -> SegmentedCalibrator:
    return SegmentedCalibrator(columns, ScalingCalibrator(method, space=space), space=space)


def test_shifts_are_those_of_the_truth_where_there_are_many_rows() -> None:
    forecasts, outcomes, context = sample(60_000)
    calibrator = segmented("region").fit(forecasts, outcomes, context=context)
    found = {value: float(shift.intercepts_[0]) for _, value, shift in calibrator.steps_}
    for name, true in OFF.items():
        assert found[name] == pytest.approx(true, abs=0.08)
    moved = calibrator.transform(forecasts, context)[:, 0]
    for name in OFF:
        inside = context["region"] == name
        assert abs((outcomes - moved)[inside].mean()) < 1e-3


def test_few_rows_are_drawn_towards_the_pooled_map() -> None:
    """Each shift closes a part of the gap in its segment, and the part is smaller where there are fewer rows."""
    forecasts, outcomes, context = sample(30_000)
    rare = np.flatnonzero(context["region"] == "south")[40:]
    keep = np.setdiff1d(np.arange(30_000), rare)
    forecasts, outcomes, region = forecasts[keep], outcomes[keep], context["region"][keep]
    calibrator = segmented("region").fit(forecasts, outcomes, context={"region": region})
    pooled = calibrator.base_.transform(forecasts)[:, 0]
    moved = calibrator.transform(forecasts, {"region": region})[:, 0]
    closed = {}
    for name in ("north", "south"):
        inside = region == name
        gap = (outcomes - pooled)[inside].mean()
        closed[name] = (moved - pooled)[inside].mean() / gap
    assert 0.99 < closed["north"] <= 1
    assert 0.1 < closed["south"] < 0.97


def test_segments_that_differ_by_chance_alone_are_hardly_shifted() -> None:
    shifted = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        forecasts = rng.uniform(0.05, 0.95, 1_000)
        outcomes = (rng.random(1_000) < forecasts).astype(float)
        context = {"group": rng.integers(0, 5, 1_000)}
        calibrator = segmented("group").fit(forecasts, outcomes, context=context)
        moved = calibrator.transform(forecasts, context) - calibrator.base_.transform(forecasts)
        shifted.append(np.abs(moved).mean())
    assert np.median(shifted) < 1e-9
    assert np.max(shifted) < 0.03


def test_a_segment_without_any_event_is_not_sure_of_that() -> None:
    rng = np.random.default_rng(0)
    forecasts, group = np.full(5_000, 0.02), np.repeat(["a", "b", "c", "none"], [1_650, 1_650, 1_660, 40])
    outcomes = (rng.random(5_000) < np.where(group == "a", 0.05, 0.01)).astype(float)
    outcomes[group == "none"] = 0.0
    calibrator = segmented("group").fit(forecasts, outcomes, context={"group": group})
    assert calibrator.transform([0.02], {"group": ["none"]})[0, 0] > 0.005


def test_unseen_missing_and_rare_values_get_the_pooled_map() -> None:
    forecasts, outcomes, context = sample(3_000)
    region = context["region"].astype(object)
    region[:29] = "rare"
    calibrator = segmented("region").fit(forecasts, outcomes, context={"region": region})
    new = np.array(["rare", "west", None, "north"], dtype=object)
    moved = calibrator.transform(np.full(4, 0.4), {"region": new})[:, 0]
    pooled = calibrator.base_.transform([0.4])[0, 0]
    assert (moved[:3] == pooled).all()
    assert moved[3] > pooled + 0.1


def test_values_of_another_kind_are_unseen_values() -> None:
    forecasts, outcomes, context = sample(3_000)
    calibrator = segmented("region").fit(forecasts, outcomes, context=context)
    pooled = calibrator.base_.transform([0.4, 0.6])
    for other in ([1, 2], [1.5, 2.5], [True, False], np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")):
        np.testing.assert_array_equal(calibrator.transform([0.4, 0.6], {"region": other}), pooled)


def test_a_map_without_shifts_needs_no_context() -> None:
    rng = np.random.default_rng(3)
    forecasts, group = rng.uniform(0.05, 0.95, 1_000), rng.integers(0, 5, 1_000)
    outcomes = (rng.random(1_000) < forecasts).astype(float)
    calibrator = segmented("group").fit(forecasts, outcomes, context={"group": group})
    assert calibrator.steps_ == []
    assert calibrator.columns == ()
    np.testing.assert_array_equal(calibrator.transform(forecasts), calibrator.base_.transform(forecasts))


def test_periods_share_their_errors() -> None:
    """What differs from day to day is not taken for what differs between segments."""
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(12), 500)
    group = (day % 4).astype(str)  # each group has three days
    group = np.where(rng.random(6_000) < 0.1, rng.integers(0, 4, 6_000).astype(str), group)
    forecasts = rng.uniform(0.3, 0.7, 6_000)
    outcomes = (rng.random(6_000) < forecasts + 0.1 * rng.normal(size=12)[day]).astype(float)
    context, space = {"group": group}, prudent.Box(0, 1)
    moved = []
    for periods in (None, day):
        rows = prudent.Cases(forecasts, outcomes, periods=periods, context=context).on(space)
        calibrator = segmented("group").fit_map(rows)
        moved.append(np.abs(calibrator.transform(forecasts, context) - calibrator.base_.transform(forecasts)).mean())
    assert moved[1] < 0.8 * moved[0]


def test_columns_add_up_in_any_order() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    context = {"region": rng.integers(0, 3, n), "size": rng.choice(["small", "large"], n)}
    scores = rng.normal(size=n)
    true = scores + 0.8 * (context["region"] - 1) + np.where(context["size"] == "small", 0.4, -0.4)
    forecasts, outcomes = expit(scores), (rng.random(n) < expit(true)).astype(float)
    one = segmented("region", "size").fit(forecasts, outcomes, context=context)
    two = segmented("size", "region").fit(forecasts, outcomes, context=context)
    np.testing.assert_allclose(one.transform(forecasts, context), two.transform(forecasts, context), atol=1e-12)
    assert list(one.columns) == ["region", "size"]  # what matters most comes first
    assert np.abs(one.transform(forecasts, context)[:, 0] - expit(true)).mean() < 0.02


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_shifted_and_stay_probabilities(classes: int) -> None:
    rng = np.random.default_rng(0)
    space, n = prudent.Simplex(classes), 20_000
    scores, group = rng.normal(size=(n, classes)), rng.integers(0, 2, n)
    forecasts = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = np.exp(scores + np.where(group == 1, 0.7, -0.7)[:, None] * (np.arange(classes) == 0))
    true /= true.sum(axis=1, keepdims=True)
    outcomes = (rng.random((n, 1)) > np.cumsum(true, axis=1)).sum(axis=1).clip(0, classes - 1)
    calibrator = segmented("group", method="temperature", space=space)
    moved = calibrator.fit(forecasts, outcomes, context={"group": group}).transform(forecasts, {"group": group})
    np.testing.assert_allclose(moved.sum(axis=1), 1, atol=1e-12)
    assert np.abs(moved - true).mean() < 0.3 * np.abs(forecasts - true).mean()


def test_numbers_are_shifted_in_their_units_and_stay_in_the_range_seen() -> None:
    rng = np.random.default_rng(0)
    space, n = prudent.Box([0, 0], [1_000, 10]), 6_000
    forecasts, group = rng.uniform([200, 2], [800, 8], (n, 2)), rng.integers(0, 2, n)
    outcomes = (forecasts + np.where(group == 1, 50, -50)[:, None] * [1, 0.01] + rng.normal(size=(n, 2))).clip(0, 10**3)
    outcomes[:, 1] = outcomes[:, 1].clip(0, 10)
    calibrator = segmented("group", method="shift", space=space).fit(forecasts, outcomes, context={"group": group})
    moved = calibrator.transform(forecasts, {"group": group})
    assert np.abs((moved - outcomes).mean(axis=0)).max() < 0.1
    for which in (0, 1):
        assert np.abs((moved - outcomes)[group == which].mean(axis=0)).max() < 0.2
    assert (moved <= outcomes.max(axis=0)).all()
    assert (moved >= outcomes.min(axis=0)).all()


@pytest.mark.parametrize("base", [ScalingCalibrator("platt"), IsotonicCalibrator()])
def test_survives_a_file(base: Recalibrator, tmp_path: Any) -> None:
    forecasts, outcomes, context = sample(3_000)
    context |= {"floor": np.arange(3_000) % 3, "open": np.arange(3_000) % 2 == 0}
    calibrator = SegmentedCalibrator(["region", "floor", "open"], base).fit(forecasts, outcomes, context=context)
    calibrator.save(tmp_path / "calibrator.json")
    again = Recalibrator.load(tmp_path / "calibrator.json")
    np.testing.assert_array_equal(again.transform(forecasts, context), calibrator.transform(forecasts, context))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": [["region"]]}, "steps must be triples"),
        ({"steps": [[1, "north", {}]]}, "steps must be triples"),
        ({"steps": "region"}, "must be of type list"),
        ({"space": prudent.Box(0, 2).to_dict()}, "every shift must have the space of the base"),
    ],
)
def test_files_that_do_not_fit_are_refused(change: dict[str, Any], said: str) -> None:
    forecasts, outcomes, context = sample(3_000)
    content = segmented("region").fit(forecasts, outcomes, context=context).to_dict()
    with pytest.raises(prudent.errors.FileFormatError, match=said):
        Recalibrator._rebuild(content | change)


def test_bad_input_is_refused_in_one_line() -> None:
    forecasts, outcomes, context = sample(200)
    wrong = prudent.errors.InputError
    with pytest.raises(wrong, match="context must have the column 'area'"):
        segmented("area").fit(forecasts, outcomes, context=context)
    with pytest.raises(wrong, match="by must be a list"):
        SegmentedCalibrator("region", ScalingCalibrator("bias")).fit(forecasts, outcomes, context=context)
    calibrator = segmented("region").fit(forecasts, outcomes, context=context)
    with pytest.raises(wrong, match="one value per forecast, 200; got shape \\(3,\\)"):
        calibrator.transform(forecasts, {"region": ["north"] * 3})
