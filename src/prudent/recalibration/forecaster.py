"""A model and its recalibrator as one estimator; forecasts of rows by models that have not seen them."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from prudent.arrays import BoolArray, FloatArray, IntArray, rows
from prudent.cases.cases import Cases
from prudent.errors import InputError
from prudent.problem import forecasts_from
from prudent.recalibration.base import Recalibrator
from prudent.spaces import Grid, Simplex, Space


class ModelForecasts(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What estimators around a classifier or regressor share: its output as forecasts on an outcome space.

    A subclass has the parameters ``estimator``, ``cv`` and ``outside``, and gets ``estimator_``, ``n_clipped_``,
    ``classes_`` of a classifier, ``n_features_in_`` and ``feature_names_in_`` by fitting the model.
    """

    estimator: Any
    cv: Any
    outside: str
    residual_bins: int = 1

    def _set_output(self, estimator: Any, y: Any, space: Space) -> None:
        """Find out how the output of a model becomes forecasts on a space.

        Classes that the space names come in its order, else in sorted order, as scikit-learn has them. On a grid
        classes are the numbers of the points, and outcomes belong to the nearest one.
        """
        if self.outside not in ("refuse", "clip"):
            raise InputError(f"outside must be 'refuse' or 'clip'; got {self.outside!r}.")
        classes: Any = known_classes(estimator, y)
        if classes is not None:
            classes = list(space.order_classes(classes))
        self._space, self._classes = space, classes

    def _fit_model(
        self, estimator: Any, X: Any, y: Any, weights: Any, groups: Any, periods: IntArray | None = None
    ) -> tuple[FloatArray, BoolArray]:
        """Fit a model on all rows, and forecast each row by one that was fitted on other folds.

        ``periods`` are places in the order of time: folds then hold whole periods.
        Returns the forecasts ``(n, d)`` and which rows have one: forward chaining holds the first ones never out.
        """
        splits, fit_params = self._splits(estimator, X, y, groups, periods), fit_weights(estimator, weights)
        target = y
        if isinstance(estimator, CalibratedForecaster):
            if groups is not None:
                fit_params = {**fit_params, "groups": groups}  # the folds inside keep groups together, too
        elif isinstance(self._space, Grid) and self._classes is not None:
            target = self._space.place_outcomes(y, "y").argmax(axis=1)
        self.estimator_ = clone(estimator).fit(X, target, **fit_params)
        if self._classes is not None:
            self.classes_ = np.array(self._classes)
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, attribute):
                setattr(self, attribute, getattr(self.estimator_, attribute))
        X, y, target = indexable(X, y, target)  # noqa: N806  # scikit-learn's name
        forecasts, self.n_clipped_ = np.full((len(y), self._space.dimension), np.nan), 0
        outputs: list[tuple[Any, FloatArray]] = []
        for train, test in splits or [(None, np.arange(len(y)))]:
            model = estimator
            if train is not None:
                params = _check_method_params(X, fit_params, indices=train)
                model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(target, train), **params)
            outputs.append((test, self._output(model, _safe_indexing(X, test))))
        points = isinstance(self._space, Grid) and outputs[0][1].shape[1] == 1
        past = [np.hstack([raw, rows(y, "y", 1)[test] - raw]) for test, raw in outputs if points]
        for fold, (test, raw) in enumerate(outputs):
            others = past[:fold] + past[fold + 1 :] or past  # each row's residuals are those of other rows
            forecasts[test], clipped = self._placed(raw, others)
            self.n_clipped_ += clipped
        self._past = past
        return forecasts, ~np.isnan(forecasts[:, 0])

    def _splits(self, estimator: Any, X: Any, y: Any, groups: Any, periods: IntArray | None) -> list[Any]:
        """Find the folds; a model that is left as it is needs none."""
        if _is_frozen(estimator) or y is None:  # the model refuses to be fitted without a target
            return []
        X, y = indexable(X, y)  # noqa: N806  # scikit-learn's name
        from sklearn.model_selection import BaseCrossValidator, check_cv  # late: keeps `import prudent` fast

        kinds = None if isinstance(self._space, Grid) else self._classes
        try:
            splitter = check_cv(self.cv, y, classifier=bool(kinds) and periods is None)
            if periods is None or not isinstance(splitter, BaseCrossValidator):
                splits = list(splitter.split(X, y, groups))
            elif hasattr(splitter, "set_split_request"):  # it keeps groups of rows together
                splits = list(splitter.split(X, y, periods if groups is None else groups))
            else:
                parts = splitter.split(np.arange(periods.max() + 1))
                splits = [tuple(np.flatnonzero(np.isin(periods, part)) for part in pair) for pair in parts]
        except (ValueError, TypeError) as error:
            raise InputError(f"cv must be a number of folds from 2, or a splitter; {error}") from error
        times = np.bincount(np.concatenate([test for _, test in splits]), minlength=len(y))
        if (times > 1).any():
            raise InputError(
                "cv must hold out every row at most once, so that it has one honest forecast; "
                f"row {times.argmax()} is held out {times.max()} times."
            )
        return splits

    def _output(self, model: Any, X: Any) -> FloatArray:
        """Return what a model says, one column per coordinate; classes that it has not seen have probability zero."""
        if self._classes is None:
            raw = np.asarray(model.predict(X), dtype=np.float64)
            return raw.reshape(len(raw), -1)
        table = np.asarray(model.predict_proba(X), dtype=np.float64)
        found = np.zeros((len(table), len(self._classes)))
        found[:, [self._classes.index(label) for label in np.asarray(model.classes_).tolist()]] = table
        return self._columns(found)

    def _placed(self, raw: FloatArray, past: list[FloatArray]) -> tuple[FloatArray, int]:
        """Return a model's output as ``(n, d)`` points of the space, and how many were clipped.

        Point forecasts for a grid get the residuals of past ones, ``(r, 2)`` with these.
        """
        if past:
            known = np.concatenate(past)
            found = forecasts_from(self._space, points=raw, residuals=known, residual_bins=self.residual_bins)
            raw = found.probabilities
        if raw.shape[1] != self._space.dimension:
            raise InputError(
                f"the estimator must forecast {self._space.dimension} number(s) per row, one per coordinate of the "
                f"outcome space; got {raw.shape[1]}."
            )
        nearest = self._space.project(raw) if self.outside == "clip" and np.isfinite(raw).all() else raw
        return self._space.place(nearest, "forecasts")[0], int((nearest != raw).any(axis=1).sum())

    def _outcomes(self, y: Any) -> FloatArray:
        """Return a target as ``(n, d)`` outcomes of the space."""
        if self._classes is None or isinstance(self._space, Grid):
            return self._space.place_outcomes(y, "y")
        return self._columns(Simplex(len(self._classes), classes=self._classes).place_outcomes(y, "y"))

    def _columns(self, table: FloatArray) -> FloatArray:
        return table[:, 1:] if self._space.dimension == 1 else table

    def forecast(self, X: Any) -> FloatArray:
        """Return the model's forecasts as points of the outcome space, ``(n, d)``."""
        check_is_fitted(self)
        return self._placed(self._output(self.estimator_, X), self._past)[0]


class CalibratedForecaster(ModelForecasts):
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
        Unfitted; it is cloned. Without a space of its own it gets the simplex of a classifier's classes. With two
        classes its space may have one coordinate, the probability of the second.
    cv : int or splitter
        Folds; each row is held out at most once. Rows that never are, as the first ones of ``TimeSeriesSplit``, take no
        part in the recalibration.
    outside : {"refuse", "clip"}
        What to do with forecasts that lie outside the outcome space. Clipping changes the forecaster;
        the recalibrator then works on what came of it.

    Attributes
    ----------
    estimator_, recalibrator_ : fitted
    guarantee_ : Guarantee
        Of the recalibrated forecasts.
    classes_ : array
        Of a classifier, in the order of the columns: the one that the recalibrator's space names, or sorted.
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

    def __init__(self, estimator: Any, recalibrator: Recalibrator, *, cv: Any = 5, outside: str = "refuse") -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.outside = outside

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the recalibrator on cross-fitted forecasts and the model on all rows.

        ``groups`` are for a splitter that keeps groups of rows together.
        """
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(
                f"recalibrator must be one of the library's, such as DecisionCalibrator(problem); "
                f"got {type(self.recalibrator).__name__}."
            )
        target = column_or_1d(y, warn=True) if is_classifier(self.estimator) else y
        classes, recalibrator = known_classes(self.estimator, target), clone(self.recalibrator)
        if classes:
            recalibrator = recalibrator.for_space(Simplex(len(classes)))  # not the box of its default
        self._set_output(self.estimator, target, recalibrator.intended_space(Cases(target).width))
        forecasts, known = self._fit_model(self.estimator, X, target, sample_weight, groups)
        shares = None if sample_weight is None else np.asarray(sample_weight)[known]
        recalibrator.fit(forecasts[known], self._outcomes(target)[known], sample_weight=shares)
        self.recalibrator_, self.guarantee_ = recalibrator, recalibrator.guarantee_
        return self

    @available_if(is_classifier)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def predict_proba(self, X: Any) -> FloatArray:
        """Return recalibrated class probabilities, ``(n, classes)``."""
        moved = self._recalibrated(X)
        return np.hstack([1 - moved, moved]) if moved.shape[1] == 1 else moved

    def predict(self, X: Any) -> Any:
        """Return the most probable class, or the recalibrated forecast of a regressor."""
        if is_classifier(self):
            shares = self.predict_proba(X)
            return self.classes_[shares.argmax(axis=1)]
        moved = self._recalibrated(X)
        return moved[:, 0] if moved.shape[1] == 1 else moved

    def _recalibrated(self, X: Any) -> FloatArray:
        forecasts = self.forecast(X)  # first: it says what is wrong where nothing was fitted
        return self.recalibrator_.transform(forecasts)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier or R squared of a regressor, as scikit-learn's own have it."""
        kind = ClassifierMixin if is_classifier(self) else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags, model = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
            setattr(tags, name, getattr(model, name))
        return tags


def known_classes(estimator: Any, y: Any) -> list[Any] | None:
    """The classes that a classifier knows or will know, sorted; None for a regressor."""
    if not is_classifier(estimator):
        return None
    classes = list(np.unique(np.asarray(estimator.classes_ if _is_frozen(estimator) else y)).tolist())
    if len(classes) < 2:
        raise InputError(f"y must have at least two classes; got 1 class, {classes}.")
    return classes


def fit_weights(estimator: Any, weights: Any) -> dict[str, Any]:
    """Weights of rows under the name by which a model's fit, or that of a pipeline's last step, takes them."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline) and estimator.steps:
        name, last = estimator.steps[-1]
        return {f"{name}__{key}": value for key, value in fit_weights(last, weights).items()}
    taken = weights is not None and has_fit_parameter(estimator, "sample_weight")
    return {"sample_weight": weights} if taken else {}


def _is_frozen(estimator: Any) -> bool:
    """Say whether a model must not be fitted again."""
    from sklearn.frozen import FrozenEstimator

    return isinstance(estimator, FrozenEstimator)
