"""Recalibration of one coordinate by a step function: bins, or isotonic regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from prudent.arrays import FloatArray, finite_array
from prudent.errors import InputError
from prudent.guarantees import Binned
from prudent.guarantees.base import Guarantee, positive_integer
from prudent.recalibration.base import Recalibrator, read_pairs
from prudent.spaces import Box, Space

__all__ = ["HistogramCalibrator", "IsotonicCalibrator"]


class _StepCalibrator(Recalibrator):
    """Replace a forecast by the mean outcome of its step; on each level the output is right on average.

    Attributes
    ----------
    edges_ : array of shape (k - 1,)
        Forecasts at which the output changes.
    levels_ : array of shape (k,)
        The output between edges.
    guarantee_ : Guarantee
        Bins of the *output*, one per level.
    """

    edges_: FloatArray
    levels_: FloatArray

    def _set(self, space: Space, edges: FloatArray, levels: FloatArray) -> Self:
        self.space_, self.edges_, self.levels_ = space, edges, levels
        self.guarantee_ = _bins_of_levels(levels, space)
        self.n_features_in_ = 1
        return self

    def _moved(self, forecasts: FloatArray) -> FloatArray:
        return self.levels_[np.searchsorted(self.edges_, forecasts[:, 0], side="right")][:, None]

    def _describe(self) -> dict[str, Any]:
        return {"edges": self.edges_.tolist(), "levels": self.levels_.tolist()}

    @classmethod
    def _rebuild(cls, content: dict[str, Any], space: Space) -> Self:
        edges, levels = (finite_array(content[name], name).reshape(-1) for name in ("edges", "levels"))
        if levels.size != edges.size + 1 or (np.diff(edges) <= 0).any():
            raise ValueError("edges must rise and be one fewer than levels.")
        return cls()._set(space, edges, space.place(levels, "levels")[0][:, 0])


class HistogramCalibrator(_StepCalibrator):
    """Mean outcome per bin of the forecast.

    Parameters
    ----------
    bins : int
        Of equal weight in the fitting sample.
    space : Box, optional
        Of one coordinate; [0, 1] by default.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts**2).astype(float)
    >>> calibrator = prudent.HistogramCalibrator(bins=5).fit(forecasts, outcomes)
    >>> prudent.audit(calibrator.transform(forecasts), outcomes, calibrator.guarantee_).rejected
    ()
    """

    _kind = "histogram"

    def __init__(self, bins: int = 10, *, space: Space | None = None) -> None:
        self.bins = bins
        self.space = space

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Take bins from forecasts and their levels from outcomes."""
        count = positive_integer(self.bins, "bins")
        space = _one_coordinate(self.space)
        pairs = read_pairs(X, y, sample_weight, space)
        order = np.argsort(pairs.forecasts[:, 0], kind="stable")
        values = pairs.forecasts[order, 0]
        reached = np.cumsum(pairs.weights[order])
        first = np.searchsorted(reached, np.arange(1, count) / count)
        edges = np.unique(values[np.minimum(first, values.size - 1)])
        edges = edges[edges > values[0]]  # a bin without rows has no mean
        return self._set(space, edges, _means(pairs.forecasts, pairs.outcomes, pairs.weights, edges))


class IsotonicCalibrator(_StepCalibrator):
    """The best non-decreasing step function of the forecast, by scikit-learn's isotonic regression.

    Parameters
    ----------
    space : Box, optional
        Of one coordinate; [0, 1] by default.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts**2).astype(float)
    >>> calibrator = prudent.IsotonicCalibrator().fit(forecasts, outcomes)
    >>> bool((np.diff(calibrator.levels_) > 0).all())
    True
    """

    _kind = "isotonic"

    def __init__(self, *, space: Space | None = None) -> None:
        self.space = space

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Pool adjacent violators; between pools the step is in the middle."""
        from sklearn.isotonic import isotonic_regression  # late: it takes long to import

        space = _one_coordinate(self.space)
        pairs = read_pairs(X, y, sample_weight, space)
        values, index = np.unique(pairs.forecasts[:, 0], return_inverse=True)
        weights = np.bincount(index, weights=pairs.weights)
        means = np.bincount(index, weights=pairs.weights * pairs.outcomes[:, 0]) / weights
        fitted = isotonic_regression(means, sample_weight=weights)
        change = np.flatnonzero(np.diff(fitted) > 0)
        edges = (values[change] + values[change + 1]) / 2
        # Sums of a pool, not the regression's own running means, so that each level is right to the last digits.
        return self._set(space, edges, _means(pairs.forecasts, pairs.outcomes, pairs.weights, edges))


def _means(forecasts: FloatArray, outcomes: FloatArray, weights: FloatArray, edges: FloatArray) -> FloatArray:
    step = np.searchsorted(edges, forecasts[:, 0], side="right")
    total = np.bincount(step, weights=weights, minlength=edges.size + 1)
    means: FloatArray = np.bincount(step, weights=weights * outcomes[:, 0], minlength=edges.size + 1) / total
    return means


def _bins_of_levels(levels: FloatArray, space: Space) -> Guarantee:
    """Bins of the output that tell its levels apart."""
    (low,), (high,) = space.bounds
    distinct = np.unique(levels)
    middles = (distinct[:-1] + distinct[1:]) / 2
    return Binned((low, *middles[(middles > low) & (middles < high)].tolist(), high))


def _one_coordinate(space: Any) -> Space:
    chosen = Box(0.0, 1.0) if space is None else space
    if not isinstance(chosen, Box) or chosen.dimension != 1:
        raise InputError(
            f"space must be a Box of one coordinate for a step function; got {chosen!r}. With several coordinates use "
            f"GuaranteeCalibrator or DecisionCalibrator."
        )
    return chosen
