"""The menu: recalibrations followed by best response, each played on rows that had no part in fitting it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import clone

from prudent.advice.past_cases import play_rule
from prudent.arrays import FloatArray, IntArray, frozen, listed
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.policies import PlugInPolicy, Policy, RecalibratedPolicy
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator, some_rows, split_coordinates
from prudent.recalibration.isotonic import IsotonicCalibrator
from prudent.recalibration.scaling import ScalingCalibrator
from prudent.spaces import Space

FOLDS = 5


@frozen
class Entry:
    """A rule that could be adopted.

    Attributes
    ----------
    name : str
    repairs : bool
        True if it recalibrates forecasts, False if it hedges.
    mixtures : array of shape (n, m)
        Played on every row by a rule that was fitted without it.
    policy : callable
        Makes the rule that is fitted on all rows.
    """

    name: str
    repairs: bool
    mixtures: FloatArray = field(repr=False)
    policy: Callable[[], Policy] = field(repr=False)


def usual_recalibrators(rows: MemoryRows) -> dict[str, Recalibrator]:
    """Three recalibrations that suit the outcomes seen: two values, classes, or numbers."""
    space = rows.space
    if space.free_dimension == 1:
        values = split_coordinates(space, rows.known_outcomes)
        methods = ("bias", "platt") if np.unique(values).size <= 2 else ("shift", "affine")
    else:
        methods = ("temperature", "vector") if space.is_simplex else ("shift", "affine")
    scalings: dict[str, Recalibrator] = {method: ScalingCalibrator(method, space=space) for method in methods}
    return scalings | {"isotonic": IsotonicCalibrator(space=space)}


def content_folds(rows: MemoryRows, own: Sequence[Any], groups: IntArray | None) -> IntArray:
    """Assign rows, or whole groups of them, to folds in a way that does not depend on their order."""
    rng = np.random.default_rng(0)
    tables = (split_coordinates(rows.space, rows.forecasts), split_coordinates(rows.space, rows.known_outcomes))
    parts = [*tables, rows.weights[:, None], *(np.reshape(each, (len(rows.weights), -1)) for each in own)]
    table = np.hstack(parts)
    order = np.lexsort(table.T[::-1])
    if groups is not None:
        order = np.array(_by_content(table[order], groups[order]))
    folds = np.empty(len(order), dtype=np.int64)
    folds[order] = rng.permutation(len(order)) % FOLDS
    return folds if groups is None else folds[groups]


def _by_content(table: FloatArray, groups: IntArray) -> list[int]:
    """Sort groups by their rows, which are sorted: numbers of groups depend on the order in which rows came."""
    ranks = np.concatenate([[0], np.cumsum((table[1:] != table[:-1]).any(axis=1))])  # of equal rows the same
    together = np.argsort(groups, kind="stable")
    contents = np.split(ranks[together], np.flatnonzero(np.diff(groups[together])) + 1)
    return sorted(range(len(contents)), key=lambda group: contents[group].tolist())


def read_menu(menu: Any, problem: DecisionProblem, rows: MemoryRows, own: dict[str, Any]) -> dict[str, Any]:
    """The usual recalibrations and what the user adds: recalibrators, or policies, for the same problem."""
    found: dict[str, Any] = dict(usual_recalibrators(rows))
    if not isinstance(menu, Mapping):
        listing = listed(menu, "menu")
        menu = {f"{type(each).__name__} {number}": each for number, each in enumerate(listing, start=1)}
    for name, each in menu.items():
        if not isinstance(each, (Recalibrator, Policy)) or name in found:
            raise InputError(
                f"menu must hold recalibrators and policies, under other names than {list(found)}; got {name!r}: "
                f"{type(each).__name__}."
            )
        if isinstance(each, Recalibrator):
            _require_space(str(name), each, rows.space)
        elif each._problem != problem:
            raise InputError(f"menu must hold policies for the same problem; got {name!r}: {each!r}.")
        elif own and not _ready(each):
            raise InputError(
                f"menu must hold policies that are fitted where rows have rewards or costs of their own; got {name!r}: "
                f"{type(each).__name__}."
            )
        found[str(name)] = each
    return found


def _require_space(name: str, recalibrator: Recalibrator, space: Space) -> None:
    """Refuse a recalibrator of other forecasts; one that names no space takes the problem's."""
    intended = clone(recalibrator)
    if "space" in intended.get_params() and intended.space is None:
        intended.set_params(space=space)
    if intended.intended_space(space.dimension) != space:
        raise InputError(f"menu must hold recalibrators of forecasts on {space!r}; got {name!r} on another space.")


def _ready(policy: Policy) -> bool:
    """Whether a policy plays as it is; others are fitted without the rows that they are judged by."""
    return getattr(policy, "fitted_", None) is not None or not hasattr(policy, "fit_rows")


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

        def repaired() -> Policy:
            fitted = rows.cache.get(("recalibrator", *key), lambda: clone(choice).fit_map(rows))
            return RecalibratedPolicy(fitted, PlugInPolicy(problem))

        return Entry(name, True, mixtures, repaired)
    if _ready(choice):
        return Entry(name, False, play_rule(choice, rows, own), lambda: choice)
    mixtures = np.empty((len(folds), problem.n_actions))
    for fold in np.unique(folds):
        inside = folds == fold
        fitted = clone(choice).fit_rows(some_rows(rows, ~inside))
        mixtures[inside] = fitted.predict_proba(rows.forecasts[inside])
    return Entry(name, False, mixtures, lambda: clone(choice).fit_rows(rows))


def _cross_fitted(recalibrator: Recalibrator, rows: MemoryRows, folds: IntArray) -> FloatArray:
    moved = np.empty_like(rows.forecasts)
    for fold in np.unique(folds):
        inside = folds == fold
        fitted = clone(recalibrator).fit_map(some_rows(rows, ~inside))
        moved[inside] = fitted.transform(rows.forecasts[inside])
    return moved
