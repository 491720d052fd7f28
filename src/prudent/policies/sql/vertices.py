"""The vertex table in SQL: :meth:`VertexGame.mixtures`, operation by operation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies.sql.dialects import Dialect
from prudent.policies.sql.formulas import Formulas, Pipeline, case
from prudent.solvers.vertices import TiedVertex, VertexGame, nominal_terms

#: Larger tables are refused: the expression would be longer than engines like to parse.
MOST_VERTICES = 500


@dataclass(frozen=True)
class VertexRule:
    """Probabilities that have been named, one per action."""

    dialect: Dialect
    named: list[str]

    @property
    def mixed(self) -> bool:
        """True: between vertices of the tilt some mixture is played."""
        return len(self.named) > 1

    def probabilities(self) -> list[str]:
        """Return what stands for each action's probability."""
        return self.named

    def action(self, labels: list[str], uniform: str) -> str:
        """Write the first action whose cumulative probability exceeds the number, or the last possible one."""
        conditions, total = [], ""
        zero = self.dialect.number(0.0)
        for a, probability in enumerate(self.named[:-1]):
            total = f"{total} + {probability}" if total else probability
            later = " AND ".join(f"{other} = {zero}" for other in self.named[a + 1 :])
            # "Last possible" also needs a positive probability of its own: all later ones are zero before it, too.
            conditions.append(f"{total} > {uniform} OR ({probability} > {zero} AND {later})")
        return case(conditions, labels)


def vertex_rule(game: VertexGame, formulas: Formulas, tilts: list[str]) -> VertexRule:
    """Name the mixture that the table gives at a tilt; ties are resolved at the forecast."""
    if game.n_vertices > MOST_VERTICES:
        raise InputError(
            f"this policy's game has {game.n_vertices:,} vertices; SQL is written for at most {MOST_VERTICES}. "
            f"Decide in Python, or reduce the number of actions or coordinates."
        )
    names = formulas.names
    dialect = names.dialect
    number = dialect.number
    s = names.bind("s", [f"({tilt}) * {number(unit)}" for tilt, unit in zip(tilts, game.unit, strict=True)])
    scores = [
        _affine(number(height), [(s[j], number(corner[j])) for j in range(len(s))])
        for height, corner in zip(game.heights, game.corners, strict=True)
    ]
    vertex = formulas.first_extreme(scores, "min")
    plain = [
        _looked_up(dialect, vertex, game.constants[:, a], game.slopes[:, :, a], s) for a in range(game.game.n_actions)
    ]
    if game.tied:
        plain = _with_ties(game, formulas, plain, vertex, s)
    small = names.bind("m", plain)
    zero = number(0.0)
    cut = names.bind("c", [f"CASE WHEN {raw} < {number(1e-12)} THEN {zero} ELSE {raw} END" for raw in small])
    (total,) = names.bind("total", [" + ".join(cut)])
    return VertexRule(dialect, names.bind("p", [f"{share} / {total}" for share in cut]))


def _affine(constant: str, products: Sequence[tuple[str, str]]) -> str:
    return " + ".join([constant, *(f"{one} * {other}" for one, other in products)])


def _looked_up(dialect: Dialect, index: str, constants: FloatArray, slopes: FloatArray, s: list[str]) -> str:
    """Write ``constants[index] + slopes[index] . s``, coordinate by coordinate."""
    parts = [dialect.element(dialect.numbers(constants.tolist()), index)]
    parts += [
        f"{dialect.element(dialect.numbers(slopes[:, j].tolist()), index)} * {s[j]}"
        for j in range(len(s))
        if slopes[:, j].any()
    ]
    return " + ".join(parts)


def _with_ties(game: VertexGame, formulas: Formulas, plain: list[str], vertex: str, s: list[str]) -> list[str]:
    """Name the mixture before rounding off, with degenerate vertices resolved by nominal utility."""
    names, v = formulas.names, formulas.v
    dialect = names.dialect
    number = dialect.number
    base, rates = nominal_terms(game.game)
    low, _ = game.game.space.bounds
    utilities = names.bind(
        "u",
        [
            _affine(number(base[a]), [(f"({v[j]} - {number(low[j])})", number(rates[a, j])) for j in range(len(v))])
            for a in range(len(plain))
        ],
    )
    nominal = names.bind("n", [f"{utility} - {utilities[0]}" for utility in utilities])
    groups = dialect.array([str(int(group) + 1) for group in game.group])
    (group,) = names.bind("tie", [dialect.element(groups, vertex)])
    chosen = _best_bases(game.tied, names, s, nominal, len(plain))
    resolved = []
    for a, mixture in enumerate(plain):
        conditions, outcomes = [], []
        for number_of_tie, (tied, best) in enumerate(zip(game.tied, chosen, strict=True), start=1):
            slopes, constants = _by_action(tied, a)
            conditions.append(f"{group} = {number_of_tie} AND {best} > 0")
            outcomes.append(_looked_up(dialect, best, constants, slopes, s))
        resolved.append(case(conditions, [*outcomes, mixture]))
    return resolved


def _best_bases(ties: tuple[TiedVertex, ...], names: Pipeline, s: list[str], nominal: list[str], m: int) -> list[str]:
    """Name, for each degenerate vertex, the first basis with the highest nominal utility, from one; 0 for none."""
    number = names.dialect.number
    never = number(-1e300)  # no utility in natural units is this low
    found = []
    for tied in ties:
        values = names.bind("e", _expected(tied, names, s, nominal, m, never))
        (most,) = names.bind("most", [f"GREATEST({', '.join(values)})" if len(values) > 1 else values[0]])
        conditions = [f"{most} = {never}", *(f"{value} >= {most} - {number(1e-12)}" for value in values[:-1])]
        found += names.bind("best", [case(conditions, [str(r) for r in range(len(values) + 1)])])
    return found


def _expected(tied: TiedVertex, names: Pipeline, s: list[str], nominal: list[str], m: int, never: str) -> list[str]:
    """Write the nominal utility of each basis whose multipliers are not negative."""
    number = names.dialect.number
    written = []
    for slopes, constants, actions in zip(tied.slopes, tied.constants, tied.actions, strict=True):
        shares = [
            _affine(number(constant), [(s[j], number(slope[j])) for j in range(len(s))])
            for constant, slope in zip(constants, slopes, strict=True)
        ]
        allowed = " AND ".join(f"{share} >= {number(-1e-12)}" for share in shares)
        gains = [f"({share}) * {nominal[action]}" for share, action in zip(shares, actions, strict=True) if action < m]
        written.append(f"CASE WHEN {allowed} THEN {' + '.join(gains) or number(0.0)} ELSE {never} END")
    return written


def _by_action(tied: TiedVertex, action: int) -> tuple[FloatArray, FloatArray]:
    """Return the slopes ``(bases, d)`` and constants of one action's probability; zero where it is not in a basis."""
    member = tied.actions == action
    return np.where(member[:, :, None], tied.slopes, 0.0).sum(axis=1), np.where(member, tied.constants, 0.0).sum(axis=1)
