"""A model and its recalibrator as one estimator, fitted without letting rows calibrate themselves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.recalibration.base import Recalibrator
from prudent.spaces import Simplex, Space

__all__ = ["CalibratedForecaster"]


def _classifies(forecaster: Any) -> bool:
    return bool(is_classifier(forecaster.estimator))


class CalibratedForecaster(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Any scikit-learn classifier or regressor, followed by a recalibrator.

    The recalibrator sees only forecasts of rows that the model was not fitted
    on (cross-fitting); the model is then fitted again on all rows. A
    ``FrozenEstimator`` is left as it is: give it rows that it has not seen.

    Parameters
    ----------
    estimator : classifier or regressor
        Forecasts are ``predict_proba`` or ``predict``.
    recalibrator : Recalibrator
        Unfitted; it is cloned.
    cv : int
        Folds.
    outside : {"refuse", "clip"}
        What to do with forecasts of a regressor that lie outside the outcome space. Clipping changes the forecaster;
        the recalibrator then works on what came of it.

    Attributes
    ----------
    estimator_, recalibrator_ : fitted
    guarantee_ : Guarantee
        Of the recalibrated forecasts.
    classes_ : array
        Of a classifier.
    n_clipped_ : int
        Forecasts that were clipped during the fit.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(600, 2))
    >>> labels = (features[:, 0] + rng.normal(size=600) > 0).astype(int)
    >>> problem = prudent.DecisionProblem.from_payoffs([[1.0, 0.0], [0.0, 1.0]])
    >>> forecaster = prudent.CalibratedForecaster(
    ...     LogisticRegression(C=100.0), prudent.DecisionCalibrator(problem, random_state=0)).fit(features, labels)
    >>> forecaster.predict_proba(features[:3]).shape
    (3, 2)
    """

    def __init__(self, estimator: Any, recalibrator: Recalibrator, *, cv: int = 5, outside: str = "refuse") -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.outside = outside

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Fit the recalibrator on cross-fitted forecasts and the model on all rows."""
        from sklearn.frozen import FrozenEstimator
        from sklearn.model_selection import cross_val_predict

        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(
                f"recalibrator must be one of the library's, such as DecisionCalibrator(problem); "
                f"got {type(self.recalibrator).__name__}."
            )
        if self.outside not in ("refuse", "clip"):
            raise InputError(f"outside must be 'refuse' or 'clip'; got {self.outside!r}.")
        frozen = isinstance(self.estimator, FrozenEstimator)
        classifier = is_classifier(self.estimator)
        method = "predict_proba" if classifier else "predict"
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        model = self.estimator if frozen else clone(self.estimator).fit(X, y, **weights)
        if frozen:
            raw = getattr(model, method)(X)
        else:
            raw = cross_val_predict(clone(self.estimator), X, y, cv=self.cv, method=method, params=weights)
        outcomes = np.asarray(y)
        if classifier:
            outcomes = np.eye(len(model.classes_))[np.searchsorted(model.classes_, outcomes)]
        recalibrator = clone(self.recalibrator)
        space = _space_of(recalibrator)
        if classifier:
            _require_same_order(model.classes_, space)
        forecasts, clipped = self._inside(np.asarray(raw, dtype=np.float64), space)
        recalibrator.fit(forecasts, outcomes, sample_weight=sample_weight)
        self.estimator_, self.recalibrator_, self.guarantee_ = model, recalibrator, recalibrator.guarantee_
        self.n_clipped_ = clipped
        if classifier:
            self.classes_ = model.classes_
        return self

    @available_if(_classifies)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def predict_proba(self, X: Any) -> FloatArray:
        """Return recalibrated class probabilities, ``(n, d)``."""
        check_is_fitted(self)
        return self.recalibrator_.transform(self.estimator_.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """Return the most probable class, or the recalibrated forecast of a regressor."""
        check_is_fitted(self)
        if _classifies(self):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        forecasts, _ = self._inside(np.asarray(self.estimator_.predict(X), dtype=np.float64), self.recalibrator_.space_)
        moved = self.recalibrator_.transform(forecasts)
        return moved[:, 0] if moved.shape[1] == 1 else moved

    def _inside(self, forecasts: FloatArray, space: Space | None) -> tuple[FloatArray, int]:
        if self.outside == "refuse" or space is None:
            return forecasts, 0
        rows = forecasts.reshape(len(forecasts), -1)
        nearest = space.project(rows)
        return nearest, int((nearest != rows).any(axis=1).sum())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "recalibrator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if _classifies(self) else "regressor"
        return tags


def _require_same_order(classes: Any, space: Space | None) -> None:
    """Refuse a decision problem that names the model's classes in another order: columns would be mixed up."""
    known = space.classes if isinstance(space, Simplex) else None
    if known is not None and list(known) != classes.tolist():
        raise InputError(
            f"the recalibrator's problems must have the model's classes in the model's order, {classes.tolist()}; "
            f"got {list(known)}."
        )


def _space_of(recalibrator: Recalibrator) -> Space | None:
    """The outcome space that a recalibrator was made for, before it is fitted."""
    problems = getattr(recalibrator, "problems", None)
    if problems is not None:
        from prudent.recalibration.decision import require_problems

        return require_problems(problems)[0].space
    space: Space | None = getattr(recalibrator, "space", None)
    return space
