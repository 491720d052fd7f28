"""The best policy within a capacity: few best policies at prices, mixed (docs/theory.md, section 16).

At prices for what actions use there is no constraint, only higher costs, so the problem is the one without capacity.
Its certified rules are mixed by a small linear program so that their mean use is the capacity: the worst case is
concave in the rule, so the mean of their lower bounds is one. Every price gives an upper bound. Prices are found by
cutting planes, on few rows that stand for all first.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import EPSILON, BoolArray, FloatArray, frozen, non_negative
from prudent.cases.cases import Cases
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InfeasibleError, InputError
from prudent.formatting import format_number
from prudent.guarantees import FullyCalibrated, Guarantee
from prudent.policies.fitted import FittedPolicy, sum_of
from prudent.policies.fitting import NO_GAIN, find_rule
from prudent.policies.reference import FixedRule, PlugInPolicy, RecalibratedPolicy
from prudent.policies.robust import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate
from prudent.solvers.solve import TOLERANCE, certificate_of
from prudent.spaces import Label

if TYPE_CHECKING:
    from prudent.policies.base import Policy

_FEW_ROWS = 512  # that stand for all where prices are looked for first
_NEAR = 0.01  # prices of few rows, times uses over the utility range, and uses over or below a limit
_GOAL = 0.5 * TOLERANCE  # of what prices may cost, as a share of the utility range
_FINE_GOAL = 1e-10  # where solutions are exact, or rows few
_MOST_RULES = 300
_SHARES = 2.0**40  # weights of parts are multiples of its inverse, so that they sum to one exactly
_MOST_OVER = 1e-9  # of a capacity


@frozen
class Resources:
    """What ``actions`` use, ``uses (J, m)``, and the most that may be used on average, ``limits (J,)``."""

    names: tuple[Label, ...]
    actions: tuple[Label, ...]
    uses: FloatArray
    limits: FloatArray

    @classmethod
    def read(cls, capacity: Any, problem: DecisionProblem) -> Resources:
        """Check a capacity as users give it, and that some rule keeps to it."""
        if not isinstance(capacity, Mapping) or not capacity:
            raise InputError(
                f"capacity must be a mapping such as {{'treat': 0.2}}, or {{'hours': ({{'treat': 2.0}}, 0.3)}} for a "
                f"resource; got {capacity!r}."
            )
        uses, limits = np.zeros((len(capacity), problem.n_actions)), np.zeros(len(capacity))
        for j, (name, given) in enumerate(capacity.items()):
            of, limit = given if isinstance(given, tuple) and len(given) == 2 else ({name: 1.0}, given)
            if not isinstance(of, Mapping) or not set(of) <= set(problem.actions):
                raise InputError(
                    f"capacity must be of actions among {list(problem.actions)}, or of a resource with a pair of what "
                    f"they use and the limit; got {name!r}: {given!r}."
                )
            for action, use in of.items():
                uses[j, problem.actions.index(action)] = non_negative(use, f"capacity[{name!r}] of {action!r}")
            limits[j] = non_negative(limit, f"capacity[{name!r}]")
            if limits[j] < uses[j].min() * (1 - 1e-12):
                raise InputError(
                    f"capacity[{name!r}] is {limits[j]:g}, and every action uses at least {uses[j].min():g} of it: no "
                    f"rule keeps to it. Raise it, or add an action that uses less."
                )
        found = cls(tuple(capacity), problem.actions, uses, limits)
        nothing, over = np.zeros(problem.n_actions), found.over(uses.T)
        if len(limits) > 1 and not _program(nothing, over, 0 * limits, 0 * limits + 1.0)[0]:
            raise InputError(f"capacity of {list(capacity)} cannot be kept by any rule at once. Raise one of them.")
        return found

    @property
    def units(self) -> FloatArray:
        """The most that an action uses, in which limits are compared."""
        return np.where(self.uses.any(axis=1), self.uses.max(axis=1), 1.0)

    def over(self, used: FloatArray) -> FloatArray:
        """By how much uses ``(..., J)`` are above the limits."""
        return (used - self.limits) / self.units

    def as_given(self) -> dict[Label, Any]:
        """Write them as :meth:`read` takes them."""
        uses = [dict(zip(self.actions, use, strict=True)) for use in self.uses.tolist()]
        return dict(zip(self.names, zip(uses, self.limits.tolist(), strict=True), strict=True))

    def priced(self, problem: DecisionProblem, prices: FloatArray) -> DecisionProblem:
        """Charge what actions use."""
        costs = problem.costs + (prices[:, None] * self.uses).sum(axis=0)
        return DecisionProblem(problem.rewards, costs, actions=problem.actions, space=problem.space, unit=problem.unit)

    @property
    def counted(self) -> BoolArray:
        """The actions of one resource that is used by one unit, or not at all."""
        if len(self.names) > 1 or not np.isin(self.uses, (0.0, 1.0)).all():
            raise InputError("exact=True needs one resource, of which every action uses one unit or none.")
        return self.uses[0] > 0

    def require_kept(self, used: FloatArray, what: str) -> None:
        """Refuse a rule that uses more."""
        for name, use, limit, over in zip(self.names, used, self.limits, self.over(used), strict=True):
            if over > _MOST_OVER:
                raise InputError(
                    f"{what} must keep to the capacity; it uses {use:.4g} of {name!r}, of which there is {limit:g}."
                )

    def mean_use(self, policy: Policy, rows: MemoryRows) -> FloatArray:
        """What a policy uses on average, ``(J,)``."""
        return self.uses @ (rows.weights @ policy.on_rows(rows))


@frozen
class Rationing:
    """How a capacity is met.

    Attributes
    ----------
    resources : Resources
    prices : array of shape (J,)
        What one more unit of each capacity would add to the utility.
    parts : tuple of (float, FittedPolicy)
        The rules that are mixed, each for the problem at ``charged`` prices ``(parts, J)``, and their weights.
    """

    resources: Resources
    prices: FloatArray
    parts: tuple[tuple[float, FittedPolicy], ...]
    charged: FloatArray


@frozen
class _Rule:
    """A rule that is best at some prices: what it uses, and bounds of its utility and of all within the capacity."""

    prices: FloatArray
    fitted: FittedPolicy
    use: FloatArray
    lower: float
    upper: float


def within(policy: Policy, rows: Any, capacity: Any) -> Policy:
    """Fit a policy anew, if there is a capacity, so that it keeps to that on these rows.

    Following the forecast becomes best responding at the prices that meet the capacity.
    """
    if capacity is None:
        return policy
    if isinstance(policy, RecalibratedPolicy):
        moved = replace(rows, forecasts=policy.acts_on(rows.forecasts, rows.context))
        return RecalibratedPolicy(policy.recalibrator, within(policy.policy, moved, capacity))
    if isinstance(policy, PlugInPolicy):
        return RobustPolicy(policy.problem, FullyCalibrated(), capacity=capacity).fit_rows(rows)
    if not isinstance(policy, RobustPolicy):
        raise InputError(f"a {type(policy).__name__} cannot keep to a capacity; rules that follow or hedge can.")
    fitted = policy._fitted
    found = copy(policy)
    found.capacity, found.guarantee, found.slack = capacity, fitted.guarantee, fitted.slack
    if not isinstance(policy.against, FixedRule):
        found.against = None
    return found.fit_rows(rows)


def require_within(capacity: Any, problem: DecisionProblem, shares: FloatArray, what: str) -> None:
    """Refuse a rule that plays actions so often that it does not keep to a capacity, if there is one."""
    if capacity is not None:
        resources = Resources.read(capacity, problem)
        resources.require_kept(resources.uses @ shares, what)


def fit_within(policy: RobustPolicy, rows: MemoryRows, guarantee: Guarantee) -> FittedPolicy:
    """Find the best policy within its capacity on these rows."""
    problem, resources = policy.problem, Resources.read(policy.capacity, policy.problem)
    count, scale = len(resources.names), problem.utility_range or 1.0
    above = resources.uses - resources.uses.min(axis=1, keepdims=True)
    steps = np.where(above > 0, above, np.inf).min(axis=1)
    most = (2.0 if count == 1 else 40.0) * scale / steps  # a higher price is never paid
    search = _Search(policy, resources, guarantee, _rule_in_use(policy, resources, rows, guarantee), most)
    prices, low, high = np.zeros((1, count)), np.zeros(count), most
    few, with_numbers = _few_rows(policy, rows, guarantee)
    if few is not None:
        try:
            found, shares, _ = replace(search, policy=with_numbers).run(few, prices, low, high, _GOAL, _NEAR)
        except InfeasibleError:  # no world of few rows has the moments that were measured on all
            pass
        else:
            prices = np.array([rule.prices for rule in found])
            center, prices = shares @ prices, prices[shares > 0]
            gap = min(rule.upper for rule in found) - sum(shares * [rule.lower for rule in found])
            width = np.maximum(np.ptp(prices, axis=0), TOLERANCE * most)
            if gap > _GOAL * scale:  # which is quadratic in the distance of prices, where use is linear in them
                width, prices = width * np.sqrt(_GOAL * scale / gap), center[None]
            low, high = np.maximum(prices.min(axis=0) - width, 0.0), np.minimum(prices.max(axis=0) + width, most)
    goal = _FINE_GOAL if guarantee.full or few is None else _GOAL
    rules, shares, shadow = search.run(rows, prices, low, high, goal)
    shares = np.rint(shares * _SHARES) / _SHARES
    shares[shares.argmax()] += 1.0 - shares.sum()
    kept = [(float(share), rule) for share, rule in zip(shares, rules, strict=True) if share > 0]
    heaviest = max(kept, key=lambda pair: pair[0])[1].fitted
    lower, upper = sum(share * rule.lower for share, rule in kept), min(rule.upper for rule in rules)
    parts = tuple((share, rule.fitted) for share, rule in kept)
    if search.against is not None and (lower <= 0.0 or upper <= NO_GAIN * scale):
        lower, parts = 0.0, ((1.0, replace(heaviest, multipliers=None)),)
    known = [share * part.multipliers for share, part in parts if part.multipliers is not None]
    charged = np.array([rule.prices for _, rule in kept])[: len(parts)]
    unit = f" {problem.unit}" if problem.unit else ""
    worth = [
        f"at most {limit:g} of {name!r}, where one more unit is worth {format_number(price, 4)}{unit}"
        for name, limit, price in zip(resources.names, resources.limits, shadow, strict=True)
    ]
    message = f"{heaviest.certificate.message} Capacity: {'; '.join(worth)}."
    return replace(
        heaviest,
        problem=problem,
        multipliers=sum_of(known) if known else None,
        slack_cost=sum(share * part.slack_cost for share, part in parts),
        certificate=certificate_of(lower, max(upper, lower), scale, message),
        groups=None,
        rationing=Rationing(resources, shadow, parts, charged),
    )


def certify_within(policy: RobustPolicy, cases: Any, rows: Any, **given: Any) -> Certificate:
    """Certify the parts of a policy on other cases; what they use there is said."""
    fitted = policy.fitted_
    rationing = fitted.rationing
    assert rationing is not None  # noqa: S101  # asked for where there is a capacity
    resources, lower, upper = rationing.resources, 0.0, np.inf
    base = total = np.zeros(len(resources.names))
    if fitted.against is not None:
        base = resources.mean_use(fitted.against, rows)
    for (weight, part), prices in zip(fitted.parts, rationing.charged, strict=True):
        alone = copy(policy)
        alone.fitted_ = part
        found, use = alone.certify(cases, **given), resources.mean_use(alone, rows)
        total = total + weight * use
        lower += weight * float(found.lower + prices @ (use - base))
        upper = min(upper, float(found.upper + prices @ (resources.limits - base)))
    used = ", ".join(f"{use:.4g} of {name!r}" for name, use in zip(resources.names, total, strict=True))
    message = f"{found.message} On these cases the rule uses {used}."
    return certificate_of(lower, upper, fitted.problem.utility_range or 1.0, message)


def _rule_in_use(policy: RobustPolicy, resources: Resources, rows: MemoryRows, guarantee: Guarantee) -> Policy | None:
    """The rule that is to be improved, which must keep to the capacity."""
    if policy.criterion == "utility":
        return None
    if guarantee.full:
        raise InputError("capacity and criterion 'improvement' need a guarantee that leaves more worlds than one.")
    if policy.against is None:
        return within(PlugInPolicy(policy.problem), rows, policy.capacity)
    resources.require_kept(resources.mean_use(policy.against, rows), "against")
    return policy.against


def _few_rows(policy: RobustPolicy, rows: MemoryRows, guarantee: Guarantee) -> tuple[MemoryRows | None, RobustPolicy]:
    """Group rows with close forecasts into few that stand for them, and write the policy's slack in numbers.

    None where rows are few, or told apart by more than forecasts.
    """
    from prudent.solvers.row_clusters import bisected, neighbouring  # late: keeps the first fit fast

    rule, points, with_numbers = policy.against, rows.forecasts, copy(policy)
    listed = rule is not None and (rule.columns or getattr(rule, "labels", None) is not None)
    if listed or guarantee.context_columns or len(points) <= 2 * _FEW_ROWS:
        return None, policy
    ambiguity = rows.worlds(policy.problem, guarantee, Slack.read(policy.slack), policy.confidence)
    with_numbers.slack = ambiguity.allowance
    one = points.shape[1] == 1
    index, count = neighbouring(points[:, 0], _FEW_ROWS) if one else bisected(points.T, _FEW_ROWS)
    merged = ambiguity.merge(index, count)
    means = merged.forecasts
    if rows.space.is_simplex:
        means = means / means.sum(axis=1, keepdims=True)
    return Cases(means, weights=merged.weights).on(rows.space), with_numbers


@frozen
class _Search:
    """Cutting planes for prices: every rule is best at its own, and bounds from below what others are worth."""

    policy: RobustPolicy
    resources: Resources
    guarantee: Guarantee
    against: Policy | None
    most: FloatArray  # that prices can be

    def run(
        self, rows: MemoryRows, prices: FloatArray, low: FloatArray, high: FloatArray, goal: float, near: float = 0.0
    ) -> tuple[list[_Rule], FloatArray, FloatArray]:
        """Look between ``low`` and ``high`` first; return rules, their weights and the shadow prices.

        Stops at a gap of ``goal``, or where the rules that are mixed are ``near`` to the right price and the limits.
        """
        in_use, most = None if self.against is None else self.against.on_rows(rows), self.most
        base = np.zeros_like(low) if in_use is None else self.resources.uses @ (rows.weights @ in_use)
        rules, waiting = list[_Rule](), list(prices[::-1])
        scale = self.policy.problem.utility_range or 1.0
        natural = self.resources.units / scale  # of prices: uses by the largest, utilities by their range
        while True:
            if waiting:
                rules.append(self._rule(rows, waiting.pop(), base, in_use))
            over = self.resources.over(np.array([rule.use for rule in rules]))
            worth = np.array([rule.lower for rule in rules]) / scale
            charged = np.array([rule.prices for rule in rules]) * natural
            settled, shares, found = _program(worth, over, low * natural, high * natural)
            ceilings = worth - (charged * over).sum(axis=1)
            off = np.hstack([charged - found, over])[shares > 0]
            done = settled and (ceilings.min() - shares @ worth <= goal or np.abs(off).max() < near)
            if done or len(rules) == _MOST_RULES:
                break
            if waiting:
                continue
            if settled and np.abs(off[:, : len(low)]).max() < 10 * _NEAR and len(rules) % 2:
                # What is used is nearly linear in prices that are near.
                found = 0.1 * found + 0.9 * (shares @ charged)
            if (np.abs(charged - found).max(axis=1) <= 1e-14 * (most * natural).max()).any():
                if not low.any() and (high == most).all():
                    break
                width = high - low
                low, high = np.maximum(low - width, 0.0), np.minimum(high + width, most)
                continue
            waiting.append(found / natural)
        settled, shares, _ = _program(worth, over, 0 * low, most * natural)
        if not settled:
            raise InputError("capacity leaves so little room that no rule was found that keeps to it. Raise it a bit.")
        found = _program(worth, over - 1e-7, 0 * low, most * natural)[2]  # of one more unit
        best = charged[ceilings <= ceilings.min() + goal]  # no price is right that is far from these
        return rules, shares, np.clip(found, best.min(axis=0), best.max(axis=0)) / natural

    def _rule(self, rows: MemoryRows, prices: FloatArray, base: FloatArray, in_use: FloatArray | None) -> _Rule:
        """Solve at prices."""
        problem, resources = self.policy.problem, self.resources
        priced = resources.priced(problem, prices)
        fitted = find_rule(self.policy, priced, rows, self.guarantee, self.against, in_use)
        alone = copy(self.policy)
        alone.fitted_ = fitted
        use, found = resources.mean_use(alone, rows), fitted.certificate
        charges = float(prices @ resources.uses.max(axis=1) + np.abs(problem.costs).max())
        rounding = 2 * (len(rows.forecasts) + 64) * EPSILON * charges
        lower = found.lower + float(prices @ (use - base)) - rounding
        return _Rule(prices, fitted, use, lower, found.upper + float(prices @ (resources.limits - base)) + rounding)


def _program(
    worth: FloatArray, over: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[bool, FloatArray, FloatArray]:
    """Mix rules worth most with a mean of ``over (T, J)`` of at most zero; what is over or spared has a price, too.

    Returns whether the mixture keeps to it, shares ``(T,)`` and prices ``(J,)`` between ``low`` and ``high``.
    """
    count, eye = len(worth), np.eye(over.shape[1])
    if len(eye) == 1:  # two rules, one that is over and one that is not
        above, below = np.flatnonzero(over > 0), np.flatnonzero(over <= 0)
        if not (above.size and below.size):
            best = (worth - low * over[:, 0]).argmax() if below.size else over.argmin()
            settled = bool(over[best] <= _MOST_OVER and low * over[best] >= 0)
            return settled, np.eye(count)[best], low if below.size else high
        parts = over[above] / (over[above] - over[below].T)
        i, j = np.divmod(((1 - parts) * worth[above, None] + parts * worth[below]).argmax(), len(below))
        part, i, j = parts[i, j], above[i], below[j]
        shares = (1 - part) * np.eye(count)[i] + part * np.eye(count)[j]
        return True, shares, np.clip((worth[i] - worth[j]) / (over[i] - over[j]), low, high)
    from scipy.optimize import linprog

    found = linprog(
        np.concatenate([-worth, high, -low]),
        np.hstack([over.T, -eye, eye]),
        np.zeros(len(eye)),
        np.concatenate([np.ones(count), np.zeros(2 * len(eye))])[None],
        np.ones(1),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    shares, beyond, spared = np.split(np.asarray(found.x), [count, count + len(eye)])
    settled = bool((beyond <= _MOST_OVER).all() and (low * spared <= 0).all())
    return settled, shares, np.clip(-found.ineqlin.marginals, low, high)
