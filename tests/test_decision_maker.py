"""Features in, actions out."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import prudent
from prudent import RobustDecisionMaker, guarantees
from prudent.errors import InputError

COIN = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1], [0.6, 0.6]], actions=["no", "yes", "ask"])
CLINIC = prudent.DecisionProblem(
    [0, 1, 2], [0, 130, 310], actions=["letter", "coach", "clinic"], space=prudent.Box(0, 400)
)


def patients() -> tuple[Any, Any]:
    return load_diabetes(return_X_y=True)


def tumours() -> tuple[Any, Any]:
    features, labels = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(features), labels


def test_actions_certificate_and_score_belong_together() -> None:
    features, labels = tumours()
    maker = RobustDecisionMaker(LogisticRegression(), COIN).fit(features, labels)
    assert set(maker.predict(features)) <= set(COIN.actions)
    mixtures = maker.decide_proba(features)
    np.testing.assert_allclose(mixtures.sum(axis=1), 1)
    realised = (COIN.utility(labels) * mixtures).sum(axis=1).mean()
    assert maker.score(features, labels) == pytest.approx(realised)
    # Everything is that of the advice on the cross-fitted forecasts.
    again = prudent.advise(COIN, maker.forecasts_, labels)
    assert str(again) == str(maker.advice_)
    assert again.to_dict() == maker.advice_.to_dict()
    assert again.certificate.to_dict() == maker.certificate_.to_dict()
    np.testing.assert_array_equal(again.policy.predict_proba(maker.forecast(features)), mixtures)
    np.testing.assert_array_equal(
        maker.predict(features, keys=range(len(labels))), maker.predict(features, range(len(labels)))
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_memorises_leaks_nothing(seed: int) -> None:
    """A tree that has seen a row knows its label; labels are coin flips, so an honest forecast knows nothing."""
    rng = np.random.default_rng(seed)
    features, labels = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    tree = DecisionTreeClassifier(random_state=0)
    maker = RobustDecisionMaker(tree, COIN).fit(features, labels)
    assert tree.fit(features, labels).score(features, labels) == 1.0
    hits = (maker.forecasts_.argmax(axis=1) == labels).mean()
    assert 0.4 < hits < 0.6
    assert maker.advice_.promise.realised < 0.6  # asking somebody is all one can do
    # What a leak would have promised: best responding to a model that has seen the rows.
    leaky = RobustDecisionMaker(FrozenEstimator(tree), COIN).fit(features, labels)
    assert leaky.certificate_.lower > 0.9


def test_every_row_is_forecast_by_a_model_without_it() -> None:
    """With one neighbour, a row that took part in the fit would be its own neighbour."""
    features, target = patients()
    maker = RobustDecisionMaker(KNeighborsRegressor(1), CLINIC, cv=KFold(4)).fit(features, target)
    expected = np.empty(len(target))
    for train, test in KFold(4).split(features):
        expected[test] = KNeighborsRegressor(1).fit(features[train], target[train]).predict(features[test])
    np.testing.assert_array_equal(maker.forecasts_[:, 0], expected)
    np.testing.assert_array_equal(maker.forecast(features)[:, 0], target)  # the model for new rows has seen all


def test_the_recalibrator_sees_no_row_of_its_own_fold() -> None:
    """A histogram with a bin per forecast memorises outcomes; across folds it cannot."""
    rng = np.random.default_rng(0)
    features, target = rng.random((300, 1)), rng.integers(0, 2, 300).astype(float)
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    frozen = FrozenEstimator(LinearRegression().fit(features, features[:, 0]))
    memory = prudent.recalibration.GuaranteeCalibrator("bins:300")
    maker = RobustDecisionMaker(frozen, problem, recalibrator=memory).fit(features, target)
    in_sample = clone(memory).fit(features[:, 0], target).transform(features[:, 0])[:, 0]
    assert np.corrcoef(in_sample, target)[0, 1] > 0.8
    assert abs(np.corrcoef(maker.forecasts_[:, 0], target)[0, 1]) < 0.2


def test_classes_come_in_the_problem_s_order() -> None:
    features, labels = tumours()
    names = np.array(["malignant", "benign"])[labels]
    payoffs = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]
    in_order = prudent.DecisionProblem.from_payoffs(payoffs, actions=["b", "m", "ask"], classes=["benign", "malignant"])
    reversed_ = prudent.DecisionProblem.from_payoffs(
        [[0.0, 1.0], [1.0, 0.0], [0.6, 0.6]], actions=["b", "m", "ask"], classes=["malignant", "benign"]
    )
    one, other = (RobustDecisionMaker(GaussianNB(), problem).fit(features, names) for problem in (in_order, reversed_))
    np.testing.assert_allclose(one.decide_proba(features), other.decide_proba(features), atol=1e-6)
    assert one.score(features, names) == pytest.approx(other.score(features, names), abs=1e-6)
    with pytest.raises(InputError, match="y must have the 2 classes of the outcome space"):
        RobustDecisionMaker(GaussianNB(), in_order).fit(features, labels)


def test_two_classes_on_one_coordinate() -> None:
    features, labels = tumours()
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "treat"])
    maker = RobustDecisionMaker(LogisticRegression(), problem).fit(features, labels)
    np.testing.assert_allclose(maker.forecast(features)[:, 0], maker.estimator_.predict_proba(features)[:, 1])
    assert maker.score(features, labels) > 0
    with pytest.raises(InputError, match="needs a problem on the Simplex"):
        RobustDecisionMaker(LogisticRegression(), problem).fit(features, np.arange(len(labels)) % 3)


def test_works_with_scikit_learn_s_tools() -> None:
    features, target = patients()
    maker = RobustDecisionMaker(Ridge(), CLINIC)
    assert np.isfinite(cross_val_score(maker, features, target, cv=3)).all()
    policies = [None, prudent.PlugInPolicy(CLINIC), prudent.RobustPolicy(CLINIC, "unbiased", slack="audit")]
    search = GridSearchCV(maker, {"estimator__alpha": [0.1, 10.0], "policy": policies}, cv=2)
    search.fit(features[:200], target[:200])
    assert np.isfinite(search.best_score_)
    pipeline = make_pipeline(StandardScaler(), maker).fit(features, target)
    assert pipeline.score(features, target) == pytest.approx(
        maker.fit(features, target).score(features, target), rel=0.1
    )
    twin = pickle.loads(pickle.dumps(maker))
    np.testing.assert_array_equal(twin.decide_proba(features), maker.decide_proba(features))


def test_frames_keep_their_names() -> None:
    features, target = load_diabetes(return_X_y=True, as_frame=True)
    maker = RobustDecisionMaker(LinearRegression(), CLINIC).fit(features, target)
    assert list(maker.feature_names_in_) == list(features.columns)
    assert maker.n_features_in_ == 10
    with pytest.raises(ValueError, match="feature names"):
        maker.predict(features.rename(columns={"age": "years"}))


def test_weights_of_rows_are_rows_that_repeat() -> None:
    """With a frozen model there is nothing random: weight two is the row twice."""
    features, target = patients()
    model = FrozenEstimator(LinearRegression().fit(features[:200], target[:200]))
    features, target = features[200:], target[200:]
    weights = np.arange(len(target)) % 3
    rows = np.repeat(np.arange(len(target)), weights)
    robust = prudent.RobustPolicy(CLINIC, guarantees.SelfOrthogonal(), slack=5.0)
    maker = RobustDecisionMaker(model, CLINIC, policy=robust)
    weighted = clone(maker).fit(features, target, sample_weight=weights)
    repeated = clone(maker).fit(features[rows], target[rows])
    assert weighted.certificate_.lower == pytest.approx(repeated.certificate_.lower, abs=1e-6 * 800)
    assert weighted.score(features, target, sample_weight=weights) == pytest.approx(
        repeated.score(features[rows], target[rows]), abs=1e-5 * 800
    )


def test_weights_and_groups_reach_estimator_splitter_and_policy() -> None:
    features, labels = make_classification(n_samples=300, random_state=0)
    groups, weights = np.arange(300) % 10, np.random.default_rng(0).uniform(0.5, 2, 300)
    robust = prudent.RobustPolicy(COIN, guarantees.Unbiased(), slack="audit")
    maker = RobustDecisionMaker(LogisticRegression(), COIN, policy=robust, cv=GroupKFold(5))
    maker.fit(features, labels, sample_weight=weights, groups=groups)
    expected = np.empty((300, 2))
    for train, test in GroupKFold(5).split(features, labels, groups):
        model = LogisticRegression().fit(features[train], labels[train], sample_weight=weights[train])
        expected[test] = model.predict_proba(features[test])
    np.testing.assert_allclose(maker.forecasts_, expected)
    assert maker.certificate_.lower == pytest.approx(
        prudent.RobustPolicy(COIN, guarantees.Unbiased(), slack="audit")
        .fit(expected, labels, sample_weight=weights)
        .certificate_.lower,
        abs=1e-9,
    )
    with pytest.raises(InputError, match="groups"):
        maker.fit(features, labels)


def costs_per_row(n: int) -> Any:
    stakes = np.random.default_rng(1).uniform(0.1, 0.9, n)
    return np.column_stack([np.zeros(n), stakes])


def test_costs_of_their_own() -> None:
    features, labels = (part[:240] for part in tumours())
    problem = prudent.DecisionProblem([0.0, 1.0], actions=["wait", "treat"])
    costs = costs_per_row(len(labels))
    advised = RobustDecisionMaker(LogisticRegression(), problem).fit(features, labels, costs=costs)
    best = (advised.forecasts_[:, 0] > costs[:, 1]).astype(int)
    assert advised.advice_.promise.realised == pytest.approx((best * (labels - costs[:, 1])).mean())
    robust = prudent.RobustPolicy(problem, "self-orthogonal", slack="audit")
    maker = RobustDecisionMaker(LogisticRegression(), problem, policy=robust).fit(features, labels, costs=costs)
    mixtures = maker.decide_proba(features, costs=costs)
    realised = ((labels - costs[:, 1]) * mixtures[:, 1]).mean()
    assert maker.score(features, labels, costs=costs) == pytest.approx(realised)
    # Those whose treatment costs less are treated at lower probabilities.
    cheap, dear = (maker.decide_proba(features, costs=np.tile([0.0, c], (len(labels), 1))) for c in (0.2, 0.7))
    assert (cheap[:, 1] >= dear[:, 1] - 1e-6).all()
    assert cheap[:, 1].sum() > dear[:, 1].sum()
    with pytest.raises(InputError, match="fitted with costs per row"):
        maker.predict(features)
    with pytest.raises(InputError, match=r"costs must have shape \(240, 2\)"):
        maker.predict(features, costs=costs[:, :1])
    with sklearn.config_context(enable_metadata_routing=True):
        routed = RobustDecisionMaker(LogisticRegression(), problem)
        routed.set_fit_request(costs=True).set_score_request(costs=True)
        scores = cross_val_score(routed, features, labels, cv=StratifiedKFold(3), params={"costs": costs})
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RobustDecisionMaker(LinearRegression(), CLINIC, policy=prudent.RobustPolicy(CLINIC, "bins")),
            "bins needs a whole number",
        ),
        (
            lambda: RobustDecisionMaker(LinearRegression(), CLINIC, policy=prudent.PlugInPolicy(COIN)),
            "the same problem",
        ),
        (lambda: RobustDecisionMaker(LinearRegression(), CLINIC, menu=["platt"]), "menu must hold recalibrators"),
        (
            lambda: RobustDecisionMaker(LinearRegression(), CLINIC, cv=ShuffleSplit(3)),
            "hold out every row at most once",
        ),
        (lambda: RobustDecisionMaker(LinearRegression(), CLINIC, cv=1), "cv must be a number of folds"),
        (lambda: RobustDecisionMaker(LinearRegression(), CLINIC, outside="drop"), "outside must be"),
        (lambda: RobustDecisionMaker(LinearRegression(), "clinic"), "problem must be a DecisionProblem"),
        (
            lambda: RobustDecisionMaker(
                LinearRegression(), prudent.DecisionProblem([0, 1], [0, 99], space=prudent.Box(100, 200))
            ),
            "must lie in Box",
        ),
        (
            lambda: RobustDecisionMaker(LinearRegression(), prudent.DecisionProblem([[0, 1], [1, 0]])),
            "must forecast 2 number",
        ),
        (lambda: RobustDecisionMaker(LinearRegression(), CLINIC, confidence=1.5), "confidence must lie"),
        (lambda: RobustDecisionMaker(LinearRegression(), CLINIC, recalibrator="isotonic"), "recalibrator must be"),
    ],
)
def test_misuse_is_named(make: Any, message: str) -> None:
    features, target = patients()
    with pytest.raises(InputError, match=message):
        make().fit(features, target)


def test_clipping_is_counted() -> None:
    features, target = patients()
    problem = prudent.DecisionProblem([0, 1], [0, 150], space=prudent.Box(25, 346))
    wild = make_pipeline(StandardScaler(), KNeighborsRegressor(1))
    maker = RobustDecisionMaker(wild, problem, outside="clip").fit(features, target)
    assert maker.n_clipped_ == 0
    steep = RobustDecisionMaker(LinearRegression(fit_intercept=False), problem, outside="clip").fit(features, target)
    assert steep.n_clipped_ > 0
    assert steep.forecasts_.min() >= 25


def test_a_class_that_some_folds_have_not_seen_has_probability_zero_there() -> None:
    features, labels = tumours()
    rare = labels.copy()
    rare[0] = 2
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn warns of the rare class
        maker = RobustDecisionMaker(DummyClassifier(), problem, cv=3).fit(features, rare)
    assert maker.forecasts_[0, 2] == 0.0  # by the model that has not seen the only one
    assert (maker.forecasts_[:, 2] > 0).any()
    np.testing.assert_allclose(maker.forecasts_.sum(axis=1), 1.0)


EXCEPTIONS = {"check_array_api_input": "scikit-learn itself skips it unless SCIPY_ARRAY_API is set"}


@pytest.mark.slow
def test_scikit_learn_checks() -> None:
    """Each check brings targets of its own: some suit a regressor, some a classifier with two or three classes."""
    wide = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], space=prudent.Box(-1e6, 1e6))
    makers = [
        RobustDecisionMaker(Ridge(), wide, cv=2),
        RobustDecisionMaker(KNeighborsClassifier(1), COIN, cv=2),
    ]
    outcomes: dict[str, list[str]] = {}
    for maker in makers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # several checks warn about their own data
            for result in check_estimator(maker, on_fail=None, on_skip=None):
                text = result["status"] if result["exception"] is None else f"{result['status']}: {result['exception']}"
                outcomes.setdefault(result["check_name"], []).append(text)
    never = {check for check, seen in outcomes.items() if "passed" not in seen}
    assert never == set(EXCEPTIONS) & set(outcomes), {check: outcomes[check] for check in never - set(EXCEPTIONS)}
    assert len(outcomes) > 35


@pytest.mark.parametrize(
    "options",
    [
        {"policy": prudent.RobustPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5]), "nonsense")},
        {"confidence": 2.0},
        {"tolerance": -1.0},
        {"fallback": "flip a coin"},
        {"menu": [1]},
        {"cv": 1},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_is_invalid_is_refused_before_any_model_is_fitted(options: dict[str, object]) -> None:
    class Untouched(Ridge):
        def fit(self, *arguments: object) -> object:
            raise AssertionError("a model was fitted")

    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    with pytest.raises(prudent.errors.InputError):
        prudent.RobustDecisionMaker(Untouched(), problem, **options).fit(np.ones((20, 1)), np.linspace(0, 1, 20))


def test_a_grid_may_contain_following_the_forecast() -> None:
    features, labels = tumours()
    search = GridSearchCV(
        RobustDecisionMaker(LogisticRegression(), COIN), {"policy": [prudent.PlugInPolicy(COIN)]}, cv=2
    ).fit(features, labels)
    maker = search.best_estimator_
    assert maker.advice_ is None
    best = COIN.best_response(maker.forecast(features))
    np.testing.assert_array_equal(maker.decide_proba(features).argmax(axis=1), best)


def test_isotonic_regression_repairs_a_classifier_on_one_coordinate() -> None:
    features, labels = tumours()
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4])
    isotonic = prudent.recalibration.IsotonicCalibrator()
    maker = RobustDecisionMaker(GaussianNB(), problem, recalibrator=isotonic).fit(features, labels)
    assert np.unique(maker.forecast(features)).size < 20
    assert maker.score(features, labels) > 0.3


def test_a_recalibrator_takes_classes_in_the_problem_s_order() -> None:
    features, labels = tumours()
    names = np.array(["malignant", "benign"])[labels]
    payoffs = [[0.0, 1.0], [1.0, 0.0], [0.6, 0.6]]
    problem = prudent.DecisionProblem.from_payoffs(payoffs, actions=["b", "m", "ask"], classes=["malignant", "benign"])
    repair = prudent.recalibration.DecisionCalibrator(problem, random_state=0)
    maker = RobustDecisionMaker(GaussianNB(), problem, recalibrator=repair).fit(features, names)
    assert maker.score(features, names) > 0.9


def test_folds_inside_a_recalibrator_keep_groups_together() -> None:
    """A model that remembers groups would forecast a row of a group that it has seen with certainty."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    labels = np.repeat(rng.integers(0, 2, 40), 5)
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    shift = prudent.recalibration.ScalingCalibrator("shift")
    maker = RobustDecisionMaker(KNeighborsClassifier(1), problem, recalibrator=shift, cv=GroupKFold(5))
    maker.fit(groups[:, None].astype(float), labels, groups=groups)
    honest = (maker.forecasts_[:, 0].round() == labels).mean()
    assert honest < 0.8


def test_a_frame_of_costs_is_matched_by_name() -> None:
    features, labels = (part[:240] for part in tumours())
    problem = prudent.DecisionProblem([0.0, 1.0], actions=["wait", "treat"])
    costs = costs_per_row(len(labels))
    frame = pd.DataFrame(costs[:, ::-1], columns=["treat", "wait"])
    by_name, by_place = (
        RobustDecisionMaker(LogisticRegression(), problem).fit(features, labels, costs=given)
        for given in (frame, costs)
    )
    assert str(by_name.advice_) == str(by_place.advice_)


def dated_rows(n_periods: int = 12, size: int = 50) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(8)
    features = rng.normal(size=(n_periods * size, 2))
    labels = rng.binomial(1, 1 / (1 + np.exp(-2 * features[:, 0])))
    return features, labels, np.repeat(np.arange(n_periods), size)


ACT = prudent.DecisionProblem.from_payoffs([[0, 0], [-1, 2]], actions=["wait", "act"])


def test_folds_hold_whole_periods() -> None:
    features, labels, months = dated_rows()
    order = np.random.default_rng(0).permutation(len(labels))
    maker = prudent.RobustDecisionMaker(LogisticRegression(), ACT, cv=4)
    maker.fit(features[order], labels[order], periods=months[order])
    for start in range(0, 12, 3):  # blocks of three months in the order of time
        inside = (months >= start) & (months < start + 3)
        model = LogisticRegression().fit(features[order][~inside[order]], labels[order][~inside[order]])
        expected = model.predict_proba(features[inside])[:, 1]
        found = maker.forecasts_[np.argsort(order)][inside][:, 1]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert maker.advice_.next_period is not None
    assert maker.advice_.past.n_units == 12


@pytest.mark.parametrize("with_periods", [False, True])
def test_forward_chaining(with_periods: bool) -> None:
    features, labels, months = dated_rows()
    maker = prudent.RobustDecisionMaker(LogisticRegression(), ACT, cv=TimeSeriesSplit(5))
    maker.fit(features, labels, periods=months if with_periods else None)
    held_out = np.isfinite(maker.forecasts_).all(axis=1)
    assert held_out.tolist() == (months >= 2).tolist()
    assert maker.advice_.n_rows == 500
    first = LogisticRegression().fit(features[months < 2], labels[months < 2])
    np.testing.assert_allclose(
        maker.forecasts_[(months >= 2) & (months < 4)], first.predict_proba(features[(months >= 2) & (months < 4)])
    )
    assert maker.predict(features[:3]).shape == (3,)


def test_periods_are_checked_before_the_model_is_fitted() -> None:
    features, labels, months = dated_rows()
    maker = prudent.RobustDecisionMaker(LogisticRegression(), ACT, cv=20)
    with pytest.raises(InputError, match="cv must be a number of folds"):
        maker.fit(features, labels, periods=months)
    some = months.astype(object)
    some[5] = None
    with pytest.raises(InputError, match="row 5"):
        maker.fit(features, labels, periods=some)
    assert not hasattr(maker, "estimator_")


def demand(n: int = 240) -> tuple[np.ndarray, np.ndarray, prudent.DecisionProblem]:
    """Features, demand whose spread grows with its mean, and orders."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (n, 2))
    mean = 15 + 8 * features[:, 0]
    problem = prudent.DecisionProblem.from_utility(
        lambda a, y: 5 * min(a, y) - 2 * a, np.linspace(0, 36, 13).tolist(), np.linspace(0, 40, 41), amounts=True
    )
    return features, np.clip(mean + 0.15 * mean * rng.normal(size=n), 0, 40), problem


@pytest.mark.parametrize("bins", [1, 3])
def test_a_regressor_decides_about_numbers_by_its_past_residuals(bins: int) -> None:
    features, sold, problem = demand()
    maker = RobustDecisionMaker(LinearRegression(), problem, cv=4, residual_bins=bins).fit(features, sold)
    folds = list(KFold(4).split(features))
    points = np.empty(len(sold))
    for train, test in folds:
        points[test] = LinearRegression().fit(features[train], sold[train]).predict(features[test])
    residuals = np.column_stack([points, sold - points])
    for train, test in folds:  # each row by the residuals of the others
        expected = prudent.forecasts_from(
            problem, points=points[test], residuals=residuals[train], residual_bins=bins
        ).probabilities
        np.testing.assert_allclose(maker.forecasts_[test], expected, atol=1e-12)
    final = LinearRegression().fit(features, sold).predict(features[:3])
    expected = prudent.forecasts_from(problem, points=final, residuals=residuals, residual_bins=bins).probabilities
    np.testing.assert_allclose(maker.forecast(features[:3]), expected, atol=1e-12)
    followed = prudent.PlugInPolicy(problem).predict(expected)
    assert set(maker.predict(features[:3])) <= set(problem.actions)
    best = max((5 * np.minimum(a, sold) - 2 * a).mean() for a in problem.actions)
    assert maker.score(features, sold) > best
    assert len(followed) == 3


def test_other_ways_to_fit_a_regressor_to_numbers() -> None:
    features, sold, problem = demand()
    first = RobustDecisionMaker(FrozenEstimator(LinearRegression().fit(features, sold)), problem).fit(features, sold)
    assert first.forecasts_.shape == (240, 41)
    later = RobustDecisionMaker(LinearRegression(), problem, cv=TimeSeriesSplit(3)).fit(features, sold)
    assert np.isnan(later.forecasts_[:60]).all()
    assert not np.isnan(later.forecasts_[60:]).any()
    isotonic = prudent.recalibration.IsotonicCalibrator()
    repaired = RobustDecisionMaker(LinearRegression(), problem, recalibrator=isotonic).fit(features, sold)
    assert repaired.score(features, sold) == pytest.approx(first.score(features, sold), rel=0.05)
    hedged = RobustDecisionMaker(
        LinearRegression(), problem, policy=prudent.RobustPolicy(problem, "cumulative", slack="audit")
    ).fit(features, sold)
    assert hedged.certificate_.lower < hedged.score(features, sold)
    with pytest.raises(InputError, match="y must be numbers from 0 to 40"):
        RobustDecisionMaker(LinearRegression(), problem).fit(features, sold + 30)
    with pytest.raises(InputError, match="residual_bins must be"):
        RobustDecisionMaker(LinearRegression(), problem, residual_bins=0).fit(features, sold)


@pytest.mark.parametrize("recalibrator", ["auto", None, "isotonic"])
def test_a_classifier_of_points_leaves_empty_ones_at_zero(recalibrator: Any) -> None:
    features, sold, problem = demand()
    given = prudent.recalibration.IsotonicCalibrator() if recalibrator == "isotonic" else recalibrator
    maker = RobustDecisionMaker(GaussianNB(var_smoothing=0.01), problem, recalibrator=given).fit(features, sold)
    points = problem.space.points
    never = ~np.isin(np.arange(41), np.abs(sold[:, None] - points).argmin(axis=1))
    assert never.any()
    assert maker.classes_.tolist() == list(range(41))
    if recalibrator != "isotonic":
        assert (maker.forecasts_[:, never] == 0).all()
    assert maker.score(features, sold) > max((5 * np.minimum(a, sold) - 2 * a).mean() for a in problem.actions)


@pytest.mark.parametrize(
    "classes", [["b", "a", "c"], [3, 1, 2], None, [np.int64(4), np.int64(9), np.int64(2)]], ids=str
)
@pytest.mark.parametrize("kind", [np.array, list, pd.Series])
@pytest.mark.parametrize(
    "recalibrator",
    [
        "auto",
        prudent.recalibration.IsotonicCalibrator(),
        prudent.recalibration.ScalingCalibrator("temperature"),
        "decision",
    ],
    ids=str,
)
def test_classes_come_in_any_order_and_one_may_never_occur(classes: Any, kind: Any, recalibrator: Any) -> None:
    rng = np.random.default_rng(0)
    names = [0, 1, 2] if classes is None else classes
    features = rng.normal(size=(150, 2))
    numbers = (features[:, 0] + rng.normal(size=150) > 0).astype(int)  # the third never occurs
    problem = prudent.DecisionProblem(np.eye(3), space=prudent.Simplex(3, classes=classes))
    if recalibrator == "decision":
        recalibrator = prudent.recalibration.DecisionCalibrator(problem, random_state=0)
    labels = kind([names[number] for number in numbers])
    maker = RobustDecisionMaker(GaussianNB(), problem, recalibrator=recalibrator, cv=3).fit(features, labels)
    assert maker.classes_.tolist() == [name.item() if isinstance(name, np.generic) else name for name in names]
    model = GaussianNB().fit(features, labels)
    expected = np.zeros((5, 3))
    for column, label in zip(model.predict_proba(features[:5]).T, model.classes_.tolist(), strict=True):
        expected[:, names.index(label)] = column
    if recalibrator == "auto":
        np.testing.assert_allclose(maker.forecast(features[:5]), expected)
    np.testing.assert_allclose(maker.forecast(features[:5]).sum(axis=1), 1.0)
    assert maker.score(features, labels) > 0.5
