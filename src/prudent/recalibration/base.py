"""What all recalibrators share: forecasts in, better forecasts of the same kind out, and a file."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, frozen, row_weights
from prudent.cases.cases import Cases
from prudent.cases.intervals import MomentEstimates
from prudent.errors import FileFormatError, InputError
from prudent.files import Saved
from prudent.files.records import Document, Record
from prudent.guarantees import Guarantee
from prudent.spaces import Box, Space, require_space, space_from_dict

_KINDS: dict[str, type[Recalibrator]] = {}
_FOLDS = 5


@frozen
class Pairs:
    """Forecasts with outcomes: rows of positive weight, weights with sum one."""

    forecasts: FloatArray
    outcomes: FloatArray
    weights: FloatArray

    def take(self, rows: Any) -> Pairs:
        """Keep some rows; their weights sum to one again."""
        weights = self.weights[rows]
        return Pairs(self.forecasts[rows], self.outcomes[rows], weights / weights.sum())

    def squared_error(self, forecasts: FloatArray) -> float:
        """Mean squared distance of forecasts for these rows from their outcomes."""
        return float(self.weights @ ((forecasts - self.outcomes) ** 2).sum(axis=1))

    def moments(self, guarantee: Guarantee, space: Space, forecasts: FloatArray) -> MomentEstimates:
        """Moments of a guarantee for forecasts of these rows, with simultaneous 95% intervals."""
        rows = Cases(forecasts, self.outcomes, weights=self.weights).on(space)
        return rows.measure(guarantee, 0.95).estimates


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
    _kind: ClassVar[str] = ""
    _fields: ClassVar[tuple[str, ...]] = ()  # of a file, besides kind and space: attributes without their underscore

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls._kind:
            _KINDS[cls._kind] = cls

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Find what moves forecasts, and measure on rows held out in turn what is left of the moments.

        Each fold is moved by a recalibrator fitted on the other folds. That is four fifths of the rows, so residuals
        are, if anything, too large. An interrupt leaves nothing half fitted.
        """
        fitted = type(self)(**self.get_params(deep=False))
        fitted.space_ = self.intended_space(X)
        pairs = read_pairs(X, y, sample_weight, fitted.space_)
        fitted._fit(pairs)
        n = len(pairs.forecasts)
        if fitted.residuals_ is None and n >= 10:
            fold = np.random.default_rng(0).permutation(n) % _FOLDS
            moved = np.empty_like(pairs.forecasts)
            for number in range(_FOLDS):
                out, twin = fold == number, copy(fitted)
                twin._fit(pairs.take(~out))
                moved[out] = twin._moved(pairs.forecasts[out])
            fitted.residuals_ = pairs.moments(fitted.guarantee_, fitted.space_, moved)
        self.__dict__.update({"residuals_": None} | vars(fitted))
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the recalibrated forecasts, shape ``(n, d)``."""
        check_is_fitted(self)
        moved = self._moved(self.space_.place(X, "forecasts")[0])
        return np.clip(moved, *self.space_.bounds)  # probabilities may exceed one by the rounding of their sum

    def to_dict(self) -> Document:
        """Describe what moves forecasts for a file."""
        check_is_fitted(self)
        state = {name: _plain(getattr(self, f"{name}_")) for name in self._fields}
        return {"recalibrator": self._kind, "space": self.space_.to_dict(), **state}

    def _content(self) -> Document:
        return self.to_dict()

    @classmethod
    def _rebuild(cls, content: Any) -> Any:
        kind = content.get("recalibrator") if isinstance(content, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            raise FileFormatError(f"recalibrator must be one of {sorted(_KINDS)}; got {kind!r}.")
        family = _KINDS[kind]
        record = Record(content, f"recalibrator {kind!r}", "recalibrator", "space", *family._fields)
        return family._restored(record, space_from_dict(record["space"]))

    @property
    def n_features_in_(self) -> int:
        """Number of coordinates of a forecast."""
        check_is_fitted(self)
        return self.space_.dimension

    def intended_space(self, X: Any) -> Space:
        """The outcome space that a fit on these forecasts will use: the one given, or [0, 1] per column."""
        if self.space is None:
            shape: tuple[int, ...] = np.asarray(X).shape
            return Box(0.0, 1.0).with_dimension(max(shape[1], 1) if len(shape) == 2 else 1)
        return require_space(self.space)

    @abstractmethod
    def _fit(self, pairs: Pairs) -> None:
        """Find the state on rows of ``space_``, which is set; ``residuals_``, too, where some rows are held out."""

    @abstractmethod
    def _moved(self, forecasts: FloatArray) -> FloatArray:
        """Recalibrate points of the space."""

    @classmethod
    @abstractmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        """Rebuild a fitted recalibrator from its description."""


def read_pairs(forecasts: Any, outcomes: Any, sample_weight: Any, space: Space) -> Pairs:
    """Check forecasts, outcomes and weights for a fit; cases bring their own."""
    if isinstance(forecasts, Cases) and outcomes is None:
        outcomes, sample_weight = forecasts.outcomes, forecasts.weights if sample_weight is None else sample_weight
    placed, _ = space.place(forecasts, "forecasts")
    if outcomes is None:
        raise InputError("outcomes must be given: requires y to be passed, but the target y is None.")
    known = space.place_outcome_of_each(outcomes, len(placed))
    weights, used = row_weights(sample_weight, len(placed))
    pairs = Pairs(placed, known, weights)
    return pairs if used.all() else pairs.take(used)


def _plain(value: Any) -> Any:
    """Write an attribute as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, np.ndarray):
        return value if value is None else value.tolist()
    if not hasattr(value, "to_dict") or not getattr(value, "savable", True):
        raise InputError(f"a file holds objects of this library without Python functions; got {type(value).__name__}.")
    return value.to_dict()
