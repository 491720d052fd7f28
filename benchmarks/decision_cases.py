"""Decisions that follow a model: data that ship with scikit-learn, in files, or made up, and how they are split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from benchmarks.repair_cases import bike_data

__all__ = ["CURVE_ROWS", "Case", "Split", "cases", "learning_curve"]

Array = NDArray[Any]

CURVE_ROWS = (100, 200, 400, 800, 1_600, 3_200, 6_400)
_FRAUD_ROWS, _FRESH_FRAUD_ROWS, _FRESH_CURVE_ROWS = 10_000, 30_000, 50_000
_REVIEW, _ANNOYED, _MARGIN, _KEPT, _LARGEST = 4.0, 5.0, 0.06, 0.9, 2_000.0  # euros, or shares of an amount


@dataclass(frozen=True)
class Split:
    """Rows to learn from and fresh ones; ``own`` are rewards and costs per row, where every row has its own."""

    features: Array
    target: Array
    fresh: Array
    later: Array
    own: dict[str, Array] = field(default_factory=dict)
    fresh_own: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A decision, a model, and how its rows are split; ``n_rows`` are those to learn from."""

    name: str
    problem: prudent.DecisionProblem
    model: Any
    n_rows: int
    split: Callable[[int], Split]

    @property
    def classifies(self) -> bool:
        """Whether forecasts are probabilities of classes."""
        return hasattr(self.model, "predict_proba")

    @property
    def binary(self) -> bool:
        """Whether a threshold on one probability is a rule: two classes, two actions."""
        return self.classifies and self.problem.rewards.shape == (2, 2)


def cases(directory: Path | None) -> Iterator[Case]:
    """Digits with a way out, tumours with unequal costs, fraud with amounts, and staffing by forecast demand."""
    features, labels = load_digits(return_X_y=True)
    payoffs = np.vstack([np.eye(10), np.full((1, 10), 0.7)])
    digits = prudent.DecisionProblem.from_payoffs(payoffs, actions=[*map(str, range(10)), "refuse"])
    for name, model in _classifiers(max_iter=20).items():
        yield Case(f"digits, {name}", digits, model, len(labels) // 2, _halves(features, labels, stratify=True))
    features, labels = load_breast_cancer(return_X_y=True)
    for name, model in _classifiers().items():
        split = _halves(features, 1 - labels, stratify=True)  # class 1 is the malignant one
        yield Case(f"tumours, {name}", _ten_to_one(), model, len(labels) // 2, split)
    fraud = prudent.DecisionProblem(*_fraud_stakes(np.array([60.0])), actions=["approve", "review", "block"])
    models = _classifiers()
    for name in ("logistic", "boosting"):
        yield Case(f"fraud, {name}", fraud, models[name], _FRAUD_ROWS, _fraud)
    if directory is not None:
        features, counts = bike_data(directory)
        demand = (counts - counts.min()) / (counts.max() - counts.min())
        staff = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
        model = HistGradientBoostingRegressor(random_state=0)
        yield Case("bikes, boosting", staff, model, len(demand) // 2, _halves(features, demand, stratify=False))


def learning_curve() -> Iterator[Case]:
    """A logistic regression that is the truth, with costs of ten to one, on ever more rows."""
    for n in CURVE_ROWS:
        yield Case("curve, logistic", _ten_to_one(), _classifiers()["logistic"], n, _logistic(n))


def _classifiers(max_iter: int = 100) -> dict[str, Any]:
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
        "naive Bayes": GaussianNB(),
        "boosting": HistGradientBoostingClassifier(max_iter=max_iter, random_state=0),
    }


def _ten_to_one() -> prudent.DecisionProblem:
    return prudent.DecisionProblem.from_payoffs([[0.0, -10.0], [-1.0, 0.0]], actions=["leave", "operate"])


def _halves(features: Array, target: Array, *, stratify: bool) -> Callable[[int], Split]:
    def split(number: int) -> Split:
        classes = target if stratify else None
        parts = train_test_split(features, target, test_size=0.5, random_state=number, stratify=classes)
        return Split(parts[0], parts[2], parts[1], parts[3])

    return split


def _logistic(n: int) -> Callable[[int], Split]:
    def split(number: int) -> Split:
        rng = np.random.default_rng([number, n])
        features = rng.normal(size=(n + _FRESH_CURVE_ROWS, 5))
        odds = np.exp(features @ [3.0, -2.5, 1.5, 0.8, 0.0] - 0.3)
        target = (rng.random(len(odds)) < odds / (1 + odds)).astype(int)
        return Split(features[:n], target[:n], features[n:], target[n:])

    return split


def _fraud(number: int) -> Split:
    """Payments, about 1.7% of them fraudulent; what a mistake costs depends on the amount."""
    rng = np.random.default_rng([number, 17])
    n = _FRAUD_ROWS + _FRESH_FRAUD_ROWS
    amounts = np.minimum(np.exp(rng.normal(3.4, 1.1, n)), _LARGEST)
    others = rng.normal(size=(n, 6))
    night = rng.random(n) < 0.2
    logit = -7.4 + 1.2 * others[:, 0] + 0.9 * others[:, 1] * others[:, 2] + 0.8 * night + 0.35 * np.log(amounts)
    logit += 0.7 * np.maximum(others[:, 3], 0) ** 2
    target = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    features = np.column_stack([others, night, np.log(amounts)])
    rewards, costs = _fraud_stakes(amounts, per_row=True)
    past, later = slice(_FRAUD_ROWS), slice(_FRAUD_ROWS, None)
    own, fresh = ({"rewards": rewards[part], "costs": costs[part]} for part in (past, later))
    return Split(features[past], target[past], features[later], target[later], own, fresh)


def _fraud_stakes(amounts: Array, *, per_row: bool = False) -> tuple[Array, Array]:
    """Rewards and costs: what approving, reviewing and blocking earn is ``reward * fraud - cost``."""
    honest = np.column_stack([_MARGIN * amounts, _KEPT * _MARGIN * amounts - _REVIEW, np.full_like(amounts, -_ANNOYED)])
    fraud = np.column_stack([-amounts, np.full_like(amounts, -_REVIEW), np.zeros_like(amounts)])
    rewards, costs = fraud - honest, -honest
    return (rewards, costs) if per_row else (rewards[0], costs[0])
