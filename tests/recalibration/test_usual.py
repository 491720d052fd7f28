"""Scaling calibrators find the known minimisers, alike on boxes and simplices, and stay finite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit
from sklearn.linear_model import LogisticRegression

import prudent
from prudent.errors import FileFormatError, InputError
from prudent.recalibration import Recalibrator, ScalingCalibrator

CLASSES = prudent.Simplex(3)
LEAST = expit(-np.log(1e6))


def two_values(n: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    outcomes = (rng.random(n) < expit(0.6 * logit(forecasts) - 0.5)).astype(float)
    return forecasts, outcomes, rng.random(n) + 0.1


def three_classes(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 3))
    truth = np.exp(log_softmax(0.7 * scores + [0.0, 0.5, -0.3], axis=1))
    labels = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 2)
    return np.exp(log_softmax(scores, axis=1)), labels, rng.random(n) + 0.1


@pytest.mark.parametrize("seed", range(5))
def test_platt_scaling_is_logistic_regression_on_log_odds(seed: int) -> None:
    forecasts, outcomes, weights = two_values(seed=seed)
    found = ScalingCalibrator("platt").fit(forecasts, outcomes, sample_weight=weights)
    model = LogisticRegression(C=1e8, tol=1e-10, max_iter=1_000)
    model.fit(logit(forecasts)[:, None], outcomes, sample_weight=weights)
    assert found.slopes_[0] == pytest.approx(model.coef_[0, 0], rel=1e-4)
    assert found.intercepts_[0] == pytest.approx(model.intercept_[0], rel=1e-4, abs=1e-4)
    fresh = np.random.default_rng(9).random(50)
    np.testing.assert_allclose(
        found.transform(fresh)[:, 0], model.predict_proba(logit(fresh)[:, None])[:, 1], rtol=1e-3
    )


def loss(method: str, free: np.ndarray, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Mean log loss, in the test's own arithmetic."""
    slopes = {"temperature": free[:1], "bias": np.ones(3), "vector": free[:3]}[method]
    intercepts = {"temperature": np.zeros(3), "bias": free[:3], "vector": free[3:]}[method]
    chosen = log_softmax(slopes * scores + intercepts, axis=1)[np.arange(len(labels)), labels]
    return -float(weights @ chosen / weights.sum())


@pytest.mark.parametrize("method", ["temperature", "bias", "vector"])
@pytest.mark.parametrize("seed", range(3))
def test_classes_are_scaled_by_the_minimisers_of_log_loss(method: str, seed: int) -> None:
    forecasts, labels, weights = three_classes(seed=seed)
    found = ScalingCalibrator(method, space=CLASSES).fit(forecasts, labels, sample_weight=weights)
    free = {
        "temperature": found.slopes_[:1],
        "bias": found.intercepts_,
        "vector": np.concatenate([found.slopes_, found.intercepts_]),
    }[method]
    assert np.ptp(found.slopes_) == 0 or method == "vector"
    assert (found.intercepts_ == 0).all() or method != "temperature"
    scores = np.log(forecasts)
    for direction in np.eye(len(free)):  # the gradient is zero
        up, down = (loss(method, free + step * direction, scores, labels, weights) for step in (1e-4, -1e-4))
        assert abs(up - down) / 2e-4 < 1e-6
    start = np.concatenate([np.ones(3), np.zeros(3)])
    start = {"temperature": start[:1], "bias": start[3:], "vector": start}[method]
    best = minimize(lambda each: loss(method, each, scores, labels, weights), start).fun
    assert loss(method, free, scores, labels, weights) <= best + 1e-9


def test_a_bias_in_log_odds_makes_forecasts_right_on_average() -> None:
    forecasts, outcomes, weights = two_values()
    found = ScalingCalibrator("bias").fit(forecasts, outcomes, sample_weight=weights)
    assert found.slopes_.tolist() == [1.0]
    moved = expit(logit(forecasts) + found.intercepts_[0])
    assert weights @ (moved - outcomes) / weights.sum() == pytest.approx(0, abs=1e-8)


def test_temperature_of_two_classes_has_its_gradient_at_zero() -> None:
    forecasts, outcomes, weights = two_values()
    found = ScalingCalibrator("temperature").fit(forecasts, outcomes, sample_weight=weights)
    assert found.intercepts_.tolist() == [0.0]
    scores = logit(forecasts)
    gradient = weights @ ((expit(found.slopes_[0] * scores) - outcomes) * scores) / weights.sum()
    assert gradient == pytest.approx(0, abs=1e-7)


def test_shifts_and_affine_maps_are_least_squares() -> None:
    rng = np.random.default_rng(3)
    forecasts, weights = 10 * rng.random((300, 2)), rng.random(300)
    outcomes = np.clip(0.6 * forecasts + rng.normal(size=(300, 2)) + 2, 0, 10)
    space = prudent.Box([0, 0], [10, 10])
    shift = ScalingCalibrator("shift", space=space).fit(forecasts, outcomes, sample_weight=weights)
    affine = ScalingCalibrator("affine", space=space).fit(forecasts, outcomes, sample_weight=weights)
    for j in range(2):
        assert shift.intercepts_[j] == pytest.approx(np.average(outcomes[:, j] - forecasts[:, j], weights=weights))
        slope, intercept = np.polyfit(forecasts[:, j], outcomes[:, j], 1, w=np.sqrt(weights))
        assert (affine.slopes_[j], affine.intercepts_[j]) == pytest.approx((slope, intercept))
    expected = np.clip(affine.slopes_ * forecasts + affine.intercepts_, outcomes.min(axis=0), outcomes.max(axis=0))
    np.testing.assert_allclose(affine.transform(forecasts), expected)


@pytest.mark.parametrize("method", ["bias", "platt", "temperature"])
def test_two_classes_are_the_same_as_box_and_as_simplex(method: str) -> None:
    forecasts, outcomes, weights = two_values()
    box = ScalingCalibrator(method).fit(forecasts, outcomes, sample_weight=weights)
    pairs = np.column_stack([1 - forecasts, forecasts])
    classes = ScalingCalibrator(method, space=prudent.Simplex(2)).fit(
        pairs, outcomes.astype(int), sample_weight=weights
    )
    assert classes.guarantee_ == box.guarantee_
    assert classes.slopes_.tolist() == box.slopes_.tolist()
    assert classes.intercepts_.tolist() == box.intercepts_.tolist()
    np.testing.assert_array_equal(classes.transform(pairs)[:, 1], box.transform(forecasts)[:, 0])


@pytest.mark.parametrize("method", ["bias", "platt", "temperature", "shift", "affine"])
def test_a_wider_box_changes_nothing(method: str) -> None:
    forecasts, outcomes, _ = two_values()
    narrow = ScalingCalibrator(method).fit(forecasts, outcomes)
    wide = ScalingCalibrator(method, space=prudent.Box(-50, 700)).fit(forecasts, outcomes)
    np.testing.assert_array_equal(narrow.transform(forecasts), wide.transform(forecasts))


@pytest.mark.parametrize("method", ["bias", "platt", "temperature"])
def test_two_values_need_not_be_zero_and_one(method: str) -> None:
    forecasts, outcomes, _ = two_values()
    plain = ScalingCalibrator(method).fit(forecasts, outcomes)
    priced = ScalingCalibrator(method, space=prudent.Box(0, 100)).fit(20 + 60 * forecasts, 20 + 60 * outcomes)
    np.testing.assert_allclose(priced.transform(20 + 60 * forecasts), 20 + 60 * plain.transform(forecasts), rtol=1e-9)


SPECIMENS = [
    *((method, two_values, None) for method in ("shift", "affine", "bias", "platt", "temperature")),
    *((method, three_classes, CLASSES) for method in ("bias", "temperature", "vector")),
]


@pytest.mark.parametrize(("method", "data", "space"), SPECIMENS)
def test_files_keep_every_bit(method: str, data: object, space: object, tmp_path: Path) -> None:
    forecasts, outcomes, weights = data()
    found = ScalingCalibrator(method, space=space).fit(forecasts, outcomes, sample_weight=weights)
    found.save(tmp_path / "scaling.json")
    again = Recalibrator.load(tmp_path / "scaling.json")
    fresh = data(seed=7)[0]
    assert type(again) is ScalingCalibrator
    assert again.method == method
    assert again.transform(fresh).tobytes() == found.transform(fresh).tobytes()
    assert again.guarantee_ == found.guarantee_


def test_files_that_were_altered_are_refused(tmp_path: Path) -> None:
    forecasts, outcomes, _ = two_values()
    path = tmp_path / "scaling.json"
    ScalingCalibrator("platt").fit(forecasts, outcomes).save(path)
    text = path.read_text()
    for old, new in (('"platt"', '"vector"'), ('"high": [1.0]', '"high": [-1.0]'), ('"high": [1.0]', '"high": [7.0]')):
        assert "".join(old.split()) in "".join(text.split())
        path.write_text("".join(text.split()).replace("".join(old.split()), "".join(new.split())))
        with pytest.raises((FileFormatError, InputError)):
            Recalibrator.load(path)


@pytest.mark.parametrize(("method", "data", "space"), SPECIMENS)
def test_weights_are_repeated_rows(method: str, data: object, space: object) -> None:
    forecasts, outcomes, _ = data(200)
    counts = np.random.default_rng(2).integers(1, 4, 200)
    weighted = ScalingCalibrator(method, space=space).fit(forecasts, outcomes, sample_weight=counts)
    repeated = ScalingCalibrator(method, space=space).fit(
        np.repeat(forecasts, counts, axis=0), np.repeat(outcomes, counts)
    )
    # Platt's penalty counts rows, so there it is the same up to that.
    np.testing.assert_allclose(weighted.transform(forecasts), repeated.transform(forecasts), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("method", ["bias", "platt", "temperature"])
@pytest.mark.parametrize("outcomes", [np.zeros(60), np.ones(60), np.repeat([0.0, 1.0], 30), np.repeat([1.0, 0.0], 30)])
def test_separated_and_equal_outcomes_stay_finite(method: str, outcomes: np.ndarray) -> None:
    forecasts = np.concatenate([np.linspace(0, 0.4, 30), np.linspace(0.6, 1, 30)])
    for space, table in (
        (prudent.Box(0, 1), forecasts),
        (prudent.Simplex(2), np.column_stack([1 - forecasts, forecasts])),
    ):
        found = ScalingCalibrator(method, space=space).fit(
            table, outcomes.astype(int) if space.is_simplex else outcomes
        )
        assert np.isfinite([found.slopes_, found.intercepts_]).all()
        moved = found.transform(table)[:, -1]
        assert np.isfinite(moved).all()
        if method == "platt" and np.ptp(outcomes) > 0:
            assert (np.abs(moved - outcomes) < 0.01).all()


@pytest.mark.parametrize("method", ["bias", "temperature", "vector"])
def test_a_class_that_never_came_stays_finite(method: str) -> None:
    forecasts, labels, _ = three_classes(200)
    for seen in (np.minimum(labels, 1), np.zeros(200, dtype=int)):
        found = ScalingCalibrator(method, space=CLASSES).fit(forecasts, seen)
        moved = found.transform(forecasts)
        assert np.isfinite(moved).all()
        assert moved.sum(axis=1) == pytest.approx(1)
        assert moved.min() >= 0.5 * LEAST
        if method != "temperature":
            assert moved[:, 2].max() < 0.001


def test_forecasts_of_zero_and_one_are_scaled_as_one_in_a_million() -> None:
    forecasts, outcomes, _ = two_values()
    found = ScalingCalibrator("platt").fit(forecasts, outcomes)
    np.testing.assert_array_equal(found.transform([0.0, 1.0]), found.transform([LEAST / 3, 1 - LEAST / 3]))


@pytest.mark.parametrize(
    ("method", "space"),
    [
        ("vector", prudent.Box(0, 1)),
        ("vector", prudent.Simplex(2)),
        ("platt", CLASSES),
        ("shift", CLASSES),
        ("affine", CLASSES),
        ("bias", prudent.Box([0, 0], [1, 1])),
        ("temperature", prudent.Box([0, 0], [1, 1])),
    ],
)
def test_methods_that_do_not_fit_the_space_are_refused(method: str, space: object) -> None:
    forecasts = np.full((20, space.dimension), 1 / space.dimension)
    with pytest.raises(InputError, match=f"method '{method}' does not fit"):
        ScalingCalibrator(method, space=space).fit(forecasts, forecasts)
    with pytest.raises(InputError, match="method must be one of shift, affine"):
        ScalingCalibrator("nothing").fit([0.5] * 20, [1.0] * 20)


def overconfident(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < 0.35 + 0.3 * forecasts).astype(float)


def test_steps_are_means_of_their_rows() -> None:
    forecasts, outcomes = overconfident(1_000)
    weights = np.random.default_rng(3).random(1_000)
    calibrator = prudent.recalibration.IsotonicCalibrator().fit(forecasts, outcomes, sample_weight=weights)
    moved = calibrator.transform(forecasts)[:, 0]
    for level in np.unique(moved):
        rows = moved == level
        assert level == pytest.approx((weights * outcomes)[rows].sum() / weights[rows].sum())


def test_levels_that_differ_by_rounding_are_one() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        calibrator = prudent.recalibration.IsotonicCalibrator().fit(
            rng.random(500), np.full(500, 0.3), sample_weight=rng.random(500)
        )
        assert np.unique(calibrator.levels_[0]).size == 1
        assert calibrator.levels_[0][0] == pytest.approx(0.3)


def test_neighbouring_floats_get_their_own_levels() -> None:
    one, other = 0.5, np.nextafter(0.5, 1)
    calibrator = prudent.recalibration.IsotonicCalibrator().fit(np.repeat([one, other], 50), np.repeat([0.0, 1.0], 50))
    np.testing.assert_array_equal(calibrator.transform([one, other])[:, 0], [0.0, 1.0])


def test_levels_stay_in_the_space(tmp_path: Path) -> None:
    space = prudent.Box(0, 0.7)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        forecasts = 0.7 * rng.random(60)
        calibrator = prudent.recalibration.IsotonicCalibrator(space=space)
        calibrator.fit(forecasts, np.full(60, 0.7), sample_weight=rng.random(60))
        assert calibrator.levels_[0].max() <= 0.7
        moved = calibrator.transform(forecasts)
        calibrator.guarantee_.evaluate(moved, space)
        calibrator.save(tmp_path / "calibrator.json")
        loaded = prudent.recalibration.Recalibrator.load(tmp_path / "calibrator.json")
        np.testing.assert_array_equal(loaded.transform(forecasts), moved)


def test_residuals_speak_of_rows_held_out() -> None:
    rng = np.random.default_rng(5)
    forecasts = rng.random(1_000)
    outcomes = (rng.random(1_000) < forecasts**2).astype(float)
    residuals = prudent.recalibration.IsotonicCalibrator().fit(forecasts, outcomes).residuals_
    assert residuals is not None
    assert np.abs(residuals.estimates).max() > 1e-4  # on the fitting rows all are zero
    assert (residuals.p_values > 1e-3).all()
    assert prudent.recalibration.IsotonicCalibrator().fit(forecasts[:4], outcomes[:4]).residuals_ is None


def test_isotonic_levels_never_fall_far_from_zero() -> None:
    space = prudent.Box(1e6, 1e6 + 5)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        forecasts = 1e6 + 5 * rng.random(300)
        outcomes = 1e6 + 5 * (rng.random(300) < (forecasts - 1e6) / 5)
        calibrator = prudent.recalibration.IsotonicCalibrator(space=space).fit(
            forecasts, outcomes, sample_weight=rng.random(300)
        )
        assert (np.diff(calibrator.levels_[0]) >= 0).all()
