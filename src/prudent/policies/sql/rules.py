"""What a fitted policy plays, in SQL: the probability of every action, or one action that is looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import STRICTLY_INSIDE, Term, symbolic_tests
from prudent.guarantees.expressions import MOST, BestResponse, Group
from prudent.policies.base import Policy
from prudent.policies.fitted import FittedPolicy
from prudent.policies.reference import FixedRule, PlugInPolicy, RecalibratedPolicy, SafetyPolicy
from prudent.policies.robust import RobustPolicy
from prudent.policies.sql.formulas import Formulas, case
from prudent.problem import DecisionProblem
from prudent.recalibration.segmented import SegmentedCalibrator
from prudent.recalibration.usual import LEAST_SHARE, MOST_LOG_ODDS, IsotonicCalibrator, ScalingCalibrator
from prudent.solvers.game import Envelope
from prudent.solvers.pure import pure_envelope
from prudent.solvers.vertices import TiedVertex, VertexGame, nominal_terms
from prudent.spaces import Grid

#: Larger tables are refused: the expression would be longer than engines like to parse.
_MOST_VERTICES = 500


@dataclass(frozen=True)
class Rule:
    """What is played at a row.

    Attributes
    ----------
    probabilities : list of str
        One expression per action.
    looked_up : callable or None
        For a rule that never mixes: writes which of the labels it is given a row gets.
    """

    probabilities: list[str]
    looked_up: Callable[[list[str]], str] | None = None

    def action(self, labels: list[str], uniform: str, zero: str) -> str:
        """Write the first action whose cumulative probability exceeds a number, or the last possible one."""
        if self.looked_up is not None:
            return self.looked_up(labels)
        shares = self.probabilities
        conditions = [
            f"{' + '.join(shares[:place])} > {uniform} OR {' + '.join(shares[place:])} = {zero}"
            for place in range(1, len(shares))
        ]
        return case(conditions, labels)


def rule_of(policy: Policy, formulas: Formulas, shown: str) -> Rule:
    """Find the simplest form of what is played at a forecast, and demand what its guarantee demands."""
    problem, names = policy._problem, formulas.names
    if isinstance(policy, SafetyPolicy):
        return _finite(formulas, policy._mixtures(np.zeros((1, problem.dimension))), [])
    if isinstance(policy, RecalibratedPolicy):
        return rule_of(policy.policy, _recalibrated(policy.recalibrator, formulas), shown)
    if isinstance(policy, FixedRule) and policy.thresholds is not None:
        thresholds, steps = policy.steps()
        conditions = [f"{formulas.v[0]} < {names.dialect.number(threshold)}" for threshold in thresholds]
        return _finite(formulas, np.eye(problem.n_actions)[steps], conditions)
    if not isinstance(policy, (PlugInPolicy, RobustPolicy)):
        raise InputError(f"a {type(policy).__name__} cannot be written in SQL.")
    if isinstance(policy, RobustPolicy):
        return _fitted_rule(policy.fitted_, formulas, shown)
    return _following(problem, formulas)


def _following(problem: DecisionProblem, formulas: Formulas) -> Rule:
    """Write best responses."""
    return _finite(formulas, np.eye(problem.n_actions), formulas.telling_apart(BestResponse(problem)))


def _fitted_rule(fitted: FittedPolicy, formulas: Formulas, shown: str) -> Rule:
    problem, names = fitted.problem, formulas.names
    if fitted.parts:  # that meet a capacity together
        rules = [(names.dialect.number(weight), _fitted_rule(part, formulas, shown)) for weight, part in fitted.parts]
        if len(rules) == 1:
            return rules[0][1]
        shares = ([f"{weight} * ({share})" for share in rule.probabilities] for weight, rule in rules)
        return Rule(names.bind("p", list(map(" + ".join, zip(*shares, strict=True)))))
    if fitted.multipliers is None:
        rule = fitted.against
        return _following(problem, formulas) if rule is None else rule_of(rule, formulas, shown)
    tests = symbolic_tests(fitted.guarantee, problem.space)
    if tests.positive:
        positive = [f"{formulas(margin)} > {names.dialect.number(0.0)}" for margin in tests.positive]
        names.demand(" AND ".join(positive), f"{STRICTLY_INSIDE}; got ", shown)
    for group in tests.groups:
        _demand_group(group, formulas, known=fitted.unseen is None)
    if problem.n_actions == 1:
        return _finite(formulas, np.ones((1, 1)), [])
    terms = fitted.terms()
    if terms is None:
        raise InputError("a policy that improves on this rule in use cannot be written in SQL; decide in Python.")
    return _with_few_tilts(fitted, terms, formulas) or _with_many_tilts(fitted, terms, formulas)


def _demand_group(group: Group, formulas: Formulas, *, known: bool) -> None:
    """Demand that a row is of a known group, or at least that no value is missing."""
    names = formulas.names
    columns = [formulas.context[name] for name, _ in group.columns]
    there = [f"{column} IS NOT NULL" for column in columns]
    for column, (_, cuts) in zip(columns, group.columns, strict=True):
        there += [f"{names.dialect.as_double(column)} < {names.dialect.number(MOST)}"] if cuts else []
    shown = " || ', ' || ".join(f"COALESCE({names.dialect.as_text(column)}, 'NULL')" for column in columns)
    condition = f"{formulas(group)} >= 1" if known else " AND ".join(there)
    names.demand(condition, "context must be of a group that was fitted on; got ", shown)


def _finite(formulas: Formulas, mixtures: FloatArray, conditions: list[str]) -> Rule:
    """Write the mixtures that are played, told apart by conditions; none are needed for one."""
    number = formulas.names.dialect.number
    shares = [case(conditions, list(map(number, column))) for column in mixtures.T]
    if np.count_nonzero(mixtures, axis=1).max() > 1:
        return Rule(formulas.names.bind("p", shares))
    actions = mixtures.argmax(axis=1)
    return Rule(shares, lambda labels: case(conditions, [labels[action] for action in actions]))


def _with_few_tilts(fitted: FittedPolicy, terms: list[Term], formulas: Formulas) -> Rule | None:
    """Write the mixture of each label, or the only one; None where the tilt takes many values, or the forecast counts.

    That is the case in ties, and where mixtures are approximations that may depend on the rows solved together.
    """
    varying = [term for term in terms if not term.constant]
    if len(varying) > 1 or any(term.factor is not None for term in varying):
        return None
    label = varying[0].label if varying else None
    tilts = np.zeros((1 if label is None else label.n_labels, fitted.problem.dimension))
    for term in terms:
        tilts += term.table
    if fitted.randomize and not fitted.local.settled(tilts):
        return None
    return _finite(formulas, fitted.mixtures(tilts), formulas.telling_apart(label))


def _with_many_tilts(fitted: FittedPolicy, terms: list[Term], formulas: Formulas) -> Rule:
    problem, local, names = fitted.problem, fitted.local, formulas.names
    written = formulas.tilt(terms, problem.dimension)
    if not fitted.randomize:
        return _pure(fitted, formulas, names.bind("s", written))
    if isinstance(local, Envelope):
        return Rule(_between_slopes(local, formulas, written[0]))
    if isinstance(local, VertexGame):
        return Rule(_vertex_probabilities(local, formulas, written))
    raise InputError(
        "this policy's game has too many vertices to be tabulated, so its mixtures have no SQL form. Decide in Python, "
        "or reduce the number of actions or coordinates."
    )


def _between_slopes(envelope: Envelope, formulas: Formulas, tilt: str) -> list[str]:
    """Write :meth:`Envelope.mixtures`: between two slopes of the envelope neighbours are mixed."""
    names, number = formulas.names, formulas.names.dialect.number
    zero, one, slopes = number(0.0), number(1.0), envelope.slopes.tolist()
    (target,) = names.bind("s", [f"-({tilt})"])
    shares = [f"({target} - {number(low)}) / {number(high - low)}" for low, high in pairwise(slopes)]
    passed = [one, *names.bind("x", [f"LEAST(GREATEST({share}, {zero}), {one})" for share in shares]), zero]
    found = [zero] * envelope.n_actions
    for action, (here, further) in zip(envelope.actions.tolist(), pairwise(passed), strict=True):
        found[action] = f"{here} - {further}"  # exact: a share that is not zero follows one that is one
    return names.bind("p", found)


def _pure(fitted: FittedPolicy, formulas: Formulas, s: list[str]) -> Rule:
    """Write ``argmax_a { c_a + min_p p.(r_a + s) }``, as :func:`prudent.solvers.pure_actions` computes it."""
    problem, number = fitted.problem, formulas.names.dialect.number
    everything = np.eye(problem.n_actions)
    if problem.dimension == 1:
        steps = pure_envelope(fitted.game)
        conditions = [f"{s[0]} < {number(threshold)}" for threshold in steps.thresholds]
        return _finite(formulas, everything[steps.actions], conditions)
    low, high = problem.space.bounds
    scores = []
    for rewards, cost in zip(problem.rewards, problem.costs, strict=True):
        tilted = [f"({number(reward)} + {tilt})" for reward, tilt in zip(rewards, s, strict=True)]
        ends = zip(tilted, low, high, strict=True)
        least = " + ".join(f"LEAST({number(a)} * {text}, {number(b)} * {text})" for text, a, b in ends)
        if problem.space.is_simplex:
            least = f"LEAST({', '.join(tilted)})"
        scores.append(f"{number(-cost)} + ({least})")
    place = formulas.first_largest(scores)
    return _finite(formulas, everything, formulas.up_to(place, problem.n_actions))


def _vertex_probabilities(game: VertexGame, formulas: Formulas, tilts: list[str]) -> list[str]:
    """Name the mixture that the table gives at a tilt; ties are resolved at the forecast."""
    if game.n_vertices > _MOST_VERTICES:
        raise InputError(
            f"this policy's game has {game.n_vertices:,} vertices; SQL is written for at most {_MOST_VERTICES}. "
            f"Decide in Python, or reduce the number of actions or coordinates."
        )
    names, m = formulas.names, game.game.n_actions
    dialect = names.dialect
    number = dialect.number
    s = names.bind("s", [f"({tilt}) * {number(unit)}" for tilt, unit in zip(tilts, game.unit, strict=True)])
    scores = [_affine(number, *both, s) for both in zip(game.heights, game.corners, strict=True)]
    entry = formulas.first_extreme(scores, "min")
    tables = [(game.constants, game.slopes), *(_by_action(tied, m) for tied in game.tied)]
    if game.tied:
        entry = _resolved(game, formulas, entry, s)
    constants, slopes = (np.concatenate(parts) for parts in zip(*tables, strict=True))

    def looked_up(column: FloatArray) -> str:
        return dialect.element(dialect.array([number(value) for value in column]), entry)

    plain = []
    for a in range(m):
        products = [f"{looked_up(slopes[:, j, a])} * {s[j]}" for j in range(len(s)) if slopes[:, j, a].any()]
        plain.append(" + ".join([looked_up(constants[:, a]), *products]))
    raw, zero = names.bind("m", plain), number(0.0)
    cut = names.bind("c", [f"CASE WHEN {share} < {number(1e-12)} THEN {zero} ELSE {share} END" for share in raw])
    (total,) = names.bind("total", [" + ".join(cut)])
    return names.bind("p", [f"{share} / {total}" for share in cut])


def _resolved(game: VertexGame, formulas: Formulas, vertex: str, s: list[str]) -> str:
    """Name the entry that is played: a vertex, or the first basis of a degenerate one with the highest nominal utility.

    Bases follow the vertices in the table, those of one degenerate vertex after those of another; those of other
    vertices, and those with negative multipliers, count as worth nothing at all.
    """
    names = formulas.names
    dialect = names.dialect
    number = dialect.number
    low, _ = game.game.space.bounds
    above = [f"({v} - {number(start)})" for v, start in zip(formulas.v, low, strict=True)]
    terms = zip(*nominal_terms(game.game), strict=True)
    utilities = names.bind("u", [_affine(number, *both, above) for both in terms])
    nominal = names.bind("n", [f"{utility} - {utilities[0]}" for utility in utilities])
    (group,) = names.bind("tie", [dialect.element(dialect.array([str(place) for place in game.group]), vertex)])
    never, written = number(-1e300), []  # no utility in natural units is this low
    for place, tied in enumerate(game.tied):
        for slopes, constants, actions in zip(tied.slopes, tied.constants, tied.actions, strict=True):
            shares = [_affine(number, *both, s) for both in zip(constants, slopes, strict=True)]
            allowed = " AND ".join([f"{group} = {place}", *(f"{share} >= {number(-1e-12)}" for share in shares)])
            pairs = zip(shares, actions, strict=True)
            gains = [f"({share}) * {nominal[action]}" for share, action in pairs if action < len(nominal)]
            written.append(f"CASE WHEN {allowed} THEN {' + '.join(gains) or number(0.0)} ELSE {never} END")
    values = names.bind("e", written)
    (most,) = names.bind("most", [f"GREATEST({', '.join(values)}, {never})"])
    conditions = [f"{most} = {never}", *(f"{value} >= {most} - {number(1e-12)}" for value in values[:-1])]
    bases = [str(game.n_vertices + place) for place in range(1, len(values) + 1)]
    return names.bind("entry", [case(conditions, [vertex, *bases])])[0]


def _by_action(tied: TiedVertex, m: int) -> tuple[FloatArray, FloatArray]:
    """Return the constants ``(bases, m)`` and slopes ``(bases, d, m)`` of probabilities; zero outside of a basis."""
    member = (tied.actions[:, :, None] == np.arange(m)).astype(float)
    return np.einsum("brm,br->bm", member, tied.constants), np.einsum("brm,brd->bdm", member, tied.slopes)


def _affine(number: Callable[[float], str], constant: float, rates: FloatArray, points: list[str]) -> str:
    products = [f"{point} * {number(rate)}" for point, rate in zip(points, rates, strict=True)]
    return " + ".join([number(constant), *products])


def _recalibrated(recalibrator: Any, formulas: Formulas) -> Formulas:
    """Name the recalibrated forecast, and go on with it instead of the raw one."""
    if isinstance(recalibrator, SegmentedCalibrator):
        found = _recalibrated(recalibrator.base_, formulas)
        for name, value, shift in recalibrator.steps_:
            here = f"{found.context[name]} = {found.names.dialect.label(value)}"
            pairs = zip(_recalibrated(shift, found).v, found.v, strict=True)
            written = found.names.bind("m", [case([here], [*pair]) for pair in pairs])
            found = Formulas(found.names, written, found.context)
        return found
    names, space = formulas.names, recalibrator.space_
    if not isinstance(recalibrator, (IsotonicCalibrator, ScalingCalibrator)) or isinstance(space, Grid):
        raise InputError(f"a {type(recalibrator).__name__} on {space!r} cannot be written in SQL; decide in Python.")
    single = space.one_map
    raw = formulas.v[-1:] if single else formulas.v
    number = names.dialect.number
    if isinstance(recalibrator, IsotonicCalibrator):
        moved = [
            case([f"{v} < {number(edge)}" for edge in edges], list(map(number, levels)))
            for v, edges, levels in zip(raw, recalibrator.edges_, recalibrator.levels_, strict=True)
        ]
    else:
        moved = _scaled(recalibrator, formulas, raw)
    moved = names.bind("m", moved)
    if space.is_simplex and single:
        moved = names.bind("m", [f"{number(1.0)} - {moved[0]}", moved[0]])
    elif space.is_simplex:
        (total,) = names.bind("total", [" + ".join(moved)])
        ends = number(0.0), number(1.0 / len(moved))
        moved = names.bind("m", [case([f"{total} > {ends[0]}"], [f"{m} / {total}", ends[1]]) for m in moved])
    return Formulas(names, moved, formulas.context)


def _scaled(recalibrator: ScalingCalibrator, formulas: Formulas, raw: list[str]) -> list[str]:
    names, number = formulas.names, formulas.names.dialect.number
    ends = list(zip(map(number, recalibrator.low_), map(number, recalibrator.high_), strict=True))
    numbers = list(zip(map(number, recalibrator.slopes_), map(number, recalibrator.intercepts_), strict=True))
    if recalibrator.linear:
        return [
            f"LEAST(GREATEST({slope} * {v} + {intercept}, {low}), {high})"
            for v, (slope, intercept), (low, high) in zip(raw, numbers, ends, strict=True)
        ]
    least, one, most = number(LEAST_SHARE), number(1.0), number(MOST_LOG_ODDS)
    if len(raw) > 1:
        scores = [f"ln(GREATEST({v}, {least}))" for v in raw]
        scores = names.bind("z", [f"{a} * {z} + {b}" for z, (a, b) in zip(scores, numbers, strict=True)])
        (top,) = names.bind("top", [f"GREATEST({', '.join(scores)})"])
        shares = names.bind("e", [f"exp({z} - {top})" for z in scores])
        (total,) = names.bind("total", [" + ".join(shares)])
        return [f"GREATEST({share} / {total}, {least})" for share in shares]
    width = float(recalibrator.high_[0] - recalibrator.low_[0])
    ((slope, intercept),), ((low, high),) = numbers, ends
    inside = f"LEAST(GREATEST(({raw[0]} - {low}) / {number(width or 1.0)}, {least}), {one} - {least})"
    (share,) = names.bind("q", [inside])
    (score,) = names.bind("z", [f"{slope} * (ln({share}) - ln({one} - {share})) + {intercept}"])
    (bounded,) = names.bind("z", [f"LEAST(GREATEST({score}, -{most}), {most})"])
    value = f"{low} + {number(width)} / ({one} + exp(-{bounded}))"
    return [f"LEAST(GREATEST({value}, {low}), {high})"]
