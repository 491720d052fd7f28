"""What all recalibrators share: forecasts in, better forecasts of the same kind out, and a file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, row_weights
from prudent.errors import FileFormatError, InputError
from prudent.files import read_document, write_document
from prudent.guarantees.base import Guarantee
from prudent.moments import MomentEstimates, estimate_moments
from prudent.spaces import Box, Simplex, Space, space_from_dict

__all__ = [
    "Pairs",
    "Recalibrator",
    "held_out_residuals",
    "read_pairs",
    "recalibrator_from_dict",
    "recalibrator_to_dict",
]

_FORMAT = "prudent-recalibrator"
_VERSION = 1
_KINDS: dict[str, type[Recalibrator]] = {}
_FOLDS = 5
_ROWS_TO_HOLD_OUT = 10


@dataclass(frozen=True, eq=False)
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


class Recalibrator(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A transformer of forecasts that knows which guarantee its output satisfies.

    Subclasses fit, set ``space_`` and ``guarantee_``, and say how rows are moved.
    """

    space_: Space
    guarantee_: Guarantee

    _kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls._kind:
            _KINDS[cls._kind] = cls

    def transform(self, X: Any) -> FloatArray:
        """Return the recalibrated forecasts, shape ``(n, d)``."""
        check_is_fitted(self)
        return self._moved(self.space_.place(X, "forecasts")[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted recalibrator to one JSON file, whole or not at all."""
        check_is_fitted(self)
        write_document(path, _FORMAT, _VERSION, recalibrator_to_dict(self))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Recalibrator:
        """Read a recalibrator that was saved; its output is bit for bit that of the original.

        The file holds what moves forecasts and the guarantee of the output. What a fit measured besides (residuals,
        squared errors, the table of decision makers) and parameters that only matter to a fit are not in it.
        """
        content = read_document(path, _FORMAT, _VERSION)
        try:
            return recalibrator_from_dict(content)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError) as error:
            raise FileFormatError(f"{str(path)!r} has a field with a wrong value: {error}") from error

    @abstractmethod
    def intended_space(self, columns: int) -> Space:
        """The outcome space that a fit on forecasts with so many columns will use."""

    @abstractmethod
    def _moved(self, forecasts: FloatArray) -> FloatArray:
        """Recalibrate points of the space."""

    @abstractmethod
    def _describe(self) -> dict[str, Any]:
        """Describe everything but kind and space for a file."""

    @classmethod
    @abstractmethod
    def _rebuild(cls, content: dict[str, Any], space: Space) -> Self:
        """Rebuild a fitted recalibrator from its description."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "guarantee_")


def read_pairs(forecasts: Any, outcomes: Any, sample_weight: Any, space: Space) -> Pairs:
    """Check forecasts, outcomes and weights for a fit."""
    if not isinstance(space, (Box, Simplex)):
        raise InputError(f"space must be a Box or a Simplex; got {type(space).__name__}.")
    placed, _ = space.place(forecasts, "forecasts")
    if outcomes is None:
        raise InputError("outcomes must be given: requires y to be passed, but the target y is None.")
    known = space.place_outcomes(outcomes)
    if len(known) != len(placed):
        raise InputError(f"outcomes must have one row per forecast, {len(placed)}; got {len(known)}.")
    weights, used = row_weights(sample_weight, len(placed))
    pairs = Pairs(placed, known, weights)
    return pairs if used.all() else pairs.take(used)


def held_out_residuals(
    guarantee: Guarantee, space: Space, pairs: Pairs, moved_by: Callable[[Pairs, FloatArray], FloatArray]
) -> MomentEstimates | None:
    """Moments of a guarantee where each fold is moved by what the other folds say; None with too few rows.

    They speak of recalibrators fitted on four fifths of the rows, so they err, if at all, on the careful side.
    """
    n = len(pairs.forecasts)
    if n < _ROWS_TO_HOLD_OUT:
        return None
    fold = np.random.default_rng(0).permutation(n) % _FOLDS
    moved = np.empty_like(pairs.forecasts)
    for number in range(_FOLDS):
        out = fold == number
        moved[out] = moved_by(pairs.take(~out), pairs.forecasts[out])
    return estimate_moments(guarantee, space, moved, pairs.outcomes, pairs.weights, confidence=0.95)


def recalibrator_to_dict(recalibrator: Recalibrator) -> dict[str, Any]:
    """Describe a fitted recalibrator for a file."""
    return {"recalibrator": recalibrator._kind, "space": recalibrator.space_.to_dict(), **recalibrator._describe()}


def recalibrator_from_dict(document: dict[str, Any]) -> Recalibrator:
    """Rebuild a fitted recalibrator from its description."""
    kind = document["recalibrator"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise FileFormatError(f"recalibrator must be one of {sorted(_KINDS)}; got {kind!r}.")
    content = {name: value for name, value in document.items() if name not in ("recalibrator", "space")}
    return _KINDS[kind]._rebuild(content, space_from_dict(document["space"]))
