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


Calibrator = prudent.recalibration.OnlineDecisionCalibrator


def step(calibrator: Calibrator, adversary: Callable[[Calibrator], np.ndarray], base: object = None) -> None:
    """Predict the next outcome, then learn the one that an adversary chooses."""
    name = calibrator.n_predictions_
    calibrator.predict([name], base)
    calibrator.update([name], [adversary(calibrator)])


def largest(calibrator: Calibrator) -> float:
    return max(float(np.abs(errors).max()) for errors in calibrator.errors_)


def opposite(calibrator: Calibrator) -> np.ndarray:
    """The outcome furthest from the mean prediction."""
    points, weights = calibrator.distribution_
    mean = weights @ points
    if isinstance(calibrator.space, prudent.Simplex):
        return np.eye(mean.size)[mean.argmin()]
    low, high = calibrator.space.bounds
    return np.where(mean < (low + high) / 2, high, low)


def push(calibrator: Calibrator) -> np.ndarray:
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
def test_sums_grow_like_the_root_of_time(problems: object, adversary: Callable[[Calibrator], np.ndarray]) -> None:
    calibrator = Calibrator(problems, random_state=1)
    low, high = calibrator.space.bounds
    for steps in (100, 400):
        while calibrator.n_steps_ < steps:
            step(calibrator, adversary)
        bound = 2 * np.sqrt(len(calibrator.problems)) * np.linalg.norm(high - low)
        assert largest(calibrator) <= bound * np.sqrt(steps)
    assert calibrator.n_unsolved_ == 0


def in_order(calibrator: Calibrator, outcomes: np.ndarray, base: np.ndarray | None = None) -> np.ndarray:
    """Predict each row before its outcome is known."""
    predictions = []
    for row in range(len(outcomes)):
        predictions.append(calibrator.predict([row], None if base is None else base[[row]])[0])
        calibrator.update([row], outcomes[[row]])
    return np.array(predictions)


def test_sums_are_what_happened() -> None:
    rng = np.random.default_rng(2)
    outcomes = rng.random((200, 1))
    calibrator = Calibrator(COIN)
    predictions = in_order(calibrator, outcomes)
    best = COIN.best_response(predictions)
    expected = [(outcomes - predictions)[best == action].sum() for action in range(2)]
    np.testing.assert_allclose(calibrator.errors_[0][:, 0], expected, atol=1e-12)


def test_a_good_base_forecast_is_kept() -> None:
    rng = np.random.default_rng(3)
    base = rng.random(500)
    outcomes = (rng.random(500) < base).astype(float)
    calibrator = Calibrator(COIN)
    predictions = in_order(calibrator, outcomes, base)
    assert ((predictions[:, 0] - outcomes) ** 2).mean() <= 1.1 * ((base - outcomes) ** 2).mean()


def test_state_resumes(tmp_path: Path) -> None:
    straight = Calibrator(CLASSES, random_state=4)
    for _ in range(60):
        step(straight, opposite)
    straight.predict(["waits"])
    path = tmp_path / "online.json"
    straight.save(path)
    resumed = Calibrator.load(path)
    for calibrator in (straight, resumed):
        calibrator.update(["waits"], [2])
    for name in range(20):
        name = f"later {name}"
        np.testing.assert_array_equal(straight.predict([name]), resumed.predict([name]))
        outcome = [opposite(straight)]
        straight.update([name], outcome)
        resumed.update([name], outcome)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(FileFormatError):
        Calibrator.load(path)


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
    calibrator = Calibrator(COIN)
    predictions = in_order(calibrator, outcomes, base)
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
    calibrator = Calibrator(CLASSES)
    predictions = in_order(calibrator, labels, base)
    for problem in CLASSES:
        gain = mean_utility(problem, predictions, truth) - mean_utility(problem, base, truth)
        assert gain >= -0.005 * problem.utility_range
    assert ((predictions - truth) ** 2).sum() < 0.7 * ((base - truth) ** 2).sum()


@pytest.mark.parametrize("contexts", [False, True], ids=["no base", "random base"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-6), (1e6, 1e6 + 1), (-1e3, 0.0)])
def test_sums_grow_like_the_root_of_time_in_any_units(low: float, high: float, contexts: bool) -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -(low + high)], space=prudent.Box(low, high))
    calibrator = Calibrator(problem)
    rng = np.random.default_rng(0)
    for _ in range(400):
        step(calibrator, opposite, [low + (high - low) * rng.random()] if contexts else None)
    assert np.abs(calibrator.errors_[0]).max() <= 3 * (high - low) * np.sqrt(400)
    assert np.abs(calibrator.base_errors_[0]).max() <= 3 * (high - low) * np.sqrt(400)
    assert calibrator.n_unsolved_ == 0


def test_sums_of_a_narrow_coordinate_do_not_wait_for_a_wide_one() -> None:
    space = prudent.Box([0, 0], [1, 100])
    problem = prudent.DecisionProblem([[1, 0], [-1, 0]], [0, -1], space=space)
    calibrator = Calibrator(problem)
    rng = np.random.default_rng(0)
    for _ in range(500):
        step(calibrator, lambda _: np.array([1.0, 100 * rng.random()]))
    assert np.abs(calibrator.errors_[0] / [1, 100]).max() <= 3 * np.sqrt(500)


def test_events_follow_the_tie_break_of_the_problem() -> None:
    for seed in range(60):
        payoffs = np.array(list(itertools.permutations(np.round(np.random.default_rng(seed).random(3), 2))))
        problem = prudent.DecisionProblem.from_payoffs(payoffs)
        calibrator = Calibrator(problem)
        prediction = calibrator.predict(["a"])
        calibrator.update(["a"], [0])
        counted = int(np.abs(calibrator.errors_[0]).sum(axis=1).argmax())
        assert counted == problem.best_response(prediction)[0]


def test_a_waiting_base_is_in_the_file(tmp_path: Path) -> None:
    straight = Calibrator(COIN)
    in_order(straight, np.array([1.0, 0.0, 1.0]), np.array([0.2, 0.3, 0.9]))
    straight.predict(["a"], [0.8])
    straight.save(tmp_path / "online.json")
    resumed = Calibrator.load(tmp_path / "online.json")
    for calibrator in (straight, resumed):
        calibrator.update(["a"], [0.0])
    np.testing.assert_array_equal(straight.base_errors_[0], resumed.base_errors_[0])
    np.testing.assert_array_equal(straight.predict(["b"], [0.4]), resumed.predict(["b"], [0.4]))


def test_outcomes_come_in_many_forms() -> None:
    pandas = pytest.importorskip("pandas")
    named = prudent.DecisionProblem.from_payoffs(np.eye(3), classes=["a", "b", "c"])
    calibrator = Calibrator(named)
    forms = [["b"], [1], np.array([1]), [[0, 1, 0]], np.array([[0.0, 1, 0]]), pandas.Series(["b"])]
    for number, form in enumerate(forms):
        total = sum(errors.sum(axis=0) for errors in calibrator.errors_)
        prediction = calibrator.predict([number])
        calibrator.update([number], form)
        moved = sum(errors.sum(axis=0) for errors in calibrator.errors_) - total
        np.testing.assert_allclose(moved, np.array([0.0, 1.0, 0.0]) - prediction[0], atol=1e-12)


def content(calibrator: Calibrator, folder: Path) -> str:
    calibrator.save(folder / "state.json")
    return (folder / "state.json").read_text()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda each: each.predict([0.5]), "ids must be strings or whole numbers"),
        (lambda each: each.predict("ab"), "ids must be a list"),
        (lambda each: each.predict(["a", "b"], [0.5]), "forecasts must have one row per id, 2; got 1"),
        (lambda each: each.predict(["new", "b"], [0.5, 2.0]), "forecasts must lie in"),
        (lambda each: each.predict(["new"], ["text"]), "forecasts must be numbers"),
        (lambda each: each.update(["a", "b"], [1.0, 3.0]), "outcomes must lie in"),
        (lambda each: each.update(["a", "b"], [1.0]), "outcomes must have one row per forecast or id, 2; got 1"),
        (lambda each: each.update(["a", "b"], [1.0, None]), "leave these ids out"),
        (lambda each: each.update(["a", "unknown"], None), "outcomes must be one per id, 2; got None"),
    ],
)
def test_what_is_refused_changes_nothing(call: Callable[[Calibrator], object], message: str, tmp_path: Path) -> None:
    calibrator = Calibrator(COIN)
    calibrator.predict(["a", "b", "c"], [0.2, 0.4, 0.9])
    calibrator.update(["b"], [1.0])
    before = content(calibrator, tmp_path)
    with pytest.raises(InputError, match=message):
        call(calibrator)
    assert content(calibrator, tmp_path) == before


def test_bad_calibrators_are_refused() -> None:
    with pytest.raises(InputError, match="random_state must be"):
        Calibrator(COIN, random_state=-1)


def test_every_situation_of_an_id_is_counted() -> None:
    calibrator = Calibrator(COIN)
    predicted = calibrator.predict(["a", "b", "a", "c"], [0.2, 0.4, 0.9, 0.5])
    np.testing.assert_array_equal(predicted[0], predicted[2])
    assert (calibrator.n_predictions_, calibrator.n_waiting_) == (3, 3)
    calibrator.update(["c", "a"], [1.0, 0.0])  # late, in parts, in another order
    np.testing.assert_array_equal(calibrator.predict(["a"], [0.7]), predicted[:1])  # a retry, after its outcome
    sums = [errors.copy() for errors in (*calibrator.errors_, *calibrator.base_errors_)]
    calibrator.update(["a"], [0.0])
    assert calibrator.n_repeated_ == 1
    with pytest.warns(UserWarning, match=r"1 ids came with a second, different outcome.*'a'"):
        calibrator.update(["a"], [1.0])
    names = [f"unknown {number}" for number in range(7)]
    with pytest.warns(UserWarning, match=r"7 ids .* never predicted.*'unknown 4', \.\.\."):
        calibrator.update(names, np.zeros(7))
    assert (calibrator.n_conflicting_, calibrator.n_unknown_) == (1, 7)
    for errors, before in zip((*calibrator.errors_, *calibrator.base_errors_), sums, strict=True):
        np.testing.assert_array_equal(errors, before)
    assert (calibrator.n_predictions_, calibrator.n_steps_, calibrator.n_waiting_) == (3, 2, 1)
    assert str(calibrator) == ("3 predictions, 2 outcomes, 1 awaited; left out: 1 repeated, 1 conflicting, 7 unknown")


def test_batches_do_not_matter() -> None:
    """Rows that are predicted from the same outcomes get the same predictions, in one call or in many."""
    rng = np.random.default_rng(5)
    base = rng.random(60)
    outcomes = (rng.random(60) < 1 - base).astype(float)
    whole, pieces = Calibrator(COIN, random_state=3), Calibrator(COIN, random_state=3)
    for week in np.split(np.arange(60), 6):
        expected = whole.predict(week, base[week])
        found = np.concatenate([pieces.predict([day], base[[day]]) for day in week])
        np.testing.assert_array_equal(found, expected)
        whole.update(week, outcomes[week])
        for day in week:
            pieces.update([day], outcomes[[day]])
    np.testing.assert_array_equal(whole.errors_[0], pieces.errors_[0])


@pytest.mark.parametrize("adversary", [opposite, push])
@pytest.mark.parametrize("delay", [7, *(pytest.param(delay, marks=pytest.mark.slow) for delay in (1, 30))])
def test_sums_grow_like_the_root_of_time_and_delays(delay: int, adversary: Callable[[Calibrator], np.ndarray]) -> None:
    """Outcomes that come late, chosen when their prediction is made."""
    for problems, steps in ((COIN, 900), (CLASSES, 250)):
        calibrator, chosen = Calibrator(problems, random_state=1), {}
        for number in range(steps):
            calibrator.predict([number])
            chosen[number] = adversary(calibrator)
            if number >= delay:
                calibrator.update([number - delay], [chosen[number - delay]])
        assert calibrator.n_waiting_ == delay
        calibrator.update(list(chosen)[-delay:], list(chosen.values())[-delay:])
        assert largest(calibrator) <= 1.2 * np.sqrt(len(calibrator.problems) * (1 + delay) * steps)
        assert calibrator.n_unsolved_ == 0


def test_a_state_with_waiting_rows_goes_on_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    base, outcomes = rng.random(90), rng.integers(0, 2, 90).astype(float)
    straight = Calibrator(COIN, random_state=2)
    straight.predict(range(60), base[:60])
    straight.update(range(10, 40), outcomes[10:40])
    straight.save(tmp_path / "online.json")
    resumed = Calibrator.load(tmp_path / "online.json")
    assert repr(resumed) == repr(straight)
    for calibrator in (straight, resumed):
        calibrator.update([5, *range(40, 60), 12], outcomes[[5, *range(40, 60), 12]])
    np.testing.assert_array_equal(straight.predict(range(90), base), resumed.predict(range(90), base))
    assert content(straight, tmp_path) == content(resumed, tmp_path)
    assert resumed.n_repeated_ == 1
