"""Recalibration of one coordinate by isotonic regression."""

from typing import Any, Self

import numpy as np

from prudent.arrays import FloatArray
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import FileFormatError, InputError
from prudent.files.records import Record
from prudent.guarantees import Bins
from prudent.recalibration.base import Recalibrator
from prudent.spaces import Space

_SAME_LEVEL = 64  # units in the last place of the space's bounds


class IsotonicCalibrator(Recalibrator):
    """The best non-decreasing step function of the forecast, by scikit-learn's isotonic regression.

    Parameters
    ----------
    space : Box, optional
        Of one coordinate; [0, 1] by default.

    Attributes
    ----------
    edges_ : array of shape (k - 1,)
        Forecasts at which the output changes: in the middle between two that have different outputs.
    levels_ : array of shape (k,)
        The output between edges: the mean outcome there.
    guarantee_ : Bins
        Of the *output*, one per level: on each the output is right on average.
    residuals_ : MomentEstimates
        Its moments on cross-fitted forecasts: each fold is moved by steps fitted on the others. With simultaneous 95%
        intervals; None where there were too few rows to hold some out, or after loading.

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
    _fields = ("edges", "levels")

    def __init__(self, *, space: Space | None = None) -> None:
        self.space = space

    def intended_space(self, width: int) -> Space:  # noqa: ARG002  # one coordinate, whatever comes
        """The space given, or [0, 1]."""
        chosen = super().intended_space(1)
        if chosen.dimension != 1:
            raise InputError(
                f"space must be a Box of one coordinate for a step function; got {chosen!r}. With several coordinates "
                f"use GuaranteeCalibrator or DecisionCalibrator."
            )
        return chosen

    def _fit(self, rows: MemoryRows) -> None:
        """Pool adjacent violators."""
        from sklearn.isotonic import isotonic_regression  # late: it takes long to import

        (low,), (high,) = self.space_.bounds
        values, index = np.unique(rows.forecasts[:, 0], return_inverse=True)
        weights = np.bincount(index, weights=rows.weights)
        # Outcomes relative to the lower bound: far from zero their sums would lose digits.
        means = np.bincount(index, weights=rows.weights * (rows.known_outcomes[:, 0] - low)) / weights
        outputs = low + isotonic_regression(means, sample_weight=weights, y_min=0.0, y_max=high - low)
        # Outputs that differ by rounding only are one level.
        rounding = _SAME_LEVEL * np.spacing(max(abs(low), abs(high)))
        last = np.flatnonzero(np.diff(outputs) > rounding)
        self._set(_between(values[last], values[last + 1]), np.clip(outputs[[*last, -1]], low, high))

    def _set(self, edges: FloatArray, levels: FloatArray) -> None:
        self.edges_, self.levels_ = edges, levels
        (low,), (high,) = self.space_.bounds
        distinct = np.unique(levels)
        inner = _between(distinct[:-1], distinct[1:])
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


def _between(below: FloatArray, above: FloatArray) -> Any:
    """The middles of two numbers; of neighbouring floats, which have none, the upper one."""
    middles = below + (above - below) / 2
    return np.where(middles > below, middles, above)
