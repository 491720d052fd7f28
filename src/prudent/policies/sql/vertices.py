"""The vertex table in SQL: :meth:`VertexGame.mixtures`, operation by operation."""

from collections.abc import Callable

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies.sql.formulas import Formulas, case
from prudent.solvers.vertices import TiedVertex, VertexGame, nominal_terms

#: Larger tables are refused: the expression would be longer than engines like to parse.
MOST_VERTICES = 500


def vertex_probabilities(game: VertexGame, formulas: Formulas, tilts: list[str]) -> list[str]:
    """Name the mixture that the table gives at a tilt; ties are resolved at the forecast."""
    if game.n_vertices > MOST_VERTICES:
        raise InputError(
            f"this policy's game has {game.n_vertices:,} vertices; SQL is written for at most {MOST_VERTICES}. "
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
