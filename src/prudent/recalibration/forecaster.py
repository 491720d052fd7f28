"""A model and its recalibrator as one estimator; forecasts of rows by models that have not seen them."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from prudent.arrays import FloatArray, frozen
from prudent.cases.cases import Cases
from prudent.errors import InputError
from prudent.recalibration.base import Recalibrator
from prudent.spaces import Simplex, Space


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
    >>> repair = prudent.recalibration.DecisionCalibrator(problem, random_state=0)
    >>> forecaster = prudent.recalibration.CalibratedForecaster(LogisticRegression(C=100.0), repair)
    >>> forecaster = forecaster.fit(features, labels)
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
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(
                f"recalibrator must be one of the library's, such as DecisionCalibrator(problem); "
                f"got {type(self.recalibrator).__name__}."
            )
        classifier = is_classifier(self.estimator)
        target = column_or_1d(y, warn=True) if classifier else y
        weights = _fit_weights(self.estimator, sample_weight)
        model = clone(self.estimator).fit(X, target, **weights)
        recalibrator = clone(self.recalibrator)
        if classifier and "space" in recalibrator.get_params(deep=False) and recalibrator.space is None:
            recalibrator.set_params(space=Simplex(len(model.classes_)))  # not the box of its default
        space = recalibrator.intended_space(Cases(target).width)
        classes = tuple(model.classes_.tolist()) if classifier else None
        if classes and (space.dimension != len(classes) or getattr(space, "classes", None) not in (None, classes)):
            raise InputError(
                f"the recalibrator's space must have one column per class in the model's order, {list(classes)}; got "
                f"{space!r}."
            )
        output = ModelOutput(space, classes, self.outside)
        outcomes = output.outcomes(target)
        forecasts, clipped = cross_fitted_forecasts(self.estimator, X, target, output, self.cv, weights)
        recalibrator.fit(forecasts, outcomes, sample_weight=sample_weight)
        self.estimator_, self.recalibrator_, self.guarantee_ = model, recalibrator, recalibrator.guarantee_
        self.n_clipped_, self._output = clipped, output
        for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(model, attribute):
                setattr(self, attribute, getattr(model, attribute))
        return self

    @available_if(is_classifier)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def predict_proba(self, X: Any) -> FloatArray:
        """Return recalibrated class probabilities, ``(n, d)``."""
        return self._recalibrated(X)

    def predict(self, X: Any) -> Any:
        """Return the most probable class, or the recalibrated forecast of a regressor."""
        moved = self._recalibrated(X)
        if is_classifier(self):
            return self.classes_[moved.argmax(axis=1)]
        return moved[:, 0] if moved.shape[1] == 1 else moved

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier or R squared of a regressor, as scikit-learn's own have it."""
        kind = ClassifierMixin if is_classifier(self) else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))

    def _recalibrated(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self.recalibrator_.transform(self._output.forecasts(self.estimator_, X)[0])

    def __sklearn_tags__(self) -> Any:
        tags, model = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
            setattr(tags, name, getattr(model, name))
        return tags


@frozen
class ModelOutput:
    """How the output of a model becomes forecasts on an outcome space, and its target outcomes.

    Attributes
    ----------
    space : Box or Simplex
    classes : tuple or None
        Of a classifier, in the order of the forecast's columns; for one coordinate the forecast is the probability of
        the second.
    outside : {"refuse", "clip"}
        What to do with forecasts outside the space.
    """

    space: Space
    classes: tuple[Any, ...] | None
    outside: str

    def __post_init__(self) -> None:
        if self.outside not in ("refuse", "clip"):
            raise InputError(f"outside must be 'refuse' or 'clip'; got {self.outside!r}.")

    def forecasts(self, model: Any, X: Any) -> tuple[FloatArray, int]:
        """Return the model's forecasts as ``(n, d)`` points of the space, and how many were clipped."""
        if self.classes is None:
            raw = np.asarray(model.predict(X), dtype=np.float64)
        else:
            known = np.asarray(model.classes_).tolist()
            missing = set(known) ^ set(self.classes)
            if missing:
                raise InputError(
                    f"every class must be in the rows of every fold; {sorted(missing, key=str)} is not. Use fewer "
                    f"folds (cv) or more rows."
                )
            table = np.asarray(model.predict_proba(X), dtype=np.float64)
            raw = self._columns(table[:, [known.index(label) for label in self.classes]])
        rows = raw.reshape(len(raw), -1)
        if rows.shape[1] != self.space.dimension:
            raise InputError(
                f"the estimator must forecast {self.space.dimension} number(s) per row, one per coordinate of the "
                f"outcome space; got {rows.shape[1]}."
            )
        nearest = self.space.project(rows) if self.outside == "clip" and np.isfinite(rows).all() else rows
        return self.space.place(nearest, "forecasts")[0], int((nearest != rows).any(axis=1).sum())

    def outcomes(self, y: Any) -> FloatArray:
        """Return a target as ``(n, d)`` outcomes of the space."""
        if self.classes is None:
            return self.space.place_outcomes(y, "y")
        return self._columns(Simplex(len(self.classes), classes=self.classes).place_outcomes(y, "y"))

    def _columns(self, table: FloatArray) -> FloatArray:
        return table[:, 1:] if self.space.dimension == 1 else table


def cross_fitted_forecasts(
    estimator: Any,
    X: Any,
    y: Any,
    output: ModelOutput,
    cv: Any,
    fit_params: dict[str, Any],
    split_params: dict[str, Any] | None = None,
) -> tuple[FloatArray, int]:
    """Return for each row the forecast of a model fitted on the other folds, and how many were clipped."""
    from sklearn.model_selection import check_cv  # late: keeps `import prudent` fast

    if is_frozen(estimator):
        return output.forecasts(estimator, X)
    X, y = indexable(X, y)  # noqa: N806  # scikit-learn's name
    try:
        splitter = check_cv(cv, y, classifier=output.classes is not None)
        splits = list(splitter.split(X, y, **(split_params or {})))
    except (ValueError, TypeError) as error:
        raise InputError(f"cv must be a number of folds from 2, or a splitter; {error}") from error
    n = len(y)
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    if (times != 1).any():
        raise InputError(
            "cv must hold out every row exactly once, so that every row has one honest forecast; "
            f"row {np.flatnonzero(times != 1)[0]} is held out {times[times != 1][0]} times."
        )
    forecasts = np.empty((n, output.space.dimension))
    clipped = 0
    for train, test in splits:
        params = _check_method_params(X, fit_params, indices=train)
        model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
        forecasts[test], outside = output.forecasts(model, _safe_indexing(X, test))
        clipped += outside
    return forecasts, clipped


def is_frozen(estimator: Any) -> bool:
    """Say whether a model must not be fitted again."""
    from sklearn.frozen import FrozenEstimator

    return isinstance(estimator, FrozenEstimator)


def _fit_weights(estimator: Any, weights: Any) -> dict[str, Any]:
    """Weights of rows under the name by which a model's fit, or that of a pipeline's last step, takes them."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline) and estimator.steps:
        name, last = estimator.steps[-1]
        return {f"{name}__{key}": value for key, value in _fit_weights(last, weights).items()}
    taken = weights is not None and has_fit_parameter(estimator, "sample_weight")
    return {"sample_weight": weights} if taken else {}
