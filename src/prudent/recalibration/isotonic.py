"""Recalibration by isotonic regression."""

from typing import Any, Self

import numpy as np

from prudent.arrays import Context, FloatArray
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import FileFormatError
from prudent.files.records import Record
from prudent.guarantees import Bins, Nothing
from prudent.recalibration.base import Recalibrator, join_coordinates, split_coordinates, split_weights
from prudent.spaces import Space

_SAME_LEVEL = 64  # units in the last place of the space's bounds
_MOST_LEVELS = 100  # so that rules stay short in SQL


class IsotonicCalibrator(Recalibrator):
    """The best non-decreasing step function of each coordinate, by scikit-learn's isotonic regression.

    On the simplex every class is fitted against the rest, and probabilities are normalised; of two classes the second
    is fitted alone. Functions with more than 100 steps are simplified to 100.

    Parameters
    ----------
    space : Box or Simplex, optional
        [0, 1] for every column by default.

    Attributes
    ----------
    edges_ : list of d arrays
        Forecasts at which the output changes: in the middle between two that have different outputs. Two classes have
        one array, for the probability of the second.
    levels_ : list of d arrays, one longer than the edges
        The output between edges: the mean outcome there.
    guarantee_ : Bins, or Nothing
        Of the *output* in one coordinate, one bin per level: on each the output is right on average.
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
    >>> bool((np.diff(calibrator.levels_[0]) > 0).all())
    True
    """

    _kind = "isotonic"
    _fields = ("edges", "levels")

    def __init__(self, *, space: Space | None = None) -> None:
        self.space = space

    def turning_points(self) -> FloatArray:
        """Where the map of one coordinate changes."""
        return self.edges_[0]

    def _fit(self, rows: MemoryRows) -> None:
        """Pool adjacent violators."""
        tables, bounds = (rows.forecasts, rows.known_outcomes), np.transpose(self.space_.bounds)
        columns = zip(*(split_coordinates(self.space_, table).T for table in tables), bounds, strict=False)
        steps = [_steps(v, y, split_weights(rows), *ends) for v, y, ends in columns]
        self._set(*map(list, zip(*steps, strict=True)))

    def _set(self, edges: list[FloatArray], levels: list[FloatArray]) -> None:
        self.edges_, self.levels_, self.guarantee_ = edges, levels, Nothing()
        if self.space_.dimension == 1:
            low, high = self.space_.interval
            distinct = np.unique(levels[0])
            inner = _between(distinct[:-1], distinct[1:])
            self.guarantee_ = Bins((low, *inner[(inner > low) & (inner < high)].tolist(), high))

    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        columns = zip(self.edges_, self.levels_, split_coordinates(self.space_, forecasts).T, strict=True)
        moved = [levels[np.searchsorted(edges, column, side="right")] for edges, levels, column in columns]
        return join_coordinates(self.space_, np.stack(moved, axis=1))

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        edges, levels = (
            [Record({name: numbers}, "steps", name).array(name, None) for numbers in record.typed(name, list)]
            for name in cls._fields
        )
        fits = len(edges) == len(levels) == (1 if space.one_map else space.dimension)
        for rising, held, low, high in zip(edges, levels, *space.bounds, strict=False):
            fits &= held.size == rising.size + 1 and bool((np.diff(rising) > 0).all())
            fits &= bool(((held >= low) & (held <= high)).all())
        if not fits:
            raise FileFormatError("each coordinate must have edges that rise, and one level more, within the space.")
        calibrator = cls(space=space)
        calibrator.space_ = space
        calibrator._set(edges, levels)
        return calibrator


def _steps(v: FloatArray, y: FloatArray, weights: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Edges and levels of the best non-decreasing step function."""
    from sklearn.isotonic import isotonic_regression  # late: it takes long to import

    values, index = np.unique(v, return_inverse=True)
    shares = np.bincount(index, weights=weights)
    # Outcomes relative to the lower bound: far from zero their sums would lose digits.
    means = np.bincount(index, weights=weights * (y - low)) / shares
    outputs = isotonic_regression(means, sample_weight=shares)
    # Outputs that differ by rounding only are one level.
    same = np.diff(outputs, prepend=outputs[0]) <= _SAME_LEVEL * np.spacing(max(abs(low), abs(high)))
    level = np.cumsum(~same)
    if level[-1] >= _MOST_LEVELS:  # join neighbours to as many groups of about equal weight
        ends = np.cumsum(np.bincount(level, weights=shares))
        level = np.unique(np.ceil(ends / ends[-1] * _MOST_LEVELS - 1e-9)[level], return_inverse=True)[1]
    last = np.flatnonzero(np.diff(level))
    joined = np.bincount(level, weights=shares * outputs) / np.bincount(level, weights=shares)
    return _between(values[last], values[last + 1]), np.clip(low + joined, low, high)


def _between(below: FloatArray, above: FloatArray) -> Any:
    """The middles of two numbers; of neighbouring floats, which have none, the upper one."""
    middles = below + (above - below) / 2
    return np.where(middles > below, middles, above)
