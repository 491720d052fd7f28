"""Recalibration of one coordinate by a step function: bins, or isotonic regression."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from prudent.arrays import FloatArray, positive_integer
from prudent.errors import FileFormatError, InputError
from prudent.files.records import Record
from prudent.guarantees import Bins
from prudent.recalibration.base import Pairs, Recalibrator
from prudent.spaces import Space

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

    _fields = ("edges", "levels")

    edges_: FloatArray
    levels_: FloatArray

    @abstractmethod
    def _edges(self, values: FloatArray, weights: FloatArray, means: FloatArray) -> FloatArray:
        """Find edges from the different forecasts, in order, with their weights and mean outcomes."""

    def intended_space(self, X: Any) -> Space:  # noqa: ARG002  # one coordinate, whatever comes
        """The space given, or [0, 1]."""
        chosen = super().intended_space(0.0)
        if chosen.dimension != 1:
            raise InputError(
                f"space must be a Box of one coordinate for a step function; got {chosen!r}. With several coordinates "
                f"use GuaranteeCalibrator or DecisionCalibrator."
            )
        return chosen

    def _fit(self, pairs: Pairs) -> None:
        """Find edges, and levels from the mean outcome between them."""
        (low,), (high,) = self.space_.bounds
        values, index = np.unique(pairs.forecasts[:, 0], return_inverse=True)
        weights: FloatArray = np.bincount(index, weights=pairs.weights).astype(np.float64)
        # Outcomes relative to the lower bound: far from zero their sums would lose digits.
        sums = np.bincount(index, weights=pairs.weights * (pairs.outcomes[:, 0] - low))
        edges = self._edges(values, weights, sums / weights)
        step = np.searchsorted(edges, values, side="right")
        means = np.bincount(step, weights=sums) / np.bincount(step, weights=weights)
        levels = np.clip(low + means, low, high)  # rounding may leave the space
        # Levels that differ by rounding only become one number.
        distinct, index = np.unique(levels, return_inverse=True)
        new = np.append(True, np.diff(distinct) > _SAME_LEVEL * np.spacing(max(abs(low), abs(high))))
        self._set(edges, distinct[np.flatnonzero(new)[np.cumsum(new) - 1]][index])

    def _set(self, edges: FloatArray, levels: FloatArray) -> None:
        self.edges_, self.levels_ = edges, levels
        (low,), (high,) = self.space_.bounds
        distinct = np.unique(levels)
        inner = np.unique(_between(distinct[:-1], distinct[1:]))
        self.guarantee_ = Bins((low, *inner[(inner > low) & (inner < high)].tolist(), high))

    def _moved(self, forecasts: FloatArray) -> FloatArray:
        return self.levels_[np.searchsorted(self.edges_, forecasts, side="right")]

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        edges = record.array("edges", None)
        levels = record.array("levels", edges.size + 1)
        if (np.diff(edges) <= 0).any():
            raise FileFormatError("edges must rise.")
        calibrator = cls()
        calibrator.space_ = space
        calibrator._set(edges, space.place(levels, "levels")[0][:, 0])
        return calibrator


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
    >>> calibrator = prudent.recalibration.HistogramCalibrator(bins=5).fit(forecasts, outcomes)
    >>> prudent.audit(None, calibrator.transform(forecasts), outcomes, guarantee=calibrator.guarantee_).rejected
    ()
    """

    _kind = "histogram"

    def __init__(self, bins: int = 10, *, space: Space | None = None) -> None:
        self.bins = bins
        self.space = space

    def _edges(self, values: FloatArray, weights: FloatArray, means: FloatArray) -> FloatArray:  # noqa: ARG002
        """A bin ends with the value that fills it, up to the rounding of sums; the next value begins another."""
        count = positive_integer(self.bins, "bins")
        last = np.searchsorted(np.cumsum(weights), np.arange(1, count) / count - 1e-12)
        return values[np.unique(last[last < values.size - 1]) + 1]


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
    >>> calibrator = prudent.recalibration.IsotonicCalibrator().fit(forecasts, outcomes)
    >>> bool((np.diff(calibrator.levels_) > 0).all())
    True
    """

    _kind = "isotonic"

    def __init__(self, *, space: Space | None = None) -> None:
        self.space = space

    def _edges(self, values: FloatArray, weights: FloatArray, means: FloatArray) -> FloatArray:
        """Pool adjacent violators; between pools the step is in the middle."""
        from sklearn.isotonic import isotonic_regression  # late: it takes long to import

        change = np.flatnonzero(np.diff(isotonic_regression(means, sample_weight=weights)) > 0)
        return _between(values[change], values[change + 1])


def _between(below: FloatArray, above: FloatArray) -> FloatArray:
    """The middles of two numbers; of neighbouring floats, which have none, the upper one."""
    middles = below + (above - below) / 2
    return np.where(middles > below, middles, above)
