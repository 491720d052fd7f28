"""Forecasts of rows by models that have not seen them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, indexable

from prudent.arrays import FloatArray
from prudent.decision_maker.reading import Reading
from prudent.errors import InputError

__all__ = ["cross_fitted_forecasts"]


def cross_fitted_forecasts(
    estimator: Any,
    X: Any,
    y: Any,
    reading: Reading,
    cv: Any,
    fit_params: dict[str, Any],
    split_params: dict[str, Any],
) -> tuple[FloatArray, int]:
    """Return for each row the forecast of a model fitted on the other folds, and how many were clipped."""
    from sklearn.model_selection import check_cv  # late: keeps `import prudent` fast

    X, y = indexable(X, y)  # noqa: N806  # scikit-learn's name
    try:
        splitter = check_cv(cv, y, classifier=reading.classes is not None)
        splits = list(splitter.split(X, y, **split_params))
    except (ValueError, TypeError) as error:
        raise InputError(f"cv must be a number of folds from 2, or a splitter; {error}") from error
    n = len(y)
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    if (times != 1).any():
        raise InputError(
            "cv must hold out every row exactly once, so that every row has one honest forecast; "
            f"row {int(np.flatnonzero(times != 1)[0])} is held out {int(times[times != 1][0])} times."
        )
    forecasts = np.empty((n, reading.space.dimension))
    clipped = 0
    for train, test in splits:
        params = {name: _safe_indexing(value, train) for name, value in fit_params.items() if value is not None}
        model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
        forecasts[test], moved = reading.forecasts(model, _safe_indexing(X, test))
        clipped += moved
    return forecasts, clipped
