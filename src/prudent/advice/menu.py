"""The menu: recalibrations followed by best response, each played on rows that had no part in fitting it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from prudent.arrays import FloatArray, IntArray, frozen, listed
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.policies import PlugInPolicy, Policy, RecalibratedPolicy
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator, some_rows, split_coordinates

FOLDS = 5


@frozen
class Entry:
    """A rule that could be adopted.

    Attributes
    ----------
    name : str
    mixtures : array of shape (n, m)
        Played on every row by a rule that was fitted without it.
    policy : callable
        Makes the rule that is fitted on all rows.
    recalibrator : callable or None
        Fits the recalibration behind it on all rows; None for a rule that hedges.
    """

    name: str
    mixtures: FloatArray
    policy: Callable[[], Policy]
    recalibrator: Callable[[], Recalibrator] | None = None


def content_folds(rows: MemoryRows, own: Sequence[Any], groups: IntArray | None) -> IntArray:
    """Assign rows, or whole groups of them, to folds in a way that does not depend on their order."""
    rng = np.random.default_rng(0)
    if groups is not None:
        count = int(groups.max()) + 1
        folds: IntArray = (rng.permutation(count) % FOLDS)[groups]
        return folds
    tables = (split_coordinates(rows.space, rows.forecasts), split_coordinates(rows.space, rows.known_outcomes))
    parts = [*tables, rows.weights[:, None], *(np.reshape(each, (len(rows.weights), -1)) for each in own)]
    order = np.lexsort(np.hstack(parts).T[::-1])
    folds = np.empty(len(order), dtype=np.int64)
    folds[order] = rng.permutation(len(order)) % FOLDS
    return folds


def require_choices(menu: Any) -> dict[str, Any]:
    """Check what the user adds to the menu: recalibrators and policies, by name or by number."""
    if not isinstance(menu, Mapping):
        listing = listed(menu, "menu")
        menu = {f"{type(each).__name__} {number}": each for number, each in enumerate(listing, start=1)}
    for name, each in menu.items():
        if not isinstance(each, (Recalibrator, Policy)):
            raise InputError(f"menu must hold recalibrators and policies; got {name!r}: {type(each).__name__}.")
    return {str(name): each for name, each in menu.items()}


def play_entry(
    name: str,
    choice: Any,
    problem: DecisionProblem,
    rows: MemoryRows,
    folds: IntArray,
    own: dict[str, Any],
) -> Entry:
    """Play one entry on every row, fitted on the other folds."""
    if isinstance(choice, Recalibrator):
        # What is fitted does not depend on the decision, so the next one finds it here.
        key = name, type(choice), repr(choice.get_params()), folds.tobytes()
        moved = rows.cache.get(("cross-fitted", *key), lambda: _cross_fitted(choice, rows, folds))
        mixtures = PlugInPolicy(problem).predict_proba(moved, **own)

        def fitted() -> Recalibrator:
            return rows.cache.get(("recalibrator", *key), lambda: clone(choice).fit_map(rows))

        return Entry(name, mixtures, lambda: RecalibratedPolicy(fitted(), PlugInPolicy(problem)), fitted)
    if getattr(choice, "fitted_", None) is not None or not hasattr(choice, "fit_rows"):
        return Entry(name, choice.predict_proba(rows.forecasts, **own), lambda: choice)
    mixtures = np.empty((len(folds), problem.n_actions))
    for fold in np.unique(folds):
        inside = folds == fold
        mixtures[inside] = clone(choice).fit_rows(some_rows(rows, ~inside)).predict_proba(rows.forecasts[inside])
    return Entry(name, mixtures, lambda: clone(choice).fit_rows(rows))


def _cross_fitted(recalibrator: Recalibrator, rows: MemoryRows, folds: IntArray) -> FloatArray:
    moved = np.empty_like(rows.forecasts)
    for fold in np.unique(folds):
        inside = folds == fold
        fitted = clone(recalibrator).fit_map(some_rows(rows, ~inside))
        moved[inside] = fitted.transform(rows.forecasts[inside])
    return moved
