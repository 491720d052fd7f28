"""Why this action, for one case: the belief behind it, the test that binds, the way to the next action."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.formatting import Printable, format_number
from prudent.policies.bands import accepted_points, action_bands, first_among, turning_points
from prudent.policies.base import Policy
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.spaces import Label

_NAMED = 0.0005


@dataclass(frozen=True)
class NextAction:
    """A forecast near another at which other actions are played.

    Attributes
    ----------
    direction : str
        Where to go: "up", "down", "y[1] up", "towards y[b]".
    distance : float
        Of the forecasts, in outcome units; along a direction of several coordinates the largest single change.
    forecast : tuple of float
        The first forecast in this direction, up to rounding, where other actions are possible.
    played : tuple
        The actions with positive probability there.
    exact : bool
        True if nothing nearer in this direction plays otherwise; else ``distance`` is an upper bound.
    """

    direction: str
    distance: float
    forecast: tuple[float, ...]
    played: tuple[Label, ...]
    exact: bool


@dataclass(frozen=True, repr=False)
class Explanation(Printable):
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
        large = [both for both in played if both[1] >= _NAMED] or played  # rounding of a solver is not worth a name
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
            return f"It believes the forecast and expects a utility of {format_number(hoped, 4)}."
        against = (
            f"It guards against the belief {_point(self.belief)}, where it gets {format_number(feared, 4)}; the "
            f"forecast promises {format_number(hoped, 4)}"
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
            f"It changes to {names} {at_most}{format_number(near.distance, 4)} away, {near.direction} to "
            f"{_point(near.forecast)}."
        )


def explain(policy: Policy, forecast: Any) -> Explanation:
    """Explain one case; see :meth:`prudent.policies.Policy.explain`."""
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
        _next_actions(policy, row[0]),
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
    sizes = np.abs(tests.values[0] * multipliers.reshape(-1, 1)) @ space.widths
    order = np.argsort(-sizes, kind="stable")
    return tuple((tests.names[k], float(sizes[k])) for k in order)


def _next_actions(policy: Policy, forecast: FloatArray) -> tuple[NextAction, ...]:
    """Find the nearest change in every direction; nearest first."""
    if isinstance(policy, SafetyPolicy):
        return ()
    if forecast.size == 1:
        found = _along_the_line(policy, float(forecast[0]))
    else:
        targets = policy._problem.space.targets(forecast)
        found = [_towards(policy, forecast, target, word) for word, target in targets]
    return tuple(sorted((change for change in found if change is not None), key=lambda change: change.distance))


def _along_the_line(policy: Policy, forecast: float) -> list[NextAction | None]:
    """Look the neighbouring bands up."""
    bands, exact = action_bands(policy), turning_points(policy) is not None
    place = int(np.searchsorted([band.first for band in bands], forecast, side="right")) - 1
    found: list[NextAction | None] = []
    if place + 1 < len(bands):
        found.append(_change(policy, "up", np.array([forecast]), np.array([bands[place + 1].first]), exact=exact))
    if place > 0:
        found.append(_change(policy, "down", np.array([forecast]), np.array([bands[place - 1].last]), exact=exact))
    return found


def _towards(policy: Policy, forecast: FloatArray, target: FloatArray, direction: str) -> NextAction | None:
    """Look for a change on a grid along a direction, and bisect: there may be a nearer one."""

    def at(shares: FloatArray) -> FloatArray:
        way = forecast + shares[:, None] * (target - forecast)
        return np.where(shares[:, None] < 1, way, target)

    def differ(shares: FloatArray) -> Any:
        return ((policy._mixtures(at(shares)) > 0) != played).any(axis=1)

    played = policy._mixtures(forecast[None]) > 0
    shares = np.linspace(0, 1, 400 + 1)
    shares = np.append(0.0, shares[1:][accepted_points(policy, at(shares[1:]))])
    hits = np.flatnonzero(differ(shares))
    if not hits.size:
        return None
    share = first_among(differ, float(shares[hits[0] - 1]), float(shares[hits[0]]))
    return _change(policy, direction, forecast, at(np.array([share]))[0], exact=False)


def _change(policy: Policy, direction: str, forecast: FloatArray, point: FloatArray, *, exact: bool) -> NextAction:
    played = np.flatnonzero(policy._mixtures(point[None])[0])
    actions = tuple(policy._problem.actions[a] for a in played)
    return NextAction(direction, float(np.abs(point - forecast).max()), tuple(point.tolist()), actions, exact)


def _point(values: tuple[float, ...]) -> str:
    shown = ", ".join(format_number(value, 4) for value in values)
    return shown if len(values) == 1 else f"({shown})"
