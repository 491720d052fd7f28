"""Why this action, for one case; and what is played where, as a table of thresholds on one coordinate.

Between bin edges, region borders and turning points of the tilt, the tilt is monotone, and so is what is played;
bisection over doubles then finds the change, up to the rounding of the tilt. Tilts with turning points are those of
polynomials, logarithms and functions; there a band between two of many evenly spaced forecasts may not be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import BoolArray, Context, FloatArray, frozen
from prudent.errors import InputError
from prudent.formatting import Printable, format_number
from prudent.guarantees.base import symbolic_tests
from prudent.guarantees.expressions import Arrays, BestResponse, Bin, Coordinate, Group, Pair
from prudent.guarantees.expressions import Label as RowLabel
from prudent.policies.base import Policy
from prudent.policies.fitted import FittedPolicy
from prudent.policies.reference import FixedRule, PlugInPolicy, RecalibratedPolicy, SafetyPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Game
from prudent.solvers.game import upper_envelope
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


_ROUNDING_ULPS = 64
_PARTS = 64
_EVENLY = 4_097


@frozen
class Band(Printable):
    """A range of forecasts in which the same actions are played.

    Attributes
    ----------
    first, last : float
        The smallest and the largest forecast of the band, to the last digit.
    actions : tuple of labels
        Those with positive probability, in declared order.
    at_first, at_last : array of shape (m,)
        The mixture at both ends.
    """

    first: float
    last: float
    actions: tuple[Label, ...]
    at_first: FloatArray
    at_last: FloatArray

    def __str__(self) -> str:
        if len(self.actions) == 1:
            return str(self.actions[0])
        ends = zip(self.at_first, self.at_last, strict=True)
        shares = [f"{a:.0%}" if abs(a - b) < 0.005 else f"{a:.0%} to {b:.0%}" for a, b in ends if a > 0 or b > 0]
        return ", ".join(f"{action} {share}" for action, share in zip(self.actions, shares, strict=True))


def action_bands(policy: Any, context: Context) -> tuple[Band, ...]:
    """Find the bands of a policy for forecasts of one coordinate, at one context.

    Between the points where the tilt may turn, actions follow each other in order, so bisection over doubles finds
    every threshold. See :meth:`prudent.policies.Policy.bands`.

    Examples
    --------
    >>> import prudent
    >>> policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.25], actions=["wait", "act"]))
    >>> [(band.first, str(band)) for band in action_bands(policy, {})]
    [(0.0, 'wait'), (0.25000000000000006, 'act')]
    """
    problem = policy._problem
    check_is_fitted(policy)
    if problem.dimension != 1:
        raise InputError(
            f"bands exist for forecasts of one coordinate; this policy's have {problem.dimension}. "
            f"predict_proba shows what it plays at any forecast."
        )
    low, high = problem.space.interval
    # Every knot with its neighbours by rounding.
    around = neighbours(np.array([low, high, *policy.turning_points()]), _ROUNDING_ULPS)
    points = np.union1d(np.linspace(low, high, _EVENLY), around[(around >= low) & (around <= high)])
    if getattr(policy, "multipliers_", None) is not None and policy.guarantee_.savable:
        tests = symbolic_tests(policy.guarantee_, problem.space)
        # Logarithms exclude the boundary.
        points = points[np.full(points.shape, tests.defined(Arrays(points[:, None])))]

    def mixtures(points: FloatArray) -> FloatArray:
        return policy._mixtures(points[:, None], {name: np.repeat(held, len(points)) for name, held in context.items()})

    firsts = [float(points[0]), *_changes(mixtures, points)]
    lasts = [*(float(np.nextafter(first, low)) for first in firsts[1:]), float(points[-1])]
    at_firsts, at_lasts = (mixtures(np.array(ends)) for ends in (firsts, lasts))
    return tuple(
        Band(
            first,
            last,
            tuple(action for action, share in zip(problem.actions, at_first + at_last, strict=True) if share > 0),
            at_first,
            at_last,
        )
        for first, last, at_first, at_last in zip(firsts, lasts, at_firsts, at_lasts, strict=True)
    )


def _changes(mixtures: Callable[[FloatArray], FloatArray], points: FloatArray) -> list[float]:
    """Return every forecast that is the first to play other actions than the one before it."""
    support = mixtures(points) > 0
    found = []
    for place in np.flatnonzero((support[1:] != support[:-1]).any(axis=1)):
        left, right = float(points[place]), float(points[place + 1])
        now = support[place]
        while (now != support[place + 1]).any():
            left = first_among(lambda points, now=now: ((mixtures(points) > 0) != now).any(axis=1), left, right)  # type: ignore[misc]
            now = mixtures(np.array([left]))[0] > 0
            found.append(left)
    return found


def turning_points(policy: Policy) -> FloatArray:
    """Where a one-dimensional rule may turn, as far as labels of its tests tell."""
    fitted: FittedPolicy | None = getattr(policy, "fitted_", None)
    return _switches(policy._problem) if fitted is None else np.array(_knots(fitted))


def _knots(fitted: FittedPolicy) -> list[float]:
    if fitted.parts:
        return [knot for _, part in fitted.parts for knot in _knots(part)]
    if fitted.multipliers is None:
        found = _switches(fitted.problem) if fitted.against is None else fitted.against.turning_points()
        return found.tolist()
    terms = fitted.terms() if fitted.guarantee.savable else None
    return [border for term in terms or [] for border in _borders(term.label)]


def _borders(label: RowLabel | None) -> list[float]:
    """Where the label of a one-dimensional forecast changes, in any group."""
    if isinstance(label, Pair) and isinstance(label.first, Group):
        return _borders(label.second)
    if isinstance(label, Bin) and label.of == Coordinate(0):
        return list(label.edges)
    return _switches(label.problem).tolist() if isinstance(label, BestResponse) else []


def _switches(problem: DecisionProblem) -> FloatArray:
    return upper_envelope(Game.of_problem(problem)).points


def first_among(reached: Callable[[FloatArray], BoolArray], low: float, high: float) -> float:
    """Return the least double in ``(low, high]`` at which a property that stays holds; it holds at ``high``.

    The property is tested at many points at once, until the two that are left have no double between them.
    """
    points = np.unique(np.linspace(low, high, _PARTS + 1))
    while points.size > 2:
        first = int(np.append(reached(points[1:-1]), True).argmax())
        points = np.unique(np.linspace(points[first], points[first + 1], _PARTS + 1))
    return float(points[-1])


def neighbours(values: FloatArray, count: int) -> FloatArray:
    """Return values and ``count`` doubles on each side of each, in order."""
    found = [values]
    for end in (-np.inf, np.inf):
        nearest = values
        for _ in range(count):
            nearest = np.nextafter(nearest, end)
            found.append(nearest)
    return np.unique(np.concatenate(found))
