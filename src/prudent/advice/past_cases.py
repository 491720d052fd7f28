"""Cases with outcomes: what the rule in use earned on them, what other rules would have, and bounds of both.

The menu is recalibrations followed by best response, each played on rows that had no part in fitting it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import clone

from prudent.arrays import FloatArray, IntArray, cluster_numbers, frozen, listed
from prudent.cases.cases import Cases
from prudent.cases.mean_bounds import FEWEST_PERIODS, Means, PastErrors
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.policies import FixedRule, PlugInPolicy, Policy, RecalibratedPolicy
from prudent.policies.capacity import require_within, within
from prudent.policies.horizons import own_of_rows, play_rule
from prudent.problem import DecisionProblem
from prudent.recalibration.base import FOLDS, Recalibrator, cross_fitted, split_coordinates
from prudent.recalibration.segmented import usual_recalibrators

_FEWEST_ROWS = 10


@frozen
class PastCases:
    """Rows with outcomes, and what the rule in use did with them.

    Attributes
    ----------
    problem : DecisionProblem
    rows : MemoryRows
    own : dict
        ``rewards`` and ``costs`` of the rows, where they have any of their own.
    units : array of shape (n,) or None
        Numbers of the periods, or of ids that occur more than once: these are independent, and not their rows.
    policy : Policy
        The rule in use.
    in_use : array of shape (n, m)
        What it played.
    follows : bool
        Whether it is to follow the forecast.
    followed : array of shape (n, m)
        What following the forecast plays.
    capacity : mapping or None
        What all rules keep to.
    """

    problem: DecisionProblem
    rows: MemoryRows
    own: dict[str, FloatArray]
    units: IntArray | None
    policy: Policy
    in_use: FloatArray
    follows: bool
    followed: FloatArray
    capacity: Any = None

    @classmethod
    def read(
        cls,
        problem: DecisionProblem,
        cases: Any,
        rows: MemoryRows,
        own: dict[str, Any],
        against: Any,
        capacity: Any = None,
    ) -> "PastCases":
        """Take the rows that have outcomes, and find out what the rule in use played there."""
        own = own_of_rows(problem, rows, own)
        units = rows.periods
        if units is None and cases.ids is not None:
            numbers = cluster_numbers(cases.ids, len(rows.everything))[rows.used]
            distinct, numbers = np.unique(numbers, return_inverse=True)
            units = numbers if distinct.size < numbers.size else None
        follow = within(PlugInPolicy(problem), rows, capacity)
        followed = follow.predict_proba(rows.forecasts, **own)
        policy, in_use = follow, followed
        if against is not None:
            policy = against if isinstance(against, Policy) else FixedRule(problem, labels=against)
            if policy._problem != problem:
                raise InputError("against must be a rule for the same problem.")
            in_use = play_rule(policy, rows, own)
            require_within(capacity, problem, rows.weights @ in_use, "against")
        return cls(problem, rows, own, units, policy, in_use, against is None, followed, capacity)

    @cached_property
    def utilities(self) -> FloatArray:
        """Of every action at every outcome, ``(n, m)``."""
        return self.problem.utilities_of_rows(self.rows.known_outcomes, **self.own)

    @cached_property
    def hoped(self) -> FloatArray:
        """Of every action at every forecast, ``(n, m)``."""
        return self.problem.utilities_of_rows(self.rows.forecasts, **self.own)

    @cached_property
    def promised(self) -> float:
        """What following the forecast promises per case."""
        return float(self.rows.weights @ (self.hoped * self.followed).sum(axis=1))

    @cached_property
    def constant(self) -> FloatArray:
        """What every single action promises per case."""
        return np.asarray(self.rows.weights @ self.hoped)

    @cached_property
    def stakes(self) -> float:
        """What the forecast promises to be worth over the best single action; zero where that is rounding."""
        best = float(self.constant.max())
        if self.capacity is not None:  # the best mixture that is the same for all
            mean = Cases(self.rows.weights[None] @ self.rows.forecasts).on(self.rows.space)
            rule = within(PlugInPolicy(self.problem), mean, self.capacity)
            best = float(self.constant @ rule._mixtures(mean.forecasts)[0])
        found = self.promised - best
        return found if found > 1e-12 * float(np.abs(self.hoped).max()) else 0.0

    @property
    def needed_units(self) -> tuple[int, int, str]:
        """How many independent units there are, how many are needed, and what they are."""
        if self.rows.periods is not None:
            return int(self.rows.periods.max()) + 1, FEWEST_PERIODS, "periods"
        if self.units is not None and len(self.rows.forecasts) >= _FEWEST_ROWS:
            return int(self.units.max()) + 1, FEWEST_PERIODS, "distinct ids"
        return len(self.rows.forecasts), _FEWEST_ROWS, "cases"

    def gain(self, mixtures: FloatArray, beliefs: FloatArray | None = None) -> tuple[float, float]:
        """Average what mixtures gain over the rule in use; and its standard error over units.

        The error is never below that of rows, nor below what recalibrated forecasts (``beliefs``) behind the mixtures
        imply: rare outcomes that happened not to occur show in these, and not in the gains.
        """
        values, weights = (self.utilities * (mixtures - self.in_use)).sum(axis=1), self.rows.weights
        implied = 0.0 if beliefs is None else float(weights**2 @ self._implied_variances(mixtures, beliefs))
        means = Means.of_rows(values, weights, -np.inf, np.inf, self.units)
        return float(means.means[0]), max(float(means.deviations[0]), np.sqrt(implied))

    def _implied_variances(self, mixtures: FloatArray, beliefs: FloatArray) -> FloatArray:
        """Variance of every row's gain if outcomes are drawn as believed; zero where outcomes are no classes."""
        slopes = ((mixtures - self.in_use)[:, None] @ self._tables[0])[:, 0]
        outcomes = self.rows.known_outcomes
        if self.problem.space.is_simplex:
            return np.maximum((beliefs * slopes**2).sum(axis=1) - (beliefs * slopes).sum(axis=1) ** 2, 0.0)
        low, high = float(outcomes.min()), float(outcomes.max())
        if outcomes.shape[1] > 1 or low == high or not np.isin(outcomes, (low, high)).all():
            return np.zeros(len(beliefs))
        return slopes[:, 0] ** 2 * np.maximum((beliefs[:, 0] - low) * (high - beliefs[:, 0]), 0.0)

    def hidden(self, played: list[FloatArray]) -> float:
        """What outcomes that are too rare to have been seen can add to a mean gain: three in ``n``.

        They change it by the largest difference of utilities at an outcome between two actions that some rule plays.
        """
        used = np.any([mixtures.max(axis=0) > 0 for mixtures in played], axis=0)
        return 3 * float(np.ptp(self.utilities[:, used], axis=1).max()) * float(self.rows.weights @ self.rows.weights)

    def claim(
        self, mixtures: FloatArray, error: float, own: IntArray | slice = slice(None), *, over_rule_in_use: bool = False
    ) -> tuple[float, float, float]:
        """What mixtures earn per case of some rows, or gain over the rule in use: estimate, lower and upper bound."""
        gain, weights, grid = over_rule_in_use, self.rows.weights[own], self.problem.discretization
        played = mixtures[own] - self.in_use[own] if gain else mixtures[own]
        values, weights = (self.utilities[own] * played).sum(axis=1), weights / weights.sum()
        if gain and not values.any():
            return 0.0, 0.0, 0.0
        units = None if self.units is None else np.unique(self.units[own], return_inverse=True)[1]
        means = Means.of_rows(values, weights, *self.ends(gains=gain), units)
        estimate = float(means.means[0])
        below, above = (float(means.radii(error, below=side)[0]) for side in (True, False))
        if grid is not None:  # utilities are from below; those of two rules differ only where the rules do
            hidden = grid.error * float(weights @ np.maximum(played, 0.0).sum(axis=1))
            below, above = below + hidden * gain, above + hidden
        return estimate, estimate - below, estimate + above

    def by_segment(
        self,
        menu: Sequence[Any],
        advised: FloatArray,
        segments: list[tuple[str, IntArray]],
        confidence: float,
    ) -> list[tuple[Any, ...]]:
        """What following, the advised rule and the best of the menu earned in each segment, with bounds for all."""
        error, found = (1 - confidence) / (len(segments) * (len(menu) + 3)), []
        for name, own in segments:
            weights = self.rows.weights[own]
            tried = [(*self.claim(each.mixtures, error, own, over_rule_in_use=True), each.name) for each in menu]
            best, least, _, entry = max(tried, default=(0.0, 0.0, 0.0, "none"))
            gain = self.claim(advised, error, own, over_rule_in_use=True)[:2]
            promised = float(np.average((self.hoped * self.followed)[own].sum(axis=1), weights=weights))
            row = name, len(own), *gain, entry, best, least, promised, *self.claim(self.followed, error, own)
            found.append((best * float(weights.sum()), row))
        return [row for _, row in sorted(found, key=lambda each: -each[0])]

    def errors(self, mixtures: FloatArray, beliefs: FloatArray, confidence: float) -> PastErrors:
        """What mixtures earned beyond what they promised at the forecasts that they acted on."""
        promised = self.problem.utilities_of_rows(beliefs, **self.own)
        values = ((self.utilities - promised) * mixtures).sum(axis=1)
        lowest, highest = self._bounds
        most = float((highest - lowest).max())
        means = Means.of_rows(values, self.rows.weights, -most, most, self.units)
        found = PastErrors.of_means(means, means.radii(1 - confidence), 1 - confidence, confidence)
        if self.rows.periods is not None or found.between is None:
            return found
        return replace(found, within=found.within + found.between, between=None)  # ids are no periods

    @cached_property
    def _tables(self) -> tuple[FloatArray, FloatArray]:
        """Rewards and costs of the problem, or of all rows."""
        problem = self.problem
        return self.own.get("rewards", problem.rewards[None]), self.own.get("costs", problem.costs[None])

    @property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest utility of every action at any outcome."""
        (rewards, costs), least = self._tables, self.problem.space.support_minimum
        return least(rewards) - costs, -least(-rewards) - costs

    def ends(self, *, gains: bool) -> tuple[float, float]:
        """Smallest and largest utility at any outcome, or difference of the utilities of two actions."""
        if not gains:
            lowest, highest = self._bounds
            return float(lowest.min()), float(highest.max())
        (rewards, costs), least = self._tables, self.problem.space.support_minimum
        apart = (least(rewards[:, [k]] - rewards) + costs - costs[:, [k]] for k in range(self.problem.n_actions))
        most = -min(float(each.min()) for each in apart)
        return -most, most


_MOST_FITTED = 200_000  # rows that recalibrations are fitted on; gains are measured on all


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


def fit_on_all(recalibrator: Recalibrator, rows: MemoryRows, folds: IntArray, key: tuple[Any, ...]) -> Recalibrator:
    """Fit a recalibrator on all folds, or find it in the cache; unlike a function within one it can be pickled."""
    learned = folds < FOLDS
    return rows.cache.get(key, lambda: clone(recalibrator).fit_map(rows if learned.all() else rows.take(learned)))


def content_folds(rows: MemoryRows, own: list[Any], groups: IntArray | None) -> IntArray:
    """Assign rows, or whole groups of them, to folds in a way that does not depend on their order.

    Of very many rows only some are learned from; the numbers of the others' folds are larger by ``FOLDS``.
    """
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
    places, most = rng.permutation(len(order)), max(len(order) * _MOST_FITTED / len(table), 4 * FOLDS)
    folds[order] = places % FOLDS + FOLDS * (places >= most)
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
        fitted = partial(fit_on_all, choice, rows, folds, ("recalibrator", *key))
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
