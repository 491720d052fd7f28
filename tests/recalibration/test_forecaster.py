"""A model and its recalibrator as one estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_digits
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import prudent
from prudent.errors import InputError

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
EXCEPTIONS = {"check_regressor_multioutput"}  # its space has one coordinate


def test_classifier_is_repaired_on_rows_it_has_not_seen() -> None:
    digits, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    digits, labels = digits[order], labels[order]
    payoffs = np.vstack([np.eye(10), np.full((1, 10), 0.7)])  # name the digit, or ask somebody
    problem = prudent.DecisionProblem.from_payoffs(payoffs)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)  # sure of itself
    forecaster = prudent.recalibration.CalibratedForecaster(
        tree, prudent.recalibration.DecisionCalibrator(problem, random_state=0)
    )
    forecaster.fit(digits[:1_200], labels[:1_200])
    assert is_classifier(forecaster)
    raw = clone(tree).fit(digits[:1_200], labels[:1_200]).predict_proba(digits[1_200:])
    moved = forecaster.predict_proba(digits[1_200:])
    target = np.eye(10)[labels[1_200:]]
    assert ((moved - target) ** 2).sum() <= ((raw - target) ** 2).sum() * 1.01
    utilities = problem.utility(labels[1_200:])
    rows = np.arange(len(utilities))
    gain = utilities[rows, problem.best_response(moved)] - utilities[rows, problem.best_response(raw)]
    assert gain.mean() >= -2 * gain.std() / np.sqrt(gain.size)
    assert set(forecaster.predict(digits[1_200:])) <= set(range(10))


def test_regressor_with_forecasts_outside() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(800, 1))
    outcomes = np.clip(0.5 + 0.4 * features[:, 0] + 0.1 * rng.normal(size=800), 0, 1)
    refusing = prudent.recalibration.CalibratedForecaster(
        LinearRegression(), prudent.recalibration.GuaranteeCalibrator("unbiased", space=prudent.Box(0, 1))
    )
    with pytest.raises(InputError, match="forecasts must lie in"):
        refusing.fit(features, outcomes)
    clipping = clone(refusing).set_params(outside="clip").fit(features, outcomes)
    assert clipping.n_clipped_ > 0
    assert is_regressor(clipping)
    assert not hasattr(clipping, "predict_proba")
    assert clipping.predict(features).mean() == pytest.approx(outcomes.mean(), abs=0.02)


def test_frozen_models_stay_as_they_are() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(600, 2))
    labels = (features[:, 0] + rng.normal(size=600) > 0).astype(int)
    model = LogisticRegression().fit(features[:300], labels[:300])
    problem = prudent.DecisionProblem.from_payoffs([[1.0, 0.0], [0.0, 1.0]])
    forecaster = prudent.recalibration.CalibratedForecaster(
        FrozenEstimator(model), prudent.recalibration.DecisionCalibrator(problem)
    )
    forecaster.fit(features[300:], labels[300:])
    np.testing.assert_array_equal(forecaster.estimator_.predict_proba(features), model.predict_proba(features))


def test_columns_follow_the_order_of_the_recalibrator_s_classes() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(400, 2))
    labels = np.where(features[:, 0] > 0, "yes", "no")
    payoffs = [[1.0, 0.0], [0.0, 1.0]]
    good = prudent.DecisionProblem.from_payoffs(payoffs, classes=["no", "yes"])
    other = prudent.DecisionProblem.from_payoffs(payoffs[::-1], classes=["yes", "no"])
    one, two = (
        prudent.recalibration.CalibratedForecaster(
            LogisticRegression(), prudent.recalibration.DecisionCalibrator(problem, random_state=0)
        ).fit(features, labels)
        for problem in (good, other)
    )
    assert one.classes_.tolist() == two.classes_.tolist()[::-1] == ["no", "yes"]
    np.testing.assert_allclose(one.predict_proba(features), two.predict_proba(features)[:, ::-1], atol=1e-12)
    np.testing.assert_array_equal(one.predict(features), two.predict(features))
    strangers = prudent.DecisionProblem.from_payoffs(payoffs, classes=["si", "no"])
    with pytest.raises(InputError, match="y must have the 2 classes of the outcome space"):
        clone(one).set_params(recalibrator__problems=strangers).fit(features, labels)


def test_two_classes_may_have_one_coordinate() -> None:
    features, labels = labelled(classes=2)
    isotonic = prudent.recalibration.IsotonicCalibrator(space=prudent.Box(0, 1))
    forecaster = prudent.recalibration.CalibratedForecaster(LogisticRegression(), isotonic).fit(features, labels)
    shares = forecaster.predict_proba(features)
    assert shares.shape == (600, 2)
    assert (np.diff(shares[np.argsort(forecaster.forecast(features)[:, 0]), 1]) >= 0).all()
    assert forecaster.score(features, labels) > 0.6


def test_bad_parameters_are_refused() -> None:
    features, labels = np.zeros((10, 1)), np.array([0, 1] * 5)
    with pytest.raises(InputError, match="recalibrator must be"):
        prudent.recalibration.CalibratedForecaster(LogisticRegression(), LogisticRegression()).fit(features, labels)
    with pytest.raises(InputError, match="outside must be"):
        prudent.recalibration.CalibratedForecaster(
            LogisticRegression(), prudent.recalibration.GuaranteeCalibrator("unbiased"), outside="drop"
        ).fit(features, labels)


def labelled(n: int = 600, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 3))
    score = features[:, 0] + rng.normal(size=n)
    return features, np.digitize(score, np.linspace(-0.5, 0.5, classes - 1))


def problem_of(classes: int) -> prudent.DecisionProblem:
    return prudent.DecisionProblem.from_payoffs(np.eye(classes))


def test_labels_that_a_frozen_model_does_not_know_are_refused() -> None:
    features, labels = labelled()
    for known in ([0, 2], [0, 1]):
        rows = np.isin(labels, known)
        model = FrozenEstimator(LogisticRegression().fit(features[rows], labels[rows]))
        forecaster = prudent.recalibration.CalibratedForecaster(
            model, prudent.recalibration.DecisionCalibrator(problem_of(2), random_state=0)
        )
        with pytest.raises(InputError, match="y must be among the classes"):
            forecaster.fit(features, labels)


def test_labels_in_a_column_are_read_with_the_warning_of_scikit_learn() -> None:
    features, labels = labelled()
    forecaster = prudent.recalibration.CalibratedForecaster(
        LogisticRegression(), prudent.recalibration.DecisionCalibrator(problem_of(3), random_state=0)
    )
    straight = clone(forecaster).fit(features, labels).predict_proba(features)
    with pytest.warns(DataConversionWarning):
        forecaster.fit(features, labels[:, None])
    np.testing.assert_array_equal(forecaster.predict_proba(features), straight)


def test_the_recalibrator_sees_only_rows_that_the_model_has_not() -> None:
    """A nearest neighbour remembers every row: in its own rows it is never wrong, on others half of the time."""
    rng = np.random.default_rng(4)
    features, outcomes = rng.random((2_000, 1)), rng.integers(0, 2, 2_000).astype(float)
    memory = KNeighborsRegressor(n_neighbors=1)
    forecaster = prudent.recalibration.CalibratedForecaster(
        memory, prudent.recalibration.DecisionCalibrator(COIN, random_state=0)
    )
    forecaster.fit(features, outcomes)
    assert (memory.fit(features, outcomes).predict(features) == outcomes).all()
    # In-sample forecasts need no repair, so nothing would be moved.
    moved = forecaster.predict(rng.random((2_000, 1)))
    assert np.abs(moved - 0.5).max() < 0.2


@pytest.mark.parametrize(
    "recalibrator",
    [
        prudent.recalibration.GuaranteeCalibrator("unbiased"),
        prudent.recalibration.GuaranteeCalibrator("bins:5"),
        prudent.recalibration.IsotonicCalibrator(),
    ],
)
def test_clipping_works_without_a_space_of_ones_own(recalibrator: prudent.recalibration.Recalibrator) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(800, 1))
    outcomes = np.clip(0.5 + 0.4 * features[:, 0] + 0.1 * rng.normal(size=800), 0, 1)
    forecaster = prudent.recalibration.CalibratedForecaster(LinearRegression(), recalibrator, outside="clip")
    assert forecaster.fit(features, outcomes).n_clipped_ > 0
    assert forecaster.predict(features).max() <= 1


def test_class_probabilities_sum_to_one_without_a_space_of_ones_own() -> None:
    features, labels = labelled()
    forecaster = prudent.recalibration.CalibratedForecaster(
        LogisticRegression(C=100), prudent.recalibration.GuaranteeCalibrator("unbiased"), cv=3
    )
    forecaster.fit(features, labels)
    np.testing.assert_allclose(forecaster.predict_proba(features * 8).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        (LogisticRegression(), True),
        (make_pipeline(StandardScaler(), LogisticRegression()), True),
        (KNeighborsClassifier(), False),
    ],
    ids=["model", "pipeline", "neighbours"],
)
def test_weights_go_where_they_are_taken(model: Any, takes: bool) -> None:
    features, labels = labelled()
    weights = np.where(labels == 0, 5.0, 0.2)
    recalibrator = prudent.recalibration.GuaranteeCalibrator("unbiased", space=prudent.Simplex(3))
    forecaster = prudent.recalibration.CalibratedForecaster(model, recalibrator, cv=3)
    forecaster.fit(features, labels, sample_weight=weights)
    mean = np.average(forecaster.predict_proba(features), axis=0, weights=weights)
    np.testing.assert_allclose(mean, np.bincount(labels, weights=weights) / weights.sum(), atol=0.05)
    plain = clone(model).fit(features, labels).predict_proba(features)
    assert (np.abs(forecaster.estimator_.predict_proba(features) - plain).max() > 0.05) == takes


def test_searches_and_scores() -> None:
    features, labels = labelled()
    recalibrator = prudent.recalibration.DecisionCalibrator(problem_of(3), random_state=0)
    forecaster = prudent.recalibration.CalibratedForecaster(LogisticRegression(), recalibrator, cv=3)
    search = GridSearchCV(forecaster, {"estimator__C": [1e-4, 1.0]}, cv=3).fit(features, labels)
    best = search.best_estimator_
    assert best.score(features, labels) == (best.predict(features) == labels).mean()
    assert best.n_features_in_ == 3
    outcomes = np.clip(0.5 + 0.1 * features[:, 0], 0, 1)
    regressor = prudent.recalibration.CalibratedForecaster(
        LinearRegression(), prudent.recalibration.GuaranteeCalibrator("unbiased"), outside="clip"
    )
    assert regressor.fit(features, outcomes).score(features, outcomes) > 0.95


def test_a_started_recalibrator_works_in_a_forecaster() -> None:
    features, labels = labelled(900)
    raw = LogisticRegression().fit(features[:300], labels[:300]).predict_proba(features[:300])
    start = prudent.recalibration.GuaranteeCalibrator("unbiased", space=prudent.Simplex(3)).fit(raw, labels[:300])
    recalibrator = prudent.recalibration.DecisionCalibrator(problem_of(3), start=start, random_state=0)
    forecaster = prudent.recalibration.CalibratedForecaster(LogisticRegression(), recalibrator).fit(
        features[300:], labels[300:]
    )
    assert forecaster.recalibrator_.start_ is not start
    np.testing.assert_allclose(forecaster.predict_proba(features).sum(axis=1), 1.0)


@pytest.mark.parametrize("model", [LogisticRegression(), LinearRegression()], ids=["classifier", "regressor"])
def test_scikit_learn_checks(model: Any) -> None:
    space = None if is_classifier(model) else prudent.Box(-1e6, 1e6)
    forecaster = prudent.recalibration.CalibratedForecaster(
        model, prudent.recalibration.GuaranteeCalibrator("unbiased", space=space), cv=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # several checks warn about their own data
        results = check_estimator(forecaster, on_fail=None, on_skip=None)
    failed = {
        result["check_name"]: str(result["exception"])[:200] for result in results if result["status"] == "failed"
    }
    assert set(failed) <= EXCEPTIONS, failed
