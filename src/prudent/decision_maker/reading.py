"""How a model's output becomes forecasts of a decision problem, and its target outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.spaces import Box, Simplex, Space

__all__ = ["Reading", "read_as"]


@dataclass(frozen=True, eq=False)
class Reading:
    """Which method of a model gives forecasts, and in which order its classes are.

    Attributes
    ----------
    space : Box or Simplex
    classes : tuple or None
        Of a classifier, in the order of the forecast's columns; for one coordinate the forecast is the probability of
        the second.
    outside : {"refuse", "clip"}
        What to do with forecasts outside the space.
    """

    space: Space
    classes: tuple[Any, ...] | None
    outside: str

    def forecasts(self, model: Any, X: Any) -> tuple[FloatArray, int]:
        """Return the model's forecasts as ``(n, d)`` points of the space, and how many were clipped."""
        raw = np.asarray(model.predict(X) if self.classes is None else self._probabilities(model, X), dtype=np.float64)
        rows = raw.reshape(len(raw), -1)
        if rows.shape[1] != self.space.dimension:
            raise InputError(
                f"the estimator must forecast {self.space.dimension} number(s) per row, one per coordinate of the "
                f"problem's outcome space; got {rows.shape[1]}."
            )
        clipped = 0
        if self.outside == "clip" and np.isfinite(rows).all():
            nearest = self.space.project(rows)
            clipped = int((nearest != rows).any(axis=1).sum())
            rows = nearest
        return self.space.place(rows, "forecasts")[0], clipped

    def outcomes(self, y: Any) -> FloatArray:
        """Return a target as ``(n, d)`` outcomes of the space."""
        if self.classes is None:
            return self.space.place_outcomes(y, "y")
        positions = {label: position for position, label in enumerate(self.classes)}
        labels = np.asarray(y).tolist()
        unknown = next((label for label in labels if label not in positions), None)
        if unknown is not None:
            raise InputError(f"y must hold classes that the estimator knows, {list(self.classes)}; got {unknown!r}.")
        found = np.array([positions[label] for label in labels], dtype=np.int64)
        if isinstance(self.space, Simplex):
            return np.eye(self.space.dimension)[found]
        return found[:, None].astype(np.float64)

    def _probabilities(self, model: Any, X: Any) -> FloatArray:
        table = np.asarray(model.predict_proba(X), dtype=np.float64)
        known = np.asarray(model.classes_).tolist()
        if set(known) != set(self.classes or ()):
            missing = sorted(set(self.classes or ()).symmetric_difference(known), key=str)
            raise InputError(
                f"every class must be in the rows of every fold; {missing} is not. Use fewer folds (cv) or more rows."
            )
        ordered: FloatArray = table[:, [known.index(label) for label in self.classes or ()]]
        return ordered if isinstance(self.space, Simplex) else ordered[:, 1:]


def read_as(estimator: Any, space: Space, y: Any, outside: str) -> Reading:
    """Find out how an estimator's output is to be read for a problem.

    Classes that the problem names come in its order, else in sorted order, as
    scikit-learn has them.
    """
    if outside not in ("refuse", "clip"):
        raise InputError(f"outside must be 'refuse' or 'clip'; got {outside!r}.")
    if not is_classifier(estimator):
        return Reading(space, None, outside)
    seen = np.unique(np.asarray(estimator.classes_ if hasattr(estimator, "classes_") else y)).tolist()
    if isinstance(space, Box):
        if space.dimension != 1 or len(seen) != 2:
            raise InputError(
                f"a classifier with classes {seen} needs a problem on the Simplex, such as "
                f"DecisionProblem.from_payoffs; only with two classes may it have one coordinate, the probability of "
                f"the second."
            )
        return Reading(space, tuple(seen), outside)
    if len(seen) != space.n_classes or (space.classes is not None and set(seen) != set(space.classes)):
        named = "" if space.classes is None else f", {list(space.classes)}"
        raise InputError(
            f"y must have the problem's {space.n_classes} classes{named}; got {len(seen)}, {seen[:20]}. Classes that "
            f"never occur cannot be forecast: leave them out of the problem."
        )
    return Reading(space, tuple(space.classes or seen), outside)
