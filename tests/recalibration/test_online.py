"""Online decision calibration against outcomes chosen to hurt, next to a base forecast, in any units."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent.errors import FileFormatError, InputError

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


CLASSES = [prudent.DecisionProblem.from_payoffs(np.random.default_rng(i).normal(size=(5, 5))) for i in range(4)]


BOX = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]], [0.0, 0.1, 0.0], space=prudent.Box([0, 0], [2, 4]))


def largest(calibrator: prudent.recalibration.OnlineDecisionCalibrator) -> float:
    return max(float(np.abs(errors).max()) for errors in calibrator.errors_)


def opposite(calibrator: prudent.recalibration.OnlineDecisionCalibrator) -> np.ndarray:
    """The outcome furthest from the mean prediction."""
    points, weights = calibrator.distribution_
    mean = weights @ points
    if isinstance(calibrator.space, prudent.Simplex):
        return np.eye(mean.size)[mean.argmin()]
    low, high = calibrator.space.bounds
    return np.where(mean < (low + high) / 2, high, low)


def push(calibrator: prudent.recalibration.OnlineDecisionCalibrator) -> np.ndarray:
    """The outcome that makes the largest sum larger still."""
    errors = max(calibrator.errors_, key=lambda table: float(np.abs(table).max()))
    action, coordinate = np.unravel_index(np.abs(errors).argmax(), errors.shape)
    up = errors[action, coordinate] >= 0
    if isinstance(calibrator.space, prudent.Simplex):
        return np.eye(errors.shape[1])[coordinate if up else (coordinate + 1) % errors.shape[1]]
    low, high = calibrator.space.bounds
    return high if up else low


@pytest.mark.parametrize("adversary", [opposite, push])
@pytest.mark.parametrize("problems", [COIN, CLASSES, BOX], ids=["coin", "classes", "box"])
def test_sums_grow_like_the_root_of_time(
    problems: object, adversary: Callable[[prudent.recalibration.OnlineDecisionCalibrator], np.ndarray]
) -> None:
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(problems, random_state=1)
    low, high = calibrator.space.bounds
    for steps in (100, 400):
        while calibrator.n_steps_ < steps:
            calibrator.predict_one()
            calibrator.update(adversary(calibrator))
        bound = 2 * np.sqrt(len(calibrator.problems)) * np.linalg.norm(high - low)
        assert largest(calibrator) <= bound * np.sqrt(steps)
    assert calibrator.n_unsolved_ == 0


def test_sums_are_what_happened() -> None:
    rng = np.random.default_rng(2)
    outcomes = rng.random((200, 1))
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    predictions = calibrator.predict_and_update(outcomes)
    best = COIN.best_response(predictions)
    expected = [(outcomes - predictions)[best == action].sum() for action in range(2)]
    np.testing.assert_allclose(calibrator.errors_[0][:, 0], expected, atol=1e-12)


def test_a_good_base_forecast_is_kept() -> None:
    rng = np.random.default_rng(3)
    base = rng.random(500)
    outcomes = (rng.random(500) < base).astype(float)
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    predictions = calibrator.predict_and_update(outcomes, base)
    assert ((predictions[:, 0] - outcomes) ** 2).mean() <= 1.1 * ((base - outcomes) ** 2).mean()


def test_state_resumes(tmp_path: Path) -> None:
    straight = prudent.recalibration.OnlineDecisionCalibrator(CLASSES, random_state=4)
    for _ in range(60):
        straight.predict_one()
        straight.update(opposite(straight))
    straight.predict_one()
    path = tmp_path / "online.json"
    straight.save(path)
    resumed = prudent.recalibration.OnlineDecisionCalibrator.load(path)
    for calibrator in (straight, resumed):
        calibrator.update(2)
    for _ in range(20):
        np.testing.assert_array_equal(straight.predict_one(), resumed.predict_one())
        outcome = opposite(straight)
        straight.update(outcome)
        resumed.update(outcome)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(FileFormatError):
        prudent.recalibration.OnlineDecisionCalibrator.load(path)


def test_order_of_calls_and_bad_input() -> None:
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    with pytest.raises(InputError, match="predict_one must be called before update"):
        calibrator.update(1.0)
    calibrator.predict_one()
    with pytest.raises(InputError, match="update must be called"):
        calibrator.predict_one()
    with pytest.raises(InputError, match="outcome must lie in"):
        calibrator.update(3.0)
    calibrator.update(1.0)
    with pytest.raises(InputError, match="context_forecast must lie in"):
        calibrator.predict_one(2.0)
    with pytest.raises(InputError, match="one row per forecast"):
        calibrator.predict_and_update([0.0, 1.0], [0.5])
    with pytest.raises(InputError, match="random_state must be"):
        prudent.recalibration.OnlineDecisionCalibrator(COIN, random_state=-1)


STEPS = 1_200


def mean_utility(problem: prudent.DecisionProblem, predictions: np.ndarray, truth: np.ndarray) -> float:
    """Expected utility of best responding, by the probabilities that outcomes were drawn from."""
    utilities = problem.utility(truth)
    return float(utilities[np.arange(len(truth)), problem.best_response(predictions)].mean())


@pytest.mark.parametrize(
    "distort",
    [lambda q: q, lambda q: q - 0.1, lambda q: q - 0.25, lambda q: 0.5 + 2 * (q - 0.5), lambda q: 1 - q],
    ids=["right", "biased", "more biased", "too sure", "inverted"],
)
def test_best_responding_earns_at_least_what_the_base_earns(distort: Callable[[np.ndarray], np.ndarray]) -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(STEPS)
    base = np.clip(distort(truth), 0, 1)
    outcomes = (rng.random(STEPS) < truth).astype(float)
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    predictions = calibrator.predict_and_update(outcomes, base)
    assert mean_utility(COIN, predictions, truth) >= mean_utility(COIN, base, truth) - 0.5 / np.sqrt(STEPS)
    off = ((base - truth) ** 2).mean()
    assert ((predictions[:, 0] - truth) ** 2).mean() <= max(0.5 * off, 0.005)
    for errors in (*calibrator.errors_, *calibrator.base_errors_):
        assert np.abs(errors).max() <= 2 * np.sqrt(STEPS)


def test_no_decision_maker_loses_by_a_base_with_too_sure_classes() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(STEPS, 5))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    base = np.exp(2.5 * logits + np.array([0.5, 0, 0, 0, -0.5]))
    base /= base.sum(axis=1, keepdims=True)
    labels = (rng.random((STEPS, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 4)
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(CLASSES)
    predictions = calibrator.predict_and_update(labels, base)
    for problem in CLASSES:
        gain = mean_utility(problem, predictions, truth) - mean_utility(problem, base, truth)
        assert gain >= -0.005 * problem.utility_range
    assert ((predictions - truth) ** 2).sum() < 0.7 * ((base - truth) ** 2).sum()


@pytest.mark.parametrize("contexts", [False, True], ids=["no base", "random base"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-6), (1e6, 1e6 + 1), (-1e3, 0.0)])
def test_sums_grow_like_the_root_of_time_in_any_units(low: float, high: float, contexts: bool) -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -(low + high)], space=prudent.Box(low, high))
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(problem)
    rng = np.random.default_rng(0)
    for _ in range(400):
        calibrator.predict_one(low + (high - low) * rng.random() if contexts else None)
        calibrator.update(opposite(calibrator))
    assert np.abs(calibrator.errors_[0]).max() <= 3 * (high - low) * np.sqrt(400)
    assert np.abs(calibrator.base_errors_[0]).max() <= 3 * (high - low) * np.sqrt(400)
    assert calibrator.n_unsolved_ == 0


def test_sums_of_a_narrow_coordinate_do_not_wait_for_a_wide_one() -> None:
    space = prudent.Box([0, 0], [1, 100])
    problem = prudent.DecisionProblem([[1, 0], [-1, 0]], [0, -1], space=space)
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(problem)
    rng = np.random.default_rng(0)
    for _ in range(500):
        calibrator.predict_one()
        calibrator.update(np.array([1.0, 100 * rng.random()]))
    assert np.abs(calibrator.errors_[0] / [1, 100]).max() <= 3 * np.sqrt(500)


def test_events_follow_the_tie_break_of_the_problem() -> None:
    for seed in range(60):
        payoffs = np.array(list(itertools.permutations(np.round(np.random.default_rng(seed).random(3), 2))))
        problem = prudent.DecisionProblem.from_payoffs(payoffs)
        calibrator = prudent.recalibration.OnlineDecisionCalibrator(problem)
        prediction = calibrator.predict_one()
        calibrator.update(0)
        counted = int(np.abs(calibrator.errors_[0]).sum(axis=1).argmax())
        assert counted == problem.best_response(prediction[None])[0]


def test_a_waiting_base_is_in_the_file(tmp_path: Path) -> None:
    straight = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    straight.predict_and_update([1.0, 0.0, 1.0], [0.2, 0.3, 0.9])
    straight.predict_one(0.8)
    straight.save(tmp_path / "online.json")
    resumed = prudent.recalibration.OnlineDecisionCalibrator.load(tmp_path / "online.json")
    for calibrator in (straight, resumed):
        calibrator.update(0.0)
    np.testing.assert_array_equal(straight.base_errors_[0], resumed.base_errors_[0])
    np.testing.assert_array_equal(straight.predict_one(0.4), resumed.predict_one(0.4))


def test_outcomes_come_in_many_forms_and_wrong_ones_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    named = prudent.DecisionProblem.from_payoffs(np.eye(3), classes=["a", "b", "c"])
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(named)
    forms = ["b", 1, np.array(1), np.int64(1), [0, 1, 0], np.array([0.0, 1, 0]), pandas.Series([0, 1, 0])]
    for form in forms:
        total = sum(errors.sum(axis=0) for errors in calibrator.errors_)
        prediction = calibrator.predict_one()
        calibrator.update(form)
        moved = sum(errors.sum(axis=0) for errors in calibrator.errors_) - total
        np.testing.assert_allclose(moved, np.array([0.0, 1.0, 0.0]) - prediction, atol=1e-12)
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(COIN)
    for wrong in ("a", np.nan, [0.2, 0.3]):
        with pytest.raises(InputError, match="context_forecast must"):
            calibrator.predict_one(wrong)
    calibrator.predict_one()
    calibrator.update(np.array(1.0))
