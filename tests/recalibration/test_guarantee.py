"""Recalibration to a guarantee: its moments vanish where they can, and what is left is told."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import prudent
from prudent import guarantees
from prudent.errors import InputError


def overconfident(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < 0.35 + 0.3 * forecasts).astype(float)


def test_guarantee_calibrator_reaches_zero_moments() -> None:
    forecasts, outcomes = overconfident(2_000)
    calibrator = prudent.recalibration.GuaranteeCalibrator(guarantees.SelfOrthogonal(intercept=True)).fit(
        forecasts, outcomes
    )
    assert calibrator.converged_
    moved = calibrator.transform(forecasts)
    moments = [((outcomes - moved[:, 0]) * test).mean() for test in (np.ones(2_000), moved[:, 0])]
    assert np.abs(moments).max() < 1e-8
    assert calibrator.residuals_ is not None
    assert 1e-6 < np.abs(calibrator.residuals_.estimates).max() < 0.05  # on rows held out it is not exactly zero
    assert calibrator.squared_error_after_ < calibrator.squared_error_before_
    with pytest.raises(InputError, match="finite one"):
        prudent.recalibration.GuaranteeCalibrator(guarantees.FullyCalibrated()).fit(forecasts, outcomes)
    functions = prudent.recalibration.GuaranteeCalibrator(guarantees.FromFunctions([lambda v: v[:, 0] ** 2]))
    with pytest.raises(InputError, match="Python functions"):
        functions.fit(forecasts, outcomes).save("calibrator.json")


def test_the_mean_is_met_although_most_forecasts_are_at_a_bound() -> None:
    forecasts = np.r_[np.zeros(980), np.full(20, 0.9)]
    outcomes = np.r_[np.zeros(980), np.tile([0.0, 1.0], 10)]
    calibrator = prudent.recalibration.GuaranteeCalibrator("unbiased").fit(forecasts, outcomes)
    assert calibrator.converged_
    assert calibrator.transform(forecasts).mean() == pytest.approx(outcomes.mean(), abs=1e-9)
    rng = np.random.default_rng(0)
    for space in (prudent.Simplex(4), prudent.Box(0, 1).with_dimension(4)):
        classes = np.eye(4)[rng.choice(4, 500, p=[0.7, 0.1, 0.1, 0.1])]
        corners = np.where(
            rng.random((500, 1)) < 0.6, np.eye(4)[rng.integers(0, 4, 500)], rng.dirichlet(np.ones(4), 500)
        )
        calibrator = prudent.recalibration.GuaranteeCalibrator("unbiased", space=space).fit(corners, classes)
        np.testing.assert_allclose(calibrator.transform(corners).mean(axis=0), classes.mean(axis=0), atol=1e-8)
        assert calibrator.squared_error_after_ <= calibrator.squared_error_before_


def test_moments_that_are_left_are_warned_of() -> None:
    forecasts, outcomes = overconfident(500)
    calibrator = prudent.recalibration.GuaranteeCalibrator(guarantees.Polynomial(3), max_rounds=1)
    with pytest.warns(ConvergenceWarning, match="is left on the fitting rows"):
        calibrator.fit(forecasts, outcomes)
    assert not calibrator.converged_


def test_few_rows_have_no_residuals() -> None:
    assert prudent.recalibration.GuaranteeCalibrator("unbiased").fit([0.2], [1.0]).residuals_ is None


def test_class_labels_without_a_space_are_told_what_to_pass() -> None:
    with pytest.raises(InputError, match=r"space=problem\.space"):
        prudent.recalibration.GuaranteeCalibrator("unbiased").fit([[0.2, 0.8], [0.5, 0.5]], ["a", "b"])
