"""Train the forecaster of a case on one split, bring its forecasts into the outcome space, audit them.

A multilayer perceptron with two hidden layers, squared loss, no weight decay.
Its linear head may leave the outcome space. Projecting forecasts onto it is a
step of its own that changes the forecaster and is reported; self-orthogonality
is measured before and after, and never assumed (docs/theory.md, sections 3.7 and 3.8).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent.arrays import FloatArray, IntArray
from prudent.evidence.audits import audit
from prudent.guarantees import SelfOrthogonal, Temperature
from reproduction.cases import Case

__all__ = ["PARTS", "Forecasts", "Part", "train"]

PARTS = ("train", "calibration", "test")
_SHARES = (0.6, 0.8)
_HIDDEN = (32, 32)
_HIDDEN_CLASSES = (16, 16)


@dataclass(frozen=True, eq=False)
class Part:
    """Forecasts inside the outcome space and outcomes of one part of the split.

    ``outcomes`` has shape ``(n, d)``; classes are one-hot.
    """

    forecasts: FloatArray
    outcomes: FloatArray


@dataclass(frozen=True, eq=False)
class Forecasts:
    """A trained forecaster's forecasts on a 60/20/20 split, and what was found about them."""

    train: Part
    calibration: Part
    test: Part
    report: dict[str, Any]


def train(case: Case, seed: int, max_iterations: int) -> Forecasts:
    """Split, train and audit; everything random comes from the seed."""
    order = np.random.default_rng(seed).permutation(len(case.features))
    cuts = [int(share * len(order)) for share in _SHARES]
    rows = np.split(order, cuts)
    model, converged = _fit(case, rows[0], seed, max_iterations)
    parts: dict[str, Part] = {}
    report: dict[str, Any] = {"converged": converged, "epochs": int(model[-1].n_iter_)}
    for name, chosen in zip(PARTS, rows, strict=True):
        raw = _predict(case, model, case.features[chosen])
        outcomes = _outcomes(case, chosen)
        inside, moved = _bring_inside(case, raw)
        parts[name] = Part(inside, outcomes)
        report[name] = {
            "rows": len(chosen),
            "outside": int(moved.sum()),
            "furthest": float(np.abs(raw - inside).max()),
            "mean_squared_error": float(((inside - outcomes) ** 2).sum(axis=1).mean()),
            "audit": _audited(case, raw, inside, outcomes),
        }
    return Forecasts(parts["train"], parts["calibration"], parts["test"], report)


def _fit(case: Case, rows: IntArray, seed: int, max_iterations: int) -> tuple[Any, bool]:
    """Fit on the rows; whether training stopped by itself is part of the result, not a warning."""
    family = MLPClassifier if case.classes else MLPRegressor
    network = family(
        hidden_layer_sizes=_HIDDEN_CLASSES if case.classes else _HIDDEN,
        alpha=0.0,
        max_iter=max_iterations,
        random_state=seed,
    )
    target = case.outcomes[rows]
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make_pipeline(StandardScaler(), network).fit(case.features[rows], target)
    return model, bool(network.n_iter_ < max_iterations)


def _predict(case: Case, model: Any, features: FloatArray) -> FloatArray:
    if case.classes:
        return np.asarray(model.predict_proba(features), dtype=np.float64)
    predicted: FloatArray = np.asarray(model.predict(features), dtype=np.float64).reshape(len(features), -1)
    return predicted


def _outcomes(case: Case, rows: IntArray) -> FloatArray:
    if case.classes:
        return np.eye(case.problem.dimension)[case.outcomes[rows].astype(np.int64)]
    return case.outcomes[rows]


def _bring_inside(case: Case, raw: FloatArray) -> tuple[FloatArray, Any]:
    """Project forecasts onto the box; class probabilities are inside already."""
    if case.classes:
        return raw, np.zeros(len(raw), dtype=bool)
    low, high = case.problem.space.bounds
    return np.clip(raw, low, high), ((raw < low) | (raw > high)).any(axis=1)


def _audited(case: Case, raw: FloatArray, inside: FloatArray, outcomes: FloatArray) -> dict[str, Any]:
    """Measure the moments that training to stationarity would make zero."""
    guarantee = Temperature() if case.classes else SelfOrthogonal(intercept=True)
    found = audit(case.problem.space, inside, outcomes, guarantee=guarantee)
    before = guarantee.evaluate(raw, case.problem.space).moments(outcomes - raw, np.full(len(raw), 1 / len(raw)))
    return {
        "moments": list(found.moment_names),
        "estimates": found.estimates.tolist(),
        "estimates_before_projection": before.tolist(),
        "radii": found.measured.radii.tolist(),
        "p_value": found.p_value,
        "rejected": list(found.rejected),
    }
