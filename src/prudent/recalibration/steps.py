"""Recalibration of one coordinate by a step function: bins, or isotonic regression."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from prudent.arrays import FloatArray, finite_array
from prudent.errors import InputError
from prudent.guarantees import Binned
from prudent.guarantees.base import Guarantee, positive_integer
from prudent.moments import MomentEstimates
from prudent.recalibration.base import Pairs, Recalibrator, held_out_residuals, read_pairs
from prudent.spaces import Box, Space

__all__ = ["HistogramCalibrator", "IsotonicCalibrator"]

_ROUNDING_OF_SUMS = 1e-12
_SAME_LEVEL = 64  # units in the last place of the space's bounds


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
    residuals_ : MomentEstimates
        Its moments on cross-fitted forecasts: each fold is moved by steps fitted on the others. With simultaneous 95%
        intervals; None where there were too few rows to hold some out, or after loading.
    """

    edges_: FloatArray
    levels_: FloatArray
    residuals_: MomentEstimates | None = None
    space: Space | None

    @abstractmethod
    def _steps(self, pairs: Pairs, space: Space) -> tuple[FloatArray, FloatArray]:
        """Find edges and levels from rows."""

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Find the steps, and measure on rows held out in turn what is left of the moments."""
        space = self.intended_space(1)
        pairs = read_pairs(X, y, sample_weight, space)
        self._set(space, *self._steps(pairs, space))
        self.residuals_ = held_out_residuals(self.guarantee_, space, pairs, self._moved_by)
        return self

    def intended_space(self, columns: int) -> Space:  # noqa: ARG002  # one, whatever comes
        """The space given, or [0, 1]."""
        chosen = Box(0.0, 1.0) if self.space is None else self.space
        if not isinstance(chosen, Box) or chosen.dimension != 1:
            raise InputError(
                f"space must be a Box of one coordinate for a step function; got {chosen!r}. With several coordinates "
                f"use GuaranteeCalibrator or DecisionCalibrator."
            )
        return chosen

    def _moved_by(self, fitting: Pairs, forecasts: FloatArray) -> FloatArray:
        edges, levels = self._steps(fitting, self.space_)
        return levels[np.searchsorted(edges, forecasts[:, 0], side="right")][:, None]

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

    def _steps(self, pairs: Pairs, space: Space) -> tuple[FloatArray, FloatArray]:
        """Take bins from forecasts and their levels from outcomes."""
        count = positive_integer(self.bins, "bins")
        values, index = np.unique(pairs.forecasts[:, 0], return_inverse=True)
        reached = np.cumsum(np.bincount(index, weights=pairs.weights))
        # A bin ends with the value that fills it, up to the rounding of sums; the next value begins another.
        last = np.searchsorted(reached, np.arange(1, count) / count - _ROUNDING_OF_SUMS)
        edges = values[np.unique(last[last < values.size - 1]) + 1]
        return edges, _means(pairs, edges, space)


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

    def _steps(self, pairs: Pairs, space: Space) -> tuple[FloatArray, FloatArray]:
        """Pool adjacent violators; between pools the step is in the middle."""
        from sklearn.isotonic import isotonic_regression  # late: it takes long to import

        values, index = np.unique(pairs.forecasts[:, 0], return_inverse=True)
        weights = np.bincount(index, weights=pairs.weights)
        means = np.bincount(index, weights=pairs.weights * pairs.outcomes[:, 0]) / weights
        fitted = isotonic_regression(means, sample_weight=weights)
        change = np.flatnonzero(np.diff(fitted) > 0)
        below, above = values[change], values[change + 1]
        middles = below + (above - below) / 2
        edges = np.where(middles > below, middles, above)  # next to each other there is no middle
        # Sums of a pool, not the regression's own running means, so that each level is right to the last digits.
        return edges, _means(pairs, edges, space)


def _means(pairs: Pairs, edges: FloatArray, space: Space) -> FloatArray:
    """Mean outcome per step; those that differ by rounding only become one number."""
    step = np.searchsorted(edges, pairs.forecasts[:, 0], side="right")
    total = np.bincount(step, weights=pairs.weights, minlength=edges.size + 1)
    sums = np.bincount(step, weights=pairs.weights * pairs.outcomes[:, 0], minlength=edges.size + 1)
    means = np.clip(sums / total, *space.bounds)  # rounding may leave the space
    distinct, index = np.unique(means, return_inverse=True)
    size = max(abs(float(end[0])) for end in space.bounds)
    new = np.append(True, np.diff(distinct) > _SAME_LEVEL * np.spacing(size))
    level: FloatArray = distinct[np.flatnonzero(new)[np.cumsum(new) - 1]][index]
    return level


def _bins_of_levels(levels: FloatArray, space: Space) -> Guarantee:
    """Bins of the output that tell its levels apart."""
    (low,), (high,) = space.bounds
    distinct = np.unique(levels)
    middles = distinct[:-1] + np.diff(distinct) / 2
    inner = np.unique(np.where(middles > distinct[:-1], middles, distinct[1:]))
    return Binned((low, *inner[(inner > low) & (inner < high)].tolist(), high))
