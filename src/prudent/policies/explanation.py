"""Why this action, for one case: the belief behind it, the test that binds, the way to the next action."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import Context, FloatArray
from prudent.errors import InputError
from prudent.formatting import Printable, format_number
from prudent.policies.bands import action_bands
from prudent.policies.base import Policy
from prudent.policies.recalibrated import FixedRule, RecalibratedPolicy
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.spaces import Label

_NAMED = 0.0005


@dataclass(frozen=True, repr=False)
class NextAction(Printable):
    """A forecast of one coordinate near another, at which other actions are played.

    Attributes
    ----------
    direction : str
        Where to go: "up" or "down".
    distance : float
        Of the forecasts, in outcome units.
    forecast : tuple of float
        The first forecast in this direction, up to rounding, where other actions are possible.
    played : tuple
        The actions with positive probability there.
    """

    direction: str
    distance: float
    forecast: tuple[float, ...]
    played: tuple[Label, ...]

    def __str__(self) -> str:
        away = f"{format_number(self.distance, 4)} away, {self.direction} to {_point(self.forecast)}"
        return f"{' and '.join(map(str, self.played))} {away}"


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
        Where something else is played, nearest first; none for forecasts of several coordinates.
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
        return self.played[0] if len(self.played) == 1 else None

    @property
    def played(self) -> tuple[Label, ...]:
        """The actions with positive probability."""
        return tuple(action for action, share in zip(self.actions, self.probabilities, strict=True) if share > 0)

    @property
    def binding(self) -> str | None:
        """The moment whose term is largest here; None where no moment has one."""
        return self.contributions[0][0] if self.contributions and self.contributions[0][1] > 0 else None

    def __str__(self) -> str:
        return f"{self._what()} {self._why()}{self._where()}"

    def _what(self) -> str:
        start = f"At the forecast {_point(self.forecast)} the "
        if self.action is not None:
            return f"{start}action is {self.action}."
        least = min(_NAMED, max(self.probabilities))  # rounding of a solver is not worth a name
        pairs = zip(self.actions, self.probabilities, strict=True)
        shares = [f"{action} ({100 * share:.3g}%)" for action, share in pairs if share >= least]
        words = " and ".join(filter(None, [", ".join(shares[:-1]), shares[-1]]))
        return f"{start}{'policy mixes' if len(shares) > 1 else 'action is'} {words}."

    def _why(self) -> str:
        mixture = np.array(self.probabilities)
        hoped, feared = (
            format_number(float(mixture @ utilities), 4)
            for utilities in (self.utility_at_forecast, self.utility_at_belief)
        )
        if self.kind == "plug-in":
            return f"It believes the forecast and expects a utility of {hoped}."
        if self.kind == "fixed":
            return f"It is a fixed rule; the forecast promises a utility of {hoped}."
        if self.kind == "recalibrated":
            return (
                f"It acts on the recalibrated forecast {_point(self.belief)}, where it expects a utility of {feared}."
            )
        ends = {"safety": ", but plays no part.", "robust": ". No test of the guarantee binds here."}
        binding = f". The test that binds most is {self.binding!r}."
        return (
            f"It guards against the belief {_point(self.belief)}, where it gets {feared}; the forecast promises "
            f"{hoped}{ends[self.kind] if self.binding is None else binding}"
        )

    def _where(self) -> str:
        if self.next_actions:
            return f" It changes to {self.next_actions[0]}."
        if self.kind == "safety":
            return " No other forecast would change it."
        return "" if len(self.forecast) > 1 else " No change was found elsewhere."


def explain(policy: Policy, forecast: Any, context: Context) -> Explanation:
    """Explain one case; see :meth:`prudent.policies.Policy.explain`."""
    row = _one_row(policy, forecast)
    problem = policy._problem
    belief = policy._beliefs(row, context)
    kinds: dict[type[Policy], str] = {
        PlugInPolicy: "plug-in",
        SafetyPolicy: "safety",
        FixedRule: "fixed",
        RecalibratedPolicy: "recalibrated",
    }
    return Explanation(
        problem.actions,
        tuple(policy._mixtures(row, context)[0].tolist()),
        tuple(row[0].tolist()),
        tuple(belief[0].tolist()),
        tuple(problem.linear_utility(row)[0].tolist()),
        tuple(problem.linear_utility(belief)[0].tolist()),
        _contributions(policy, row, context),
        _next_actions(policy, row[0], context),
        kinds.get(type(policy), "robust"),
    )


def _one_row(policy: Policy, forecast: Any) -> FloatArray:
    check_is_fitted(policy)
    d = policy._problem.dimension
    shape = np.shape(forecast)
    if np.size(forecast) != d:
        raise InputError(
            f"forecast must be one case: {'a number' if d == 1 else f'{d} numbers'}; got shape {shape}. Explain cases "
            f"one by one."
        )
    return policy._problem.space.place(np.reshape(np.asarray(forecast, dtype=object), (1, d)), "forecast")[0]


def _contributions(policy: Policy, row: FloatArray, context: Context) -> tuple[tuple[str, float], ...]:
    multipliers = getattr(policy, "multipliers_", None)
    if multipliers is None:
        return ()
    space = policy._problem.space
    tests = policy.guarantee_.evaluate(row, space, context).as_vector()
    sizes = np.abs(tests.values[0] * multipliers.reshape(-1, 1)) @ space.widths
    order = np.argsort(-sizes, kind="stable")
    return tuple((tests.names[k], float(sizes[k])) for k in order)


def _next_actions(policy: Policy, forecast: FloatArray, context: Context) -> tuple[NextAction, ...]:
    """Look the neighbouring bands up, nearest first; forecasts of several coordinates have none."""
    if isinstance(policy, SafetyPolicy) or forecast.size > 1:
        return ()
    here, bands = float(forecast[0]), action_bands(policy, context)
    place = int(np.searchsorted([band.first for band in bands], here, side="right")) - 1
    ends = [("up", band, band.first) for band in bands[place + 1 : place + 2]]
    ends += [("down", band, band.last) for band in bands[max(place - 1, 0) : place]]
    found = [NextAction(word, abs(end - here), (end,), band.actions) for word, band, end in ends]
    return tuple(sorted(found, key=lambda change: change.distance))


def _point(values: tuple[float, ...]) -> str:
    shown = ", ".join(format_number(value, 4) for value in values)
    return shown if len(values) == 1 else f"({shown})"
