"""Forecasters to repair: too sure, biased, already recalibrated, on data that ship with scikit-learn or in files."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import prudent

__all__ = [
    "Array",
    "Case",
    "bike_data",
    "cases",
    "classifier_cases",
    "payoff_problems",
    "regression_cases",
    "started_cases",
    "synthetic_case",
]

Array = NDArray[np.float64]
METHODS = ("sigmoid", "isotonic", "temperature")


@dataclass(frozen=True)
class Case:
    """Forecasts with outcomes: rows to repair on, and fresh ones.

    Perhaps a fitted recalibrator to start from; and the fresh rows' true means, where outcomes were made up.
    """

    name: str
    problems: tuple[prudent.DecisionProblem, ...]
    forecasts: Array
    outcomes: Array
    fresh_forecasts: Array
    fresh_outcomes: Array
    start: Any = None
    fresh_truth: Array | None = None

    @property
    def fresh_before(self) -> Array:
        """What decision makers have without the repair: the forecasts, or what the start makes of them."""
        if self.start is None:
            return self.fresh_forecasts
        begun: Array = self.start.transform(self.fresh_forecasts)
        return begun


class _Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier whose features are its forecasts, so that scikit-learn recalibrates forecasts."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes

    @property
    def classes_(self) -> Any:
        return np.arange(self.n_classes)

    def fit(self, X: Any, y: Any) -> _Given:  # noqa: ARG002  # scikit-learn calls it so
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return X.argmax(axis=1)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Baseline:
    """scikit-learn's ``CalibratedClassifierCV`` as something to start from."""

    def __init__(self, method: str, forecasts: Array, outcomes: Array) -> None:
        given = FrozenEstimator(_Given(forecasts.shape[1]))
        self._model = CalibratedClassifierCV(given, method=method).fit(forecasts, outcomes.argmax(axis=1))

    def transform(self, forecasts: Array) -> Array:
        """Recalibrate forecasts."""
        moved: Array = self._model.predict_proba(forecasts)
        return moved


def payoff_problems(classes: int, count: int, actions: int, seed: int) -> tuple[prudent.DecisionProblem, ...]:
    """Decision problems with random payoffs."""
    rng = np.random.default_rng(seed)
    return tuple(prudent.DecisionProblem.from_payoffs(rng.normal(size=(actions, classes))) for _ in range(count))


def synthetic_case(problems: int = 20, n: int = 50_000, seed: int = 0) -> Case:
    """Five classes, a forecaster that is too sure and biased."""
    rng = np.random.default_rng(seed)
    logits = 1.2 * rng.normal(size=(2 * n, 5))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sharp = np.exp(2 * logits + np.array([0.3, 0.0, 0.0, -0.3, 0.0]))
    forecasts = sharp / sharp.sum(axis=1, keepdims=True)
    outcomes = np.eye(5)[(rng.random((2 * n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 4)]
    decisions = payoff_problems(5, problems, 10, seed)
    name = f"5 classes, {problems} problems"
    return Case(
        name, decisions, forecasts[:n], outcomes[:n], forecasts[n:], outcomes[n:], start=None, fresh_truth=truth[n:]
    )


def classifier_cases(seed: int = 0) -> Iterator[Case]:
    """Digits by naive Bayes, which is far too sure; as it is, and started from scikit-learn's recalibrations."""
    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    features, labels = features[order], labels[order]
    model = GaussianNB().fit(features[:500], labels[:500])
    forecasts, outcomes = model.predict_proba(features[500:]), np.eye(10)[labels[500:]]
    payoffs = np.vstack([np.eye(10), np.full((1, 10), 0.7)])  # name the digit, or ask somebody
    decisions = (prudent.DecisionProblem.from_payoffs(payoffs), *payoff_problems(10, 2, 4, seed))
    case = Case("digits, naive Bayes", decisions, forecasts[:650], outcomes[:650], forecasts[650:], outcomes[650:])
    yield case
    yield from started_cases(case)


def started_cases(case: Case) -> Iterator[Case]:
    """The same from a baseline that half of the rows to repair on were spent for, so that the repair is honest."""
    half = len(case.forecasts) // 2
    for method in METHODS:
        yield replace(
            case,
            name=f"{case.name}, from {method}",
            forecasts=case.forecasts[half:],
            outcomes=case.outcomes[half:],
            start=Baseline(method, case.forecasts[:half], case.outcomes[:half]),
        )


def regression_cases(directory: Path, seed: int = 0) -> Iterator[Case]:
    """Bike sharing and housing, outcomes scaled to [0, 1], by a tree that is too sure and by boosting."""
    for name, (features, target) in (("bike", bike_data(directory)), ("housing", _housing(directory))):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(target))
        features, target = features[order], (target[order] - target.min()) / (target.max() - target.min())
        third = len(target) // 3
        decisions = (
            prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10]),
            prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4]),
            prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.25, 0.6]),
        )
        for label, model in (
            ("tree", DecisionTreeRegressor(random_state=0)),
            ("boosting", HistGradientBoostingRegressor(random_state=0)),
        ):
            model.fit(features[:third], target[:third])
            forecasts = np.clip(model.predict(features), 0, 1)[:, None]
            outcomes = target[:, None]
            yield Case(
                f"{name}, {label}",
                decisions,
                forecasts[third : 2 * third],
                outcomes[third : 2 * third],
                forecasts[2 * third :],
                outcomes[2 * third :],
            )


def bike_data(directory: Path) -> tuple[Array, Array]:
    """Read features and daily counts of the bike sharing data."""
    table = np.genfromtxt(directory / "bike_sharing_day.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    columns = ("season", "mnth", "holiday", "weekday", "workingday", "weathersit", "temp", "atemp", "hum", "windspeed")
    return np.column_stack([table[name].astype(float) for name in columns]), table["cnt"].astype(float)


def _housing(directory: Path) -> tuple[Array, Array]:
    with gzip.open(directory / "cal_housing.data.gz", "rt", encoding="utf-8") as stream:
        table = np.loadtxt(stream, delimiter=",")
    return table[:, :-1], table[:, -1]


def cases(directory: Path | None) -> Iterator[Case]:
    """All rows of the first table."""
    yield from classifier_cases()
    yield synthetic_case()
    yield from started_cases(synthetic_case(5, 30_000))
    if directory is not None:
        yield from regression_cases(directory)
