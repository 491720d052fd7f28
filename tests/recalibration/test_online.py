"""Online decision calibration against outcomes chosen to hurt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent import FileFormatError, InputError

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
CLASSES = [prudent.DecisionProblem.from_payoffs(np.random.default_rng(i).normal(size=(5, 5))) for i in range(4)]
BOX = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]], [0.0, 0.1, 0.0], space=prudent.Box([0, 0], [2, 4]))


def largest(calibrator: prudent.OnlineDecisionCalibrator) -> float:
    return max(float(np.abs(errors).max()) for errors in calibrator.errors_)


def opposite(calibrator: prudent.OnlineDecisionCalibrator) -> np.ndarray:
    """The outcome furthest from the mean prediction."""
    points, weights = calibrator.distribution_
    mean = weights @ points
    if isinstance(calibrator.space, prudent.Simplex):
        return np.eye(mean.size)[mean.argmin()]
    low, high = calibrator.space.bounds
    return np.where(mean < (low + high) / 2, high, low)


def push(calibrator: prudent.OnlineDecisionCalibrator) -> np.ndarray:
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
    problems: object, adversary: Callable[[prudent.OnlineDecisionCalibrator], np.ndarray]
) -> None:
    calibrator = prudent.OnlineDecisionCalibrator(problems, random_state=1)
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
    calibrator = prudent.OnlineDecisionCalibrator(COIN)
    predictions = calibrator.predict_and_update(outcomes)
    best = COIN.best_response(predictions)
    expected = [(outcomes - predictions)[best == action].sum() for action in range(2)]
    np.testing.assert_allclose(calibrator.errors_[0][:, 0], expected, atol=1e-12)


def test_a_good_base_forecast_is_kept() -> None:
    rng = np.random.default_rng(3)
    base = rng.random(500)
    outcomes = (rng.random(500) < base).astype(float)
    calibrator = prudent.OnlineDecisionCalibrator(COIN)
    predictions = calibrator.predict_and_update(outcomes, base)
    assert ((predictions[:, 0] - outcomes) ** 2).mean() <= 1.1 * ((base - outcomes) ** 2).mean()


def test_state_resumes(tmp_path: Path) -> None:
    straight = prudent.OnlineDecisionCalibrator(CLASSES, random_state=4)
    for _ in range(60):
        straight.predict_one()
        straight.update(opposite(straight))
    straight.predict_one()
    path = tmp_path / "online.json"
    straight.save(path)
    resumed = prudent.OnlineDecisionCalibrator.load(path)
    for calibrator in (straight, resumed):
        calibrator.update(2)
    for _ in range(20):
        np.testing.assert_array_equal(straight.predict_one(), resumed.predict_one())
        outcome = opposite(straight)
        straight.update(outcome)
        resumed.update(outcome)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(FileFormatError):
        prudent.OnlineDecisionCalibrator.load(path)


def test_order_of_calls_and_bad_input() -> None:
    calibrator = prudent.OnlineDecisionCalibrator(COIN)
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
    with pytest.raises(InputError, match="one row per outcome"):
        calibrator.predict_and_update([0.0, 1.0], [0.5])
    with pytest.raises(InputError, match="random_state must be"):
        prudent.OnlineDecisionCalibrator(COIN, random_state=-1)
