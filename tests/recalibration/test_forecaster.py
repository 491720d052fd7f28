"""A model and its recalibrator as one estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import prudent
from prudent import InputError

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


def test_classifier_is_repaired_on_rows_it_has_not_seen() -> None:
    digits, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    digits, labels = digits[order], labels[order]
    payoffs = np.vstack([np.eye(10), np.full((1, 10), 0.7)])  # name the digit, or ask somebody
    problem = prudent.DecisionProblem.from_payoffs(payoffs)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)  # sure of itself
    forecaster = prudent.CalibratedForecaster(tree, prudent.DecisionCalibrator(problem, random_state=0))
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
    refusing = prudent.CalibratedForecaster(LinearRegression(), prudent.MeanCalibrator(space=prudent.Box(0, 1)))
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
    forecaster = prudent.CalibratedForecaster(FrozenEstimator(model), prudent.DecisionCalibrator(problem))
    forecaster.fit(features[300:], labels[300:])
    np.testing.assert_array_equal(forecaster.estimator_.predict_proba(features), model.predict_proba(features))


def test_classes_in_another_order_are_refused() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(400, 2))
    labels = np.where(features[:, 0] > 0, "yes", "no")
    payoffs = [[1.0, 0.0], [0.0, 1.0]]
    good = prudent.DecisionProblem.from_payoffs(payoffs, classes=["no", "yes"])
    prudent.CalibratedForecaster(LogisticRegression(), prudent.DecisionCalibrator(good)).fit(features, labels)
    bad = prudent.DecisionProblem.from_payoffs(payoffs, classes=["yes", "no"])
    with pytest.raises(InputError, match="in the model's order"):
        prudent.CalibratedForecaster(LogisticRegression(), prudent.DecisionCalibrator(bad)).fit(features, labels)


def test_bad_parameters_are_refused() -> None:
    features, labels = np.zeros((10, 1)), np.array([0, 1] * 5)
    with pytest.raises(InputError, match="recalibrator must be"):
        prudent.CalibratedForecaster(LogisticRegression(), LogisticRegression()).fit(features, labels)
    with pytest.raises(InputError, match="outside must be"):
        prudent.CalibratedForecaster(LogisticRegression(), prudent.MeanCalibrator(), outside="drop").fit(
            features, labels
        )
