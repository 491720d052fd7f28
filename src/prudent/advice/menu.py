"""The menu: recalibrations followed by best response, each played on rows that had no part in fitting it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import clone

from prudent.arrays import FloatArray, IntArray, frozen, listed
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.policies import PlugInPolicy, Policy, RecalibratedPolicy
from prudent.policies.capacity import require_within, within
from prudent.policies.horizons import play_rule
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator, cross_fitted, split_coordinates
from prudent.recalibration.segmented import usual_recalibrators

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
    beliefs : array of shape (n, d) or None
        The recalibrated forecasts that it acted on.
    recalibrator : callable or None
        Fits the recalibration behind it on all rows; None for a rule that hedges.
    """

    name: str
    mixtures: FloatArray
    policy: Callable[[], Policy]
    beliefs: FloatArray | None = None
    recalibrator: Callable[[], Recalibrator] | None = None


def fit_on_all(recalibrator: Recalibrator, rows: MemoryRows, key: tuple[Any, ...]) -> Recalibrator:
    """Fit a recalibrator on all rows, or find it in their cache; unlike a function within one it can be pickled."""
    return rows.cache.get(key, lambda: clone(recalibrator).fit_map(rows))


def content_folds(rows: MemoryRows, own: list[Any], groups: IntArray | None) -> IntArray:
    """Assign rows, or whole groups of them, to folds in a way that does not depend on their order."""
    fold = partial(_folds, rows, own, groups)
    return fold() if own else rows.cache.get(("folds", groups is None), fold)


def _folds(rows: MemoryRows, own: list[Any], groups: IntArray | None) -> IntArray:
    rng = np.random.default_rng(0)
    tables = [split_coordinates(rows.space, each) for each in (rows.forecasts, rows.known_outcomes)]
    table = np.hstack([np.reshape(each, (len(rows.weights), -1)) for each in [*tables, rows.weights, *own]])
    order = np.lexsort(table.T[::-1])
    if groups is None and rows.segment_columns:  # rows that are equal otherwise, by what else their segments hold
        numbers = [rows.values(name)[1] for name in rows.segment_columns]
        ranks = [np.argsort(_by_content(table[order], each[order]))[each] for each in numbers]
        order = np.lexsort([*sorted(ranks, key=lambda each: np.sort(each).tobytes()), *table.T[::-1]])
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


def require_choices(menu: Any) -> dict[str, Any]:
    """Check what the user adds to the menu: recalibrators and policies, by name or by number."""
    if not isinstance(menu, Mapping):
        listing = listed(menu, "menu")
        menu = {f"{type(each).__name__} {number}": each for number, each in enumerate(listing, start=1)}
    for name, each in menu.items():
        if not isinstance(each, (Recalibrator, Policy)):
            raise InputError(f"menu must hold recalibrators and policies; got {name!r}: {type(each).__name__}.")
    return {str(name): each for name, each in menu.items()}


def require_menu(added: dict[str, Any], problem: DecisionProblem, rows: MemoryRows, own: dict[str, Any]) -> None:
    """Refuse what is for other forecasts or another problem, or named like the usual recalibrations."""
    usual = usual_recalibrators(rows)
    for name, each in added.items():
        if name in usual:
            raise InputError(f"menu must have other names than the usual recalibrations, {list(usual)}; got {name!r}.")
        if isinstance(each, Recalibrator):
            if each.for_space(rows.space).intended_space(rows.space.dimension) != rows.space:
                raise InputError(
                    f"menu must hold recalibrators of forecasts on {rows.space!r}; got {name!r} on another space."
                )
        elif each._problem != problem:
            raise InputError(f"menu must hold policies for the same problem; got {name!r}: {each!r}.")
        elif own and not _ready(each):
            raise InputError(
                f"menu must hold policies that are fitted where rows have rewards or costs of their own; got {name!r}: "
                f"{type(each).__name__}."
            )


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
    capacity: Any = None,
) -> Entry:
    """Play one entry on every row, fitted on the other folds; prices that meet a capacity need no outcomes."""
    if isinstance(choice, Recalibrator):
        # What is fitted does not depend on the decision, so the next one finds it here.
        key = name, type(choice), repr(choice.get_params()), sha256(folds.tobytes()).digest()
        moved = rows.cache.get(
            ("cross-fitted", *key),
            lambda: cross_fitted(rows, folds, rows.space.dimension, lambda part: clone(choice).fit_map(part).transform),
        )
        follow = PlugInPolicy(problem)
        mixtures = within(follow, replace(rows, forecasts=moved), capacity).predict_proba(moved, **own)
        fitted = partial(fit_on_all, choice, rows, ("recalibrator", *key))
        repaired = lambda: within(RecalibratedPolicy(fitted(), follow), rows, capacity)  # noqa: E731
        return Entry(name, mixtures, repaired, moved, fitted)

    def fit(part: MemoryRows) -> Policy:
        return choice if ready else clone(choice).fit_rows(part)

    ready = _ready(choice)
    if ready:
        mixtures = play_rule(choice, rows, own)
    else:
        mixtures = cross_fitted(rows, folds, problem.n_actions, lambda part: fit(part)._mixtures)
    require_within(capacity, problem, rows.weights @ mixtures, name)
    return Entry(name, mixtures, lambda: fit(rows))
