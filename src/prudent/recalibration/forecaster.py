"""A model and its recalibrator as one estimator, fitted without letting rows calibrate themselves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from prudent.arrays import FloatArray, describe_rows
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
    Weights of rows go to the recalibrator, and to a model (or the last step of
    a pipeline) whose ``fit`` takes them.

    Parameters
    ----------
    estimator : classifier or regressor
        Forecasts are ``predict_proba`` or ``predict``.
    recalibrator : Recalibrator
        Unfitted; it is cloned. Without a space of its own it gets the simplex of a classifier's classes.
    cv : int
        Folds.
    outside : {"refuse", "clip"}
        What to do with forecasts that lie outside the outcome space. Clipping changes the forecaster;
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
        classifier = _classifies(self)
        method = "predict_proba" if classifier else "predict"
        target = column_or_1d(y, warn=True) if classifier else y
        name = None if sample_weight is None else _weight_parameter(self.estimator)
        weights = {} if name is None else {name: sample_weight}
        model = self.estimator if frozen else clone(self.estimator).fit(X, target, **weights)
        outcomes = _one_hot(target, model.classes_) if classifier else target
        if frozen:
            raw = getattr(model, method)(X)
        else:
            raw = cross_val_predict(clone(self.estimator), X, target, cv=self.cv, method=method, params=weights)
        raw = np.asarray(raw, dtype=np.float64)
        recalibrator = clone(self.recalibrator)
        if classifier and "space" in recalibrator.get_params(deep=False) and recalibrator.space is None:
            recalibrator.set_params(space=Simplex(len(model.classes_)))  # not the box of its default
        space = recalibrator.intended_space(raw.shape[1] if raw.ndim == 2 else 1)
        if classifier:
            _require_same_order(model.classes_, space)
        forecasts, clipped = self._inside(raw, space)
        recalibrator.fit(forecasts, outcomes, sample_weight=sample_weight)
        self.estimator_, self.recalibrator_, self.guarantee_ = model, recalibrator, recalibrator.guarantee_
        self.n_clipped_ = clipped
        for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(model, attribute):
                setattr(self, attribute, getattr(model, attribute))
        return self

    @available_if(_classifies)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def predict_proba(self, X: Any) -> FloatArray:
        """Return recalibrated class probabilities, ``(n, d)``."""
        check_is_fitted(self)
        return self._recalibrated(self.estimator_.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """Return the most probable class, or the recalibrated forecast of a regressor."""
        check_is_fitted(self)
        if _classifies(self):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        moved = self._recalibrated(self.estimator_.predict(X))
        return moved[:, 0] if moved.shape[1] == 1 else moved

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier or R squared of a regressor, as scikit-learn's own have it."""
        from sklearn.metrics import accuracy_score, r2_score  # late: they take long to import

        measure = accuracy_score if _classifies(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def _recalibrated(self, raw: Any) -> FloatArray:
        forecasts, _ = self._inside(np.asarray(raw, dtype=np.float64), self.recalibrator_.space_)
        return self.recalibrator_.transform(forecasts)

    def _inside(self, forecasts: FloatArray, space: Space) -> tuple[FloatArray, int]:
        rows = forecasts.reshape(len(forecasts), -1)
        if self.outside == "refuse" or rows.shape[1] != space.dimension or not np.isfinite(rows).all():
            return forecasts, 0  # what is wrong with them, the recalibrator says
        nearest = space.project(rows)
        return nearest, int((nearest != rows).any(axis=1).sum())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "recalibrator_")

    def __sklearn_tags__(self) -> Any:
        tags, model = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            model.estimator_type,
            model.classifier_tags,
            model.regressor_tags,
        )
        tags.target_tags, tags.input_tags = model.target_tags, model.input_tags
        return tags


def _weight_parameter(estimator: Any) -> str | None:
    """The name under which a model's fit takes weights of rows; None if it does not."""
    from sklearn.pipeline import Pipeline

    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline) and estimator.steps:
        name, last = estimator.steps[-1]
        inner = _weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return None


def _one_hot(labels: Any, classes: Any) -> FloatArray:
    """One row per label; a label that the model does not know is refused, never taken for its neighbour."""
    positions = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = classes[positions] != labels
    if unknown.any():
        raise InputError(
            f"y must hold classes that the estimator knows, {classes.tolist()}; got "
            f"{np.unique(np.asarray(labels)[unknown]).tolist()} in {describe_rows(np.flatnonzero(unknown))}."
        )
    return np.eye(len(classes))[positions]


def _require_same_order(classes: Any, space: Space) -> None:
    """Refuse a decision problem that names the model's classes in another order: columns would be mixed up."""
    known = space.classes if isinstance(space, Simplex) else None
    if known is not None and list(known) != classes.tolist():
        raise InputError(
            f"the recalibrator's problems must have the model's classes in the model's order, {classes.tolist()}; "
            f"got {list(known)}."
        )
