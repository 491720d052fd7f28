"""What all recalibrators share: forecasts in, better forecasts of the same kind out, and a file."""

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import Context, FloatArray, IntArray, context_rows, require_context
from prudent.cases.cases import Cases, read_cases
from prudent.cases.memory_rows import MemoryRows
from prudent.cases.moment_sums import MomentEstimates
from prudent.errors import FileFormatError, InputError
from prudent.files import Document, Record, Saved
from prudent.guarantees import Guarantee
from prudent.spaces import Box, Grid, Space, require_space, space_from_dict

#: Of what a fit measures on rows that had no part in it.
CONFIDENCE = 0.95
FOLDS = 5

Rule = Callable[[FloatArray, Context | None], FloatArray]


class Recalibrator(TransformerMixin, BaseEstimator, Saved):  # type: ignore[misc]  # scikit-learn ships no types
    """A transformer of forecasts that knows which guarantee its output satisfies.

    A subclass finds its state from rows, sets ``guarantee_``, and says how rows are moved.

    A file holds what moves forecasts and the guarantee of the output, so that the output of what was loaded is bit for
    bit that of the original. What a fit measured besides (residuals, squared errors, the table of decision makers) and
    parameters that only matter to a fit are not in it.
    """

    space: Space | None
    space_: Space
    guarantee_: Guarantee
    residuals_: MomentEstimates | None = None

    _format = "prudent-recalibrator"
    _kind: ClassVar[str]
    _fields: ClassVar[tuple[str, ...]]  # of a file, besides kind and space: attributes without their underscore

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of context that the map looks at."""
        return ()

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, context: Any = None) -> Self:
        """Find what moves forecasts, and measure on rows held out in turn what is left of the moments.

        Each fold is moved by a recalibrator fitted on the other folds. That is four fifths of the rows, so residuals
        are, if anything, too large. An interrupt leaves nothing half fitted.
        """
        cases = read_cases(X, y, weights=sample_weight, context=context)
        words = any(isinstance(label, str) for label in np.ravel(np.asarray(cases.outcomes))[:1])
        if words and getattr(self, "space", False) is None:
            raise InputError(
                "space must be given where outcomes are class labels: space=problem.space, or Simplex(classes=...)."
            )
        rows = cases.on(self.intended_space(cases.width))
        n = len(rows.known_outcomes)
        fitted = type(self)(**self.get_params(deep=False)).fit_map(rows)
        if fitted.residuals_ is None and n >= 10:

            def others(part: MemoryRows) -> Rule:
                twin = copy(fitted)
                twin._fit(part)
                return twin._moved

            moved = cross_fitted(rows, np.random.default_rng(0).permutation(n) % FOLDS, rows.space.dimension, others)
            fitted.residuals_ = residual_moments(rows, moved, fitted.guarantee_)
        self.__dict__.update({"residuals_": None} | vars(fitted))
        return self

    def fit_map(self, rows: MemoryRows) -> Self:
        """Fit what was never fitted to cases that were placed before, without measuring what is left."""
        self.space_ = rows.space
        self._fit(rows)
        return self

    def transform(self, X: Any, context: Any = None) -> FloatArray:
        """Return the recalibrated forecasts, shape ``(n, d)``; ``context`` is needed if the map looks at it."""
        check_is_fitted(self)
        points, _ = self.space_.place(X, "forecasts")
        known = require_context(read_cases(X, context=context).context, self.columns, len(points))
        moved = self._moved(points, known)
        return np.clip(moved, *self.space_.bounds)  # probabilities may exceed one by the rounding of their sum

    def to_dict(self) -> Document:
        """Describe what moves forecasts for a file."""
        check_is_fitted(self)
        state = {name: _plain(getattr(self, f"{name}_")) for name in self._fields}
        return {"recalibrator": self._kind, "space": self.space_.to_dict(), **state}

    _content = to_dict

    @classmethod
    def _rebuild(cls, content: Any) -> Any:
        families = {family._kind: family for family in Recalibrator.__subclasses__()}
        kind = content.get("recalibrator") if isinstance(content, dict) else None
        if not isinstance(kind, str) or kind not in families:
            raise FileFormatError(f"recalibrator must be one of {sorted(families)}; got {kind!r}.")
        record = Record(content, f"recalibrator {kind!r}", "recalibrator", "space", *families[kind]._fields)
        return families[kind]._restored(record, space_from_dict(record["space"]))

    @property
    def n_features_in_(self) -> int:
        """Number of coordinates of a forecast."""
        check_is_fitted(self)
        return self.space_.dimension

    def intended_space(self, width: int) -> Space:
        """The outcome space of a fit on forecasts of so many columns: the one given, or [0, 1] per column."""
        return Box(0.0, 1.0).with_dimension(width) if self.space is None else require_space(self.space)

    def for_space(self, space: Space) -> Self:
        """An unfitted copy for a space, where none was given."""
        found: Self = clone(self)
        if found.get_params(deep=False).get("space", found) is None:
            found.set_params(space=space)
        return found

    @abstractmethod
    def _fit(self, rows: MemoryRows) -> None:
        """Find the state and ``guarantee_``; ``space_`` is set. Also ``residuals_``, where some rows are held out."""

    @abstractmethod
    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        """Recalibrate points of the space, with the context of their rows where the map looks at it."""

    @classmethod
    @abstractmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        """Rebuild a fitted recalibrator from its description."""


def split_coordinates(space: Space, points: FloatArray) -> FloatArray:
    """Points by the coordinates that are recalibrated: of two classes the probability of the second alone.

    On a grid all cumulative probabilities are one coordinate, row after row.
    """
    if isinstance(space, Grid):
        return np.cumsum(points, axis=1)[:, :-1].reshape(-1, 1)
    return points[:, -1:] if space.one_map else points


def split_weights(rows: MemoryRows) -> FloatArray:
    """Weights of what :func:`split_coordinates` has."""
    count = rows.space.free_dimension if rows.space.one_map else 1
    return np.repeat(rows.weights / count, count)


def join_coordinates(space: Space, values: FloatArray) -> FloatArray:
    """Points of a space from what :func:`split_coordinates` has; probabilities of several classes are normalised."""
    if not space.is_simplex:
        return values
    if isinstance(space, Grid):
        return space.from_cumulative(values.reshape(-1, space.free_dimension))
    if values.shape[1] == 1:
        return np.hstack([1 - values, values])
    sums = values.sum(axis=1, keepdims=True)
    return np.where(sums > 0, values / np.where(sums > 0, sums, 1.0), 1 / values.shape[1])


def some_cases(rows: MemoryRows, which: Any, periods: Any = None) -> Cases:
    """Some rows as cases, with other periods."""
    context, weights = context_rows(rows.context, which), rows.weights[which]
    return Cases(rows.forecasts[which], rows.known_outcomes[which], weights=weights, periods=periods, context=context)


def cross_fitted(rows: MemoryRows, folds: IntArray, width: int, fit: Callable[[MemoryRows], Rule]) -> FloatArray:
    """What rules ``(n, width)`` say about rows that had no part in fitting them; folds from ``FOLDS`` on never have."""
    found, numbers = np.empty((len(folds), width)), folds % FOLDS
    for fold in np.unique(numbers):
        own = numbers == fold
        learned = rows.take(~own & (folds < FOLDS))
        found[own] = fit(learned)(rows.forecasts[own], context_rows(rows.context, own))
    return found


def squared_error(rows: MemoryRows, forecasts: FloatArray) -> float:
    """Mean squared distance of forecasts for these rows from their outcomes."""
    return float(rows.weights @ ((forecasts - rows.known_outcomes) ** 2).sum(axis=1))


def residual_moments(rows: MemoryRows, forecasts: FloatArray, guarantee: Guarantee) -> MomentEstimates:
    """Moments of a guarantee for other forecasts of these rows, with simultaneous intervals."""
    return replace(rows, forecasts=forecasts, periods=None).measure(guarantee, CONFIDENCE).estimates


def _plain(value: Any) -> Any:
    """Write an attribute as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if not hasattr(value, "to_dict") or not getattr(value, "savable", True):
        raise InputError(f"a file holds objects of this library without Python functions; got {type(value).__name__}.")
    return value.to_dict()
