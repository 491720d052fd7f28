"""Isotonic regression at the edges of arithmetic: equal values, equal levels, neighbouring floats, bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import prudent


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
