"""Decision calibration: nobody loses, starts are checked and kept, regions and interrupts are told truly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

import prudent
from prudent import guarantees
from prudent.errors import InputError

CLASSES = [prudent.DecisionProblem.from_payoffs(np.random.default_rng(i).normal(size=(4, 3))) for i in range(5)]


def overconfident(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < 0.35 + 0.3 * forecasts).astype(float)


def overconfident_classes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sharp = np.exp(2.5 * logits) / np.exp(2.5 * logits).sum(axis=1, keepdims=True)
    return sharp, (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 2)


COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


THREE = prudent.DecisionProblem.from_payoffs(np.eye(3))


def class_sample(n: int, classes: int, sharpness: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts, the probabilities that labels are drawn from, and labels."""
    rng = np.random.default_rng(seed)
    logits = 1.2 * rng.normal(size=(n, classes))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sharp = np.exp(sharpness * logits) / np.exp(sharpness * logits).sum(axis=1, keepdims=True)
    labels = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, classes - 1)
    return sharp, truth, labels


def least_change(problems: list[prudent.DecisionProblem], old: Any, new: Any, outcomes: np.ndarray) -> float:
    """The least gain of utility, as a share of its range."""
    each = np.arange(len(outcomes))
    changes = []
    for problem in problems:
        utilities = problem.utility(outcomes)
        gain = utilities[each, problem.best_response(new)] - utilities[each, problem.best_response(old)]
        changes.append(gain.mean() / problem.utility_range)
    return float(min(changes))


@pytest.mark.parametrize("seed", range(4))
def test_nobody_loses_much_on_the_rows_of_the_fit_nor_beyond(seed: int) -> None:
    n = 1_500
    forecasts, _, labels = class_sample(n, 3, 2.5, seed)
    rng = np.random.default_rng(777 + seed)
    problems = [prudent.DecisionProblem.from_payoffs(rng.normal(size=(4, 3))) for _ in range(5)]
    calibrator = prudent.recalibration.DecisionCalibrator(problems, start=None, random_state=seed).fit(
        forecasts, labels
    )
    fitting = np.random.RandomState(seed).permutation(n)[round(n / 4) :]
    old, new = forecasts[fitting], calibrator.transform(forecasts[fitting])
    assert least_change(problems, old, new, labels[fitting]) >= -0.005
    fresh, truth, _ = class_sample(20_000, 3, 2.5, 10_000 + seed)
    assert least_change(problems, fresh, calibrator.transform(fresh), truth) >= -0.005


def test_promises_of_the_original_best_responses_are_kept() -> None:
    """``E r_BR_F . (Y - G)`` is zero up to half a standard error on the fitting rows, and so is that of BR_G."""
    n = 4_000
    forecasts, _, labels = class_sample(n, 3, 2.5, 0)
    problem = prudent.DecisionProblem.from_payoffs(np.random.default_rng(1).normal(size=(4, 3)))
    calibrator = prudent.recalibration.DecisionCalibrator(problem, start=None, random_state=0).fit(forecasts, labels)
    fitting = np.random.RandomState(0).permutation(n)[round(n / 4) :]
    moved, outcomes = calibrator.transform(forecasts[fitting]), np.eye(3)[labels[fitting]]
    for best in (problem.best_response(forecasts[fitting]), problem.best_response(moved)):
        owed = ((outcomes - moved) * problem.rewards[best]).sum(axis=1)
        assert abs(owed.mean()) <= 0.75 * owed.std() / np.sqrt(owed.size)


def test_a_start_stays_fitted_in_clones_and_files(tmp_path: Path) -> None:
    forecasts, outcomes = overconfident(2_000)
    start = prudent.recalibration.IsotonicCalibrator().fit(forecasts[:1_000], outcomes[:1_000])
    plain = prudent.recalibration.DecisionCalibrator(COIN, start=start, random_state=0)
    fitted = clone(plain).fit(forecasts[1_000:], outcomes[1_000:])
    frozen = prudent.recalibration.DecisionCalibrator(COIN, start=FrozenEstimator(start), random_state=0)
    twin = clone(frozen).fit(forecasts[1_000:], outcomes[1_000:])
    moved = fitted.transform(forecasts)
    np.testing.assert_array_equal(twin.transform(forecasts), moved)
    twin.save(tmp_path / "calibrator.json")
    np.testing.assert_array_equal(
        prudent.recalibration.Recalibrator.load(tmp_path / "calibrator.json").transform(forecasts), moved
    )
    start.fit(forecasts, 1 - outcomes)  # fitting it again must not change what was made with it
    np.testing.assert_array_equal(fitted.transform(forecasts), moved)


class Start:
    """Something with a transform, right or wrong."""

    def __init__(self, move: Callable[[np.ndarray], np.ndarray]) -> None:
        self.move = move

    def transform(self, forecasts: np.ndarray) -> np.ndarray:
        return self.move(forecasts)


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (lambda forecasts: forecasts * 3 - 1, "start's forecasts must be rows of"),
        (lambda forecasts: forecasts * np.nan, "start's forecasts must be finite"),
        (lambda forecasts: forecasts.T, "start's forecasts must have"),
        (lambda forecasts: forecasts[:, :2], "start's forecasts must have"),
        (lambda forecasts: forecasts.T.ravel(), "start's forecasts must have"),
    ],
    ids=["outside", "nan", "transposed", "narrow", "flat"],
)
def test_wrong_starts_are_refused(move: Callable[[np.ndarray], np.ndarray], message: str) -> None:
    forecasts, _, labels = class_sample(300, 3, 1.0, 0)
    with pytest.raises(InputError, match=message):
        prudent.recalibration.DecisionCalibrator(THREE, start=Start(move), random_state=0).fit(forecasts, labels)


def test_a_start_for_another_space_is_refused() -> None:
    forecasts, _, labels = class_sample(300, 3, 1.0, 0)
    start = prudent.recalibration.GuaranteeCalibrator("unbiased").fit(forecasts, np.eye(3)[labels])
    with pytest.raises(InputError, match="start must be fitted for the outcome space of the problems"):
        prudent.recalibration.DecisionCalibrator(THREE, start=start, random_state=0).fit(forecasts, labels)


def test_classes_must_have_one_order_whoever_names_them() -> None:
    payoffs = np.eye(2)
    unnamed, named, swapped = (
        prudent.DecisionProblem.from_payoffs(payoffs, classes=classes) for classes in (None, ["a", "b"], ["b", "a"])
    )
    forecasts, labels = np.full((100, 2), 0.5), np.array([0, 1] * 50)
    with pytest.raises(InputError, match="share one outcome space"):
        prudent.recalibration.DecisionCalibrator([unnamed, named, swapped]).fit(forecasts, labels)
    calibrator = prudent.recalibration.DecisionCalibrator([unnamed, named], start=None, random_state=0).fit(
        forecasts, labels
    )
    assert calibrator.space_.classes == ("a", "b")
    with pytest.raises(InputError, match="share one outcome space"):
        prudent.recalibration.OnlineDecisionCalibrator([unnamed, swapped, named])


def test_what_a_fit_reports_is_of_the_patches_it_kept() -> None:
    forecasts, _, labels = class_sample(1_500, 3, 2.5, 1)
    rng = np.random.default_rng(778)
    problems = [prudent.DecisionProblem.from_payoffs(rng.normal(size=(4, 3))) for _ in range(10)]
    calibrator = prudent.recalibration.DecisionCalibrator(problems, start=None, random_state=1).fit(forecasts, labels)
    assert len(calibrator.fitting_errors_) == len(calibrator.patches_) + 1
    fitting = np.random.RandomState(1).permutation(1_500)[375:]
    moved, outcomes = calibrator.transform(forecasts[fitting]), np.eye(3)[labels[fitting]]
    assert ((moved - outcomes) ** 2).sum(axis=1).mean() == pytest.approx(calibrator.fitting_errors_[-1])


def test_a_region_of_one_heavy_row_is_not_patched() -> None:
    n = 20_000
    forecasts = np.r_[0.9, np.full(n - 1, 0.2)]
    outcomes = np.r_[0.0, np.random.default_rng(0).random(n - 1) < 0.2]
    weights = np.r_[60.0, np.ones(n - 1)]
    calibrator = prudent.recalibration.DecisionCalibrator(COIN, start=None, random_state=0)
    calibrator.fit(forecasts, outcomes, sample_weight=weights)
    assert calibrator.transform([0.9])[0, 0] > 0.8


def test_forecasts_that_are_right_are_left_alone() -> None:
    rng = np.random.default_rng(6)
    forecasts = rng.random(1_000)
    outcomes = (rng.random(1_000) < forecasts).astype(float)
    calibrator = prudent.recalibration.DecisionCalibrator(COIN, start=None, random_state=0).fit(forecasts, outcomes)
    assert calibrator.patches_ == []
    np.testing.assert_array_equal(calibrator.transform(forecasts)[:, 0], forecasts)


def test_squared_error_never_rises_and_nobody_loses() -> None:
    forecasts, labels = overconfident_classes(8_000)
    calibrator = prudent.recalibration.DecisionCalibrator(CLASSES, start=None, random_state=0).fit(forecasts, labels)
    errors = np.array(calibrator.fitting_errors_)
    assert (np.diff(errors) < 0).all()
    assert calibrator.squared_error_after_ < calibrator.squared_error_before_
    fresh, outcomes = overconfident_classes(40_000, seed=1)
    moved = calibrator.transform(fresh)
    for problem in CLASSES:
        utilities = problem.utility(outcomes)
        rows = np.arange(40_000)
        gain = utilities[rows, problem.best_response(moved)] - utilities[rows, problem.best_response(fresh)]
        assert gain.mean() >= -3 * gain.std() / 200


def test_the_gap_collapses_for_every_decision_maker() -> None:
    """Before, best responding guarantees less than the optimum; after, the same up to the measured slack."""
    forecasts, labels = overconfident_classes(8_000)
    calibrator = prudent.recalibration.DecisionCalibrator(CLASSES, start=None, random_state=0).fit(forecasts, labels)
    fresh, outcomes = overconfident_classes(3_000, seed=2)
    moved = calibrator.transform(fresh)
    for problem in CLASSES[:3]:
        owed = guarantees.UtilityCalibrated(problem)
        assert prudent.audit(problem, fresh, outcomes, guarantee=owed).rejected
        assert not prudent.audit(problem, moved, outcomes, guarantee=owed).rejected
        short = []
        for rows, promise in ((fresh, guarantees.Unbiased()), (moved, guarantees.DecisionCalibrated(problem))):
            best = prudent.RobustPolicy(problem, promise, slack="audit").fit(rows, outcomes).certificate_
            follow = prudent.PlugInPolicy(problem)
            worst = prudent.worst_case(follow, rows, outcomes, guarantee=promise, slack="audit")
            short.append(best.lower - worst.value)
        assert short[1] < min(short[0] / 2, 0.02 * problem.utility_range)


def test_starting_from_a_baseline() -> None:
    forecasts, outcomes = overconfident(6_000)
    start = prudent.recalibration.IsotonicCalibrator().fit(forecasts[:3_000], outcomes[:3_000])
    calibrator = prudent.recalibration.DecisionCalibrator(COIN, start=start, random_state=0)
    calibrator.fit(forecasts[3_000:], outcomes[3_000:])
    fresh, truth = overconfident(20_000, seed=4)
    moved, base = calibrator.transform(fresh), start.transform(fresh)
    assert ((moved[:, 0] - truth) ** 2).mean() <= ((base[:, 0] - truth) ** 2).mean() * 1.01


def test_regions_with_few_rows_are_left_alone() -> None:
    forecasts, outcomes = overconfident(400)
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.999], actions=["wait", "go"])  # "go" only above 0.999
    calibrator = prudent.recalibration.DecisionCalibrator(problem, start=None, random_state=0).fit(forecasts, outcomes)
    assert not any(patch.shifts[1].any() for patch in calibrator.patches_)


def test_a_class_that_never_occurs() -> None:
    forecasts, labels = overconfident_classes(2_000)
    calibrator = prudent.recalibration.DecisionCalibrator(CLASSES, start=None, random_state=0).fit(
        forecasts, np.minimum(labels, 1)
    )
    moved = calibrator.transform(forecasts)
    assert moved[:, 2].mean() < 0.05
    np.testing.assert_allclose(moved.sum(axis=1), 1.0)


def test_bad_problems_and_rounds_are_refused() -> None:
    forecasts, outcomes = overconfident(2_000)
    with pytest.raises(InputError, match="max_rounds must be"):
        prudent.recalibration.DecisionCalibrator(COIN, max_rounds=0).fit(forecasts, outcomes)
    with pytest.raises(InputError, match="share one outcome space"):
        prudent.recalibration.DecisionCalibrator([COIN, CLASSES[0]]).fit(forecasts, outcomes)
    with pytest.raises(InputError, match="problems must be"):
        prudent.recalibration.DecisionCalibrator([]).fit(forecasts, outcomes)


def test_promises_are_kept_before_regions_are_patched() -> None:
    """Too sure in one direction only: one number per problem is off, and one patch along the rewards mends it."""
    rng = np.random.default_rng(3)
    truth = rng.uniform(0.2, 0.8, size=8_000)
    forecasts = 0.5 + 1.6 * (truth - 0.5)
    outcomes = (rng.random(8_000) < truth).astype(float)
    calibrator = prudent.recalibration.DecisionCalibrator(COIN, start=None, random_state=0).fit(forecasts, outcomes)
    first = calibrator.patches_[0]
    np.testing.assert_allclose(first.shifts / first.shifts[0, 0], COIN.rewards / COIN.rewards[0, 0])
    promise = guarantees.UtilityCalibrated(COIN)
    assert prudent.audit(COIN, forecasts, outcomes, guarantee=promise).rejected
    assert not prudent.audit(COIN, calibrator.transform(forecasts), outcomes, guarantee=promise).rejected


def test_an_overconfident_forecaster_does_not_end_below_temperature_scaling() -> None:
    rng = np.random.default_rng(0)
    n = 30_000
    truth = rng.dirichlet([1.0, 1.0, 1.0], n)
    forecasts = truth**3 / (truth**3).sum(axis=1, keepdims=True)
    labels = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    payoffs = [[1, 0, -1], [-1, 1, 0], [0, -1, 1], [0.3, 0.3, 0.3]]
    problem = prudent.DecisionProblem.from_payoffs(payoffs)
    past, fresh = slice(n // 2), slice(n // 2, None)
    temperature = prudent.recalibration.ScalingCalibrator("temperature", space=problem.space)
    repair = prudent.recalibration.DecisionCalibrator(problem, random_state=0)
    earned = []
    for recalibrator in (temperature, repair):
        moved = recalibrator.fit(forecasts[past], labels[past]).transform(forecasts[fresh])
        earned.append(float((problem.utility(labels[fresh]) * problem.best_mixtures(moved)).sum(axis=1).mean()))
    assert earned[1] >= earned[0] - 0.002
    assert repair.start_.method in ("temperature", "vector")


def test_a_start_that_is_found_needs_no_context() -> None:
    rng = np.random.default_rng(4)
    forecasts, region = rng.random(2_000), rng.choice(["north", "south"], 2_000)
    outcomes = (rng.random(2_000) < np.clip(forecasts + np.where(region == "north", 0.2, -0.2), 0, 1)).astype(float)
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    plain, told = (
        prudent.recalibration.DecisionCalibrator(problem, random_state=0).fit(forecasts, outcomes, context=context)
        for context in (None, {"region": region})
    )
    np.testing.assert_array_equal(told.transform(forecasts), plain.transform(forecasts))


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
