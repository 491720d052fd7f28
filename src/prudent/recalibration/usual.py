"""The usual recalibrations: a shift or an affine map of forecasts or of their log-odds, and isotonic regression."""

from typing import Any, Self

import numpy as np
from scipy.special import expit, log_softmax

from prudent.arrays import Context, FloatArray
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import FileFormatError, InputError
from prudent.files import Record
from prudent.guarantees import Bins, Guarantee, Nothing, SelfOrthogonal, Temperature, Unbiased
from prudent.recalibration.base import Recalibrator, join_coordinates, split_coordinates, split_weights
from prudent.spaces import Space

#: Log-odds, of forecasts and of what they become, stay within these bounds.
MOST_LOG_ODDS = float(np.log(1e6))
#: The probability with the least log-odds.
LEAST_SHARE = float(1 / (1 + np.exp(MOST_LOG_ODDS)))

_STEPS, _SHORTEST, _NO_BETTER = 100, 1e-6, 1e-13  # of Newton's method: how many, the last part of one, the least gain

METHODS = ("shift", "affine", "bias", "platt", "temperature", "vector")


class ScalingCalibrator(Recalibrator):
    """Platt, temperature and vector scaling, a bias in log-odds, a shift, an affine map: recalibration by few numbers.

    Forecasts become ``slope * v + intercept``, where ``v`` are forecasts or their logarithms. Few numbers need few
    rows; where the shape of the error is another one, :class:`IsotonicCalibrator` and :class:`DecisionCalibrator`
    follow it.

    Parameters
    ----------
    method : str
        Of outcomes in a Box: "shift" adds a number to each coordinate, "affine" also multiplies it. Of two classes, as
        ``Simplex(2)`` or as one coordinate with two outcome values: "bias" adds a number to the log-odds, "platt" also
        multiplies them (Platt scaling). Of any number of classes: "temperature" multiplies logarithms of probabilities,
        "bias" adds a number for each class, "vector" does both, with a slope for each class (vector scaling).
    space : Box or Simplex, optional
        [0, 1] for every column by default.

    Attributes
    ----------
    slopes_, intercepts_ : arrays of shape (d,)
        Two classes have one of each, for the log-odds of the second.
    low_, high_ : arrays of shape (d,)
        Range of the outcomes seen, which no output leaves.
    guarantee_ : Guarantee
        What the output satisfies on the fitting rows, up to the bounds.
    residuals_ : MomentEstimates
        Its moments on rows held out in turn, with simultaneous 95% intervals; None with fewer than ten rows.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(5000)
    >>> odds = (forecasts / (1 - forecasts)) ** 0.5                      # the forecasts are over-confident
    >>> outcomes = (rng.random(5000) < odds / (1 + odds)).astype(float)
    >>> calibrator = prudent.recalibration.ScalingCalibrator("platt").fit(forecasts, outcomes)
    >>> round(float(calibrator.slopes_[0]), 1)
    0.5
    """

    _kind = "scaling"
    _fields = ("method", "slopes", "intercepts", "low", "high")

    def __init__(self, method: str, *, space: Space | None = None) -> None:
        self.method = method
        self.space = space

    def intended_space(self, width: int) -> Space:
        """The space given, or [0, 1] for every column; refused where the method does not fit it."""
        space = super().intended_space(width)
        if self.method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)}; got {self.method!r}.")
        others = ("platt",) if self.linear != space.is_simplex else METHODS
        if self.method in (("vector",) if space.one_map else others):
            raise InputError(
                f"method {self.method!r} does not fit {space!r}: 'shift' and 'affine' are for boxes, 'temperature' and "
                f"'bias' for classes, 'platt' for two of them, 'vector' for more."
            )
        return space

    @property
    def linear(self) -> bool:
        """Whether forecasts themselves are scaled, and not their log-odds."""
        return self.method in ("shift", "affine")

    def _fit(self, rows: MemoryRows) -> None:
        self.fit_between(rows, rows)

    def fit_between(self, rows: MemoryRows, others: MemoryRows) -> Self:
        """Fit a map whose output stays within the outcomes of others; those of these rows may be averages of such."""
        self.space_, seen = rows.space, split_coordinates(rows.space, others.known_outcomes)
        self.low_, self.high_ = seen.min(axis=0), seen.max(axis=0)
        forecasts, outcomes = (split_coordinates(self.space_, table) for table in (rows.forecasts, rows.known_outcomes))
        weights = split_weights(rows)
        if self.linear:
            found = [
                _least_squares(v, y, weights, slope=self.method == "affine")
                for v, y in zip(forecasts.T, outcomes.T, strict=True)
            ]
            self.slopes_, self.intercepts_ = np.array(found).T
        else:
            scores, shares = self._scores(forecasts), self._shares(outcomes)
            if len(self.low_) == 1:  # two classes: the first has the score 0
                scores, shares = np.insert(scores, 0, 0.0, axis=1), np.hstack([1 - shares, shares])
            slopes, intercepts = _softmax_fit(scores, shares, weights, self.method)
            self.slopes_, self.intercepts_ = slopes[-len(self.low_) :], intercepts[-len(self.low_) :]
            if len(self.low_) == 1:
                self.intercepts_ = self.intercepts_ - intercepts[0]
        self._set_guarantee()
        return self

    def _set_guarantee(self) -> None:
        # Of two classes outputs may be zero, where only one was seen; that guarantee takes logarithms.
        warm = Nothing() if self.space_.one_map else Temperature()
        found: dict[str, Guarantee] = {"affine": SelfOrthogonal(intercept=True), "temperature": warm}
        means = Unbiased() if self.space_.free_dimension == 1 or not self.space_.one_map else Nothing()
        self.method_, self.guarantee_ = self.method, found.get(self.method, means)

    def _shares(self, outcomes: FloatArray) -> FloatArray:
        """Where outcomes lie between the least and the largest; those of several classes are as they are."""
        if outcomes.shape[1] > 1:
            return outcomes
        width = self.high_ - self.low_
        return np.asarray((outcomes - self.low_) / np.where(width > 0, width, 1.0))

    def _scores(self, forecasts: FloatArray) -> FloatArray:
        """Log-odds of one coordinate, logarithms of probabilities of several."""
        if forecasts.shape[1] > 1:
            return np.log(np.maximum(forecasts, LEAST_SHARE))
        shares = np.clip(self._shares(forecasts), LEAST_SHARE, 1 - LEAST_SHARE)
        return np.log(shares) - np.log1p(-shares)

    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        values = split_coordinates(self.space_, forecasts)
        if self.linear:
            moved = self.slopes_ * values + self.intercepts_
        else:
            moved = self.slopes_ * self._scores(values) + self.intercepts_
            if len(self.low_) == 1:
                moved = np.clip(moved, -MOST_LOG_ODDS, MOST_LOG_ODDS)
                moved = self.low_ + (self.high_ - self.low_) * expit(moved)
            else:
                moved = np.maximum(np.exp(log_softmax(moved, axis=1)), LEAST_SHARE)
                return moved / moved.sum(axis=1, keepdims=True)
        return join_coordinates(self.space_, np.clip(moved, self.low_, self.high_))

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        calibrator = cls(record.typed("method", str), space=space)
        calibrator.space_ = calibrator.intended_space(space.dimension)
        count = 1 if space.one_map else space.dimension
        for name in cls._fields[1:]:
            setattr(calibrator, f"{name}_", record.array(name, count))
        low, high = calibrator.low_, calibrator.high_
        if (low > high).any():
            raise FileFormatError("low must not be above high.")
        if not space.is_simplex:
            space.place(np.stack([low, high]), "low and high")
        calibrator._set_guarantee()
        return calibrator


def _least_squares(v: FloatArray, y: FloatArray, weights: FloatArray, *, slope: bool) -> tuple[float, float]:
    """Slope (one, unless asked for) and intercept with the least squared error."""
    centre, target = float(weights @ v), float(weights @ y)
    spread = float(weights @ (v - centre) ** 2)
    factor = float(weights @ ((v - centre) * (y - target))) / spread if slope and spread > 0 else 1.0
    return factor, target - factor * centre


def _softmax_fit(scores: FloatArray, shares: FloatArray, weights: FloatArray, method: str) -> list[FloatArray]:
    """Slopes and intercepts with the least log loss by Newton's method; a method leaves some of them fixed.

    All slopes and intercepts are ``start + directions @ free``.
    """
    k = scores.shape[1]
    start, directions = np.repeat([1.0, 0.0], k), np.eye(2 * k)
    if method == "temperature":
        directions = directions[:, :k].sum(axis=1, keepdims=True)
    elif method == "bias":
        directions = directions[:, k:]

    def logarithms(found: FloatArray) -> FloatArray:
        return log_softmax(scores * found[:k] + found[k:], axis=1)

    def loss(found: FloatArray) -> float:
        return -float(weights @ (shares * logarithms(found)).sum(axis=1))

    found, value = start, loss(start)
    for _ in range(_STEPS):
        chances = np.exp(logarithms(found))
        masses = weights[:, None] * chances
        surplus = masses - weights[:, None] * shares
        gradient = np.concatenate([(surplus * scores).sum(axis=0), surplus.sum(axis=0)])
        squares, products, sums = ((masses * scores**power).sum(axis=0) for power in (2, 1, 0))
        beside = np.hstack([chances * scores, chances])
        curvature = np.block([[np.diag(squares), np.diag(products)], [np.diag(products), np.diag(sums)]])
        curvature -= beside.T @ (weights[:, None] * beside)
        reduced = directions.T @ curvature @ directions
        ridge = 1e-9 * (1.0 + np.trace(reduced)) * np.eye(len(reduced))
        step = directions @ np.linalg.solve(reduced + ridge, -directions.T @ gradient)
        factor = 1.0
        while (improved := loss(found + factor * step)) > value and factor > _SHORTEST:
            factor *= 0.5
        if value - improved <= _NO_BETTER * (1.0 + value):
            break
        found, value = found + factor * step, improved
    return [found[:k], found[k:]]


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
