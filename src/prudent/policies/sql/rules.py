"""What a fitted policy plays, in SQL: one of finitely many mixtures, the two neighbours of a band, or a vertex rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import symbolic_tests
from prudent.guarantees.expressions import BestResponse
from prudent.guarantees.symbolic import STRICTLY_INSIDE, Term
from prudent.policies.base import Policy
from prudent.policies.float_bisection import first_among
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import RobustPolicy
from prudent.policies.sql.dialects import Dialect
from prudent.policies.sql.formulas import Formulas, Lookup, Pipeline, case, increases
from prudent.policies.sql.vertices import VertexRule, vertex_rule
from prudent.solvers import Game
from prudent.solvers.local_games import Envelope, InteriorGame
from prudent.solvers.pure import pure_actions, pure_envelope
from prudent.solvers.vertices import VertexGame


@dataclass(frozen=True)
class _Mixture:
    """Probabilities of the possible actions, in declared order, and the cumulative ones of all but the last."""

    probabilities: dict[int, str]
    cumulative: list[str]


@dataclass(frozen=True)
class Piecewise:
    """One of finitely many mixtures, by the label of a row, or the only one."""

    dialect: Dialect
    n_actions: int
    mixtures: list[_Mixture]
    lookup: Lookup | None = None

    @property
    def mixed(self) -> bool:
        """True if some mixture has two actions."""
        return any(mixture.cumulative for mixture in self.mixtures)

    def probabilities(self) -> list[str]:
        """Write one expression per action."""
        zero = self.dialect.number(0.0)
        actions = range(self.n_actions)
        return [self._pick([mixture.probabilities.get(a, zero) for mixture in self.mixtures]) for a in actions]

    def action(self, labels: list[str], uniform: str) -> str:
        """Write the label that a uniform number draws; a rule that is not mixed does not look at it."""
        return self._pick(
            [
                case([f"{most} > {uniform}" for most in mixture.cumulative], [labels[a] for a in mixture.probabilities])
                for mixture in self.mixtures
            ]
        )

    def _pick(self, outcomes: list[str]) -> str:
        return outcomes[0] if self.lookup is None else self.lookup.pick(outcomes)


#: Writes probabilities, and the action that a uniform number draws.
Rule = Piecewise | VertexRule


def rule_of(policy: Policy, names: Pipeline, v: list[str], shown: str) -> Rule:
    """Find the simplest form of what is played at the forecast ``v``, and demand what its guarantee demands."""
    problem = policy._problem
    everything = np.eye(problem.n_actions)
    if isinstance(policy, SafetyPolicy):
        return _finite(names.dialect, policy._mixtures(np.zeros((1, problem.dimension))))
    plug_in = isinstance(policy, PlugInPolicy)
    if not plug_in and not isinstance(policy, RobustPolicy):
        raise InputError(f"a {type(policy).__name__} cannot be written in SQL.")
    formulas = Formulas(names, v)
    if plug_in or policy.multipliers_ is None:
        return _finite(names.dialect, everything, formulas.lookup(BestResponse(problem)))
    tests = symbolic_tests(policy.guarantee_, problem.space)
    if tests.positive:
        positive = [f"{formulas(margin)} > {names.dialect.number(0.0)}" for margin in tests.positive]
        names.demand(" AND ".join(positive), f"{STRICTLY_INSIDE}; got ", shown)
    terms = tests.tilt(policy.multipliers_)
    mixtures = _constant_mixtures(policy, terms)
    if mixtures is not None:
        label = next((term.label for term in terms if term.label is not None), None)
        return _finite(names.dialect, mixtures, None if label is None else formulas.lookup(label))
    return _tilted(policy, terms, formulas)


def _tilted(policy: RobustPolicy, terms: list[Term], formulas: Formulas) -> Rule:
    """Write the rule for a tilt that takes more than finitely many values."""
    problem, names = policy._problem, formulas.names
    written = formulas.tilt(terms, problem.dimension)
    if problem.dimension == 1:
        return _on_a_line(policy, terms, written[0], formulas)
    if not policy.fitted_.randomize:
        return _best_of(policy, formulas, names.bind("s", written))
    if isinstance(policy.fitted_.local, VertexGame):
        return vertex_rule(policy.fitted_.local, formulas, written)
    if problem.n_actions == 1:
        return _finite(names.dialect, np.ones((1, 1)))
    raise InputError(
        "this policy's game has too many vertices to be tabulated, so its mixtures have no SQL form. Decide in Python, "
        "or reduce the number of actions or coordinates."
    )


def _on_a_line(policy: RobustPolicy, terms: list[Term], written: str, formulas: Formulas) -> Rule:
    """Write thresholds of the forecast itself where the tilt never turns, rounding included; else of the tilt."""
    problem, dialect, (forecast,) = policy._problem, formulas.names.dialect, formulas.v
    changing = [term for term in terms if not term.constant]
    monotone = len(changing) == 1 and changing[0].label is None and increases(changing[0].factor)
    s = written if monotone else formulas.names.bind("s", [written])[0]

    if not policy.fitted_.randomize:
        steps = pure_envelope(Game.of_problem(problem))
        mixtures = _constants(dialect, np.eye(problem.n_actions)[steps.actions])
        conditions = [f"{s} < {dialect.number(threshold)}" for threshold in steps.thresholds]
    elif isinstance(policy.fitted_.local, Envelope):
        slopes = policy.fitted_.local.slopes
        mixtures = _bands(policy.fitted_.local, dialect, f"(-({s}))")
        conditions = [f"(-({s})) <= {dialect.number(slope)}" for slope in slopes[:-1]]
        conditions += [f"(-({s})) < {dialect.number(slopes[-1])}"] * (len(slopes) > 1)
    else:
        return _finite(dialect, np.ones((1, 1)))

    def piece(points: FloatArray) -> Any:
        """How many conditions do not hold."""
        tilts: Any = policy._tilts(points[:, None])
        if not policy.fitted_.randomize:
            return np.searchsorted(steps.thresholds, tilts[:, 0], side="right")
        reached = np.searchsorted(slopes, -tilts[:, 0])
        return (reached + (-tilts[:, 0] == slopes[-1])) * (len(slopes) > 1)

    if monotone:
        low, high = problem.space.interval
        pieces, edges = _splits(piece, low, high)
        mixtures = [mixtures[number] for number in pieces]
        conditions = [f"{forecast} < {dialect.number(edge)}" for edge in edges]
    return Piecewise(dialect, problem.n_actions, mixtures, Lookup(formulas.names, edges=tuple(conditions)))


def _bands(envelope: Envelope, dialect: Dialect, target: str) -> list[_Mixture]:
    """Write :meth:`Envelope.mixtures`: an end of the envelope is certain, between two slopes neighbours are mixed."""
    slopes, actions, number = envelope.slopes, envelope.actions.tolist(), dialect.number
    bands = [_Mixture({actions[0]: number(1.0)}, [])]
    for k in range(1, len(slopes)):
        share = f"({target} - {number(slopes[k - 1])}) / {number(slopes[k] - slopes[k - 1])}"
        both = sorted({actions[k - 1]: f"{number(1.0)} - {share}", actions[k]: share}.items())
        bands.append(_Mixture(dict(both), [both[0][1]]))
    return bands if len(slopes) == 1 else [*bands, _Mixture({actions[-1]: number(1.0)}, [])]


def _splits(level: Callable[[FloatArray], Any], low: float, high: float) -> tuple[list[int], list[float]]:
    """Cut ``[low, high]`` where a monotone whole-numbered function changes: its values, and the first double of each.

    The function is the library's own, rounding included; so are the cuts.
    """
    first, last = level(np.array([low, high])).tolist()
    pieces: list[int] = [first]
    edges: list[float] = []
    while pieces[-1] != last:
        now, start = pieces[-1], edges[-1] if edges else low
        edges.append(first_among(lambda v, now=now: level(v) != now, start, high))  # type: ignore[misc]
        pieces.append(int(level(np.array(edges[-1:]))[0]))
    return pieces, edges


def _best_of(policy: RobustPolicy, formulas: Formulas, s: list[str]) -> Rule:
    """Write ``argmax_a { c_a + min_p p.(r_a + s) }`` in several coordinates."""
    problem, names = policy._problem, formulas.names
    number = names.dialect.number
    low, high = problem.space.bounds
    simplex = problem.space.is_simplex
    scores = []
    for rewards, cost in zip(problem.rewards, problem.costs, strict=True):
        tilted = [f"({number(reward)} + {tilt})" for reward, tilt in zip(rewards, s, strict=True)]
        if simplex:
            least = f"LEAST({', '.join(tilted)})"
        else:
            ends = zip(tilted, low, high, strict=True)
            least = " + ".join(f"LEAST({number(a)} * {text}, {number(b)} * {text})" for text, a, b in ends)
            least = f"({least})"
        scores.append(f"{number(-cost)} + {least}")
    best = Lookup(names, index=formulas.first_largest(scores))
    return _finite(names.dialect, np.eye(problem.n_actions), best)


def _constant_mixtures(policy: RobustPolicy, terms: list[Term]) -> FloatArray | None:
    """Compute what is played at each label, or once, where the tilt has finitely many values; None elsewhere."""
    varying = [term for term in terms if not term.constant]
    if len(varying) > 1 or any(term.factor is not None for term in varying):
        return None
    tilts = np.zeros((len(varying[0].table) if varying else 1, policy._problem.dimension))
    for term in terms:
        tilts += term.table
    if not policy.fitted_.randomize:
        return np.eye(policy._problem.n_actions)[pure_actions(Game.of_problem(policy._problem), tilts)]
    if isinstance(policy.fitted_.local, InteriorGame):  # an approximation, which may depend on the rows solved together
        return None
    if isinstance(policy.fitted_.local, VertexGame) and not policy.fitted_.local.settled(tilts):
        return None
    return policy.fitted_.local.mixtures(tilts)


def _finite(dialect: Dialect, mixtures: FloatArray, lookup: Lookup | None = None) -> Piecewise:
    """Write known mixtures ``(labels, m)``."""
    return Piecewise(dialect, mixtures.shape[1], _constants(dialect, mixtures), lookup)


def _constants(dialect: Dialect, mixtures: FloatArray) -> list[_Mixture]:
    """Write known mixtures; as in draws, what rounding leaves goes to the last possible action."""
    written = []
    for mixture in mixtures:
        possible, cumulative = np.flatnonzero(mixture).tolist(), np.cumsum(mixture)
        shares = {a: dialect.number(mixture[a]) for a in possible}
        written.append(_Mixture(shares, [dialect.number(cumulative[a]) for a in possible[:-1]]))
    return written
