"""Why this action, for one case: the belief behind it, the test that binds, the way to the next action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies.base import Policy
from prudent.policies.changes import NextAction, next_actions
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.spaces import Label
from prudent.writing import written

__all__ = ["Explanation", "explain"]

_NAMED = 0.0005


@dataclass(frozen=True)
class Explanation:
    """What a policy does with one forecast, and why; ``str()`` is the short story.

    Attributes
    ----------
    actions : tuple
        All actions of the problem, in declared order.
    probabilities : tuple of float
        With which each is played.
    forecast, belief : tuple of float
        The forecast, and the belief that the policy is robust against: the worst one for it in the tilted game.
    utility_at_forecast, utility_at_belief : tuple of float
        Expected utility of each action under both.
    contributions : tuple of (str, float)
        For each moment of the guarantee, by how much its term of the tilt can move a utility across the outcome
        space, ``sum_j |multiplier h(v)|_j width_j``; largest first.
    next_actions : tuple of NextAction
        Where something else is played: nearest first.
    """

    actions: tuple[Label, ...]
    probabilities: tuple[float, ...]
    forecast: tuple[float, ...]
    belief: tuple[float, ...]
    utility_at_forecast: tuple[float, ...]
    utility_at_belief: tuple[float, ...]
    contributions: tuple[tuple[str, float], ...]
    next_actions: tuple[NextAction, ...]
    kind: str

    @property
    def action(self) -> Label | None:
        """The action that is certain, or None for a mixture."""
        played = self.played
        return played[0] if len(played) == 1 else None

    @property
    def played(self) -> tuple[Label, ...]:
        """The actions with positive probability."""
        return tuple(action for action, share in zip(self.actions, self.probabilities, strict=True) if share > 0)

    @property
    def binding(self) -> str | None:
        """The moment whose term is largest here; None where no moment has one."""
        return self.contributions[0][0] if self.contributions and self.contributions[0][1] > 0 else None

    def __str__(self) -> str:
        return " ".join(part for part in (self._what(), self._why(), self._where()) if part)

    def _what(self) -> str:
        if self.action is not None:
            return f"At the forecast {_point(self.forecast)} the action is {self.action}."
        played = [both for both in zip(self.actions, self.probabilities, strict=True) if both[1] > 0]
        large = [both for both in played if both[1] >= _NAMED] or played  # what a solver leaves of zero tells nobody
        shares = [f"{action} ({100 * share:.3g}%)" for action, share in large]
        rest = "" if len(large) == len(played) else f", and others with a probability below {_NAMED:.2%}"
        if len(shares) == 1:
            return f"At the forecast {_point(self.forecast)} the action is {shares[0]}{rest}."
        mixed = f"{', '.join(shares[:-1])} and {shares[-1]}"
        return f"At the forecast {_point(self.forecast)} the policy mixes {mixed}{rest}."

    def _why(self) -> str:
        mixture = np.array(self.probabilities)
        hoped, feared = float(mixture @ self.utility_at_forecast), float(mixture @ self.utility_at_belief)
        if self.kind == "plug-in":
            return f"It believes the forecast and expects a utility of {written(hoped, 4)}."
        against = (
            f"It guards against the belief {_point(self.belief)}, where it gets {written(feared, 4)}; the "
            f"forecast promises {written(hoped, 4)}"
        )
        if self.kind == "safety":
            return f"{against}, but plays no part."
        if self.binding is None:
            return f"{against}. No test of the guarantee binds here."
        return f"{against}. The test that binds most is {self.binding!r}."

    def _where(self) -> str:
        if not self.next_actions:
            return "No other forecast would change it." if self.kind == "safety" else "No change was found elsewhere."
        near = self.next_actions[0]
        names = " and ".join(str(action) for action in near.played)
        at_most = "" if near.exact else "at most "
        return (
            f"It changes to {names} {at_most}{written(near.distance, 4)} away, {near.direction} to "
            f"{_point(near.forecast)}."
        )


def explain(policy: Policy, forecast: Any) -> Explanation:
    """Explain one case; see :meth:`prudent.Policy.explain`."""
    row = _one_row(policy, forecast)
    problem = policy._problem
    belief = policy._beliefs(row)
    kinds: dict[type[Policy], str] = {PlugInPolicy: "plug-in", SafetyPolicy: "safety"}
    return Explanation(
        problem.actions,
        tuple(policy._mixtures(row)[0].tolist()),
        tuple(row[0].tolist()),
        tuple(belief[0].tolist()),
        tuple(problem.linear_utility(row)[0].tolist()),
        tuple(problem.linear_utility(belief)[0].tolist()),
        _contributions(policy, row),
        next_actions(policy, row[0]),
        kinds.get(type(policy), "robust"),
    )


def _one_row(policy: Policy, forecast: Any) -> FloatArray:
    check_is_fitted(policy)
    d = policy._problem.dimension
    shape = np.shape(forecast)
    if shape not in {(1, d), (d,), *([()] if d == 1 else [])}:
        raise InputError(
            f"forecast must be one case: {'a number' if d == 1 else f'{d} numbers'}; got shape {shape}. Explain cases "
            f"one by one."
        )
    return policy._problem.space.place(np.reshape(np.asarray(forecast, dtype=object), (1, d)), "forecast")[0]


def _contributions(policy: Policy, row: FloatArray) -> tuple[tuple[str, float], ...]:
    multipliers = getattr(policy, "multipliers_", None)
    if multipliers is None:
        return ()
    space = policy._problem.space
    tests = policy.guarantee_.evaluate(row, space).as_vector()
    low, high = space.bounds
    sizes = np.abs(tests.values[0] * multipliers.reshape(-1, 1)) @ (high - low)
    order = np.argsort(-sizes, kind="stable")
    return tuple((tests.names[k], float(sizes[k])) for k in order)


def _point(values: tuple[float, ...]) -> str:
    shown = ", ".join(written(value, 4) for value in values)
    return shown if len(values) == 1 else f"({shown})"
