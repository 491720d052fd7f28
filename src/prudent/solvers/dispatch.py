"""Choose an algorithm, run it, certify what it proposes.

The order is from exact and cheap to general; the certificate's message says
which one was taken and why. Whatever an algorithm returns, the bounds come
from :mod:`prudent.solvers.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from prudent.ambiguity import Ambiguity, first_rows
from prudent.arrays import FloatArray, IntArray
from prudent.errors import InfeasibleError
from prudent.guarantees.equal_rows import equal_rows
from prudent.solvers.bounds import best_utilities, certified_lower, certified_upper, certified_value
from prudent.solvers.closed_forms import no_tests, plug_in_regions, separated_rows, slackened_cells
from prudent.solvers.game import Game
from prudent.solvers.local import LocalGame, local_game
from prudent.solvers.scalar import scalar_dual
from prudent.solvers.solution import Certificate, Solution, Status
from prudent.solvers.spanned import spanned_rewards

__all__ = ["METHODS", "TOLERANCE", "certified", "shared_saddle", "solve"]

#: A solution is called optimal if its gap is at most this share of the utility range.
TOLERANCE = 1e-6

METHODS = (
    "full",
    "no tests",
    "plug-in regions",
    "separated rows",
    "slackened cells",
    "scalar",
    "saddle",
    "spanned rewards",
    "softened dual",
    "refined cells",
    "interior point",
)

_REASONS = {
    "full": "full calibration leaves one world, the forecasts themselves",
    "no tests": "there are no tests, so every world is allowed",
    "plug-in regions": "the tests contain this decision's own regions, so best responding is optimal",
    "separated rows": "the tests tell all distinct rows apart, so each has its mean forecast as belief",
    "slackened cells": "one coordinate and one test per cell, so each cell is a small problem of its own",
    "scalar": "one coordinate and one test, so the dual is one-dimensional and its optimum a weighted quantile",
    "saddle": "the policy is optimal, so the multipliers and the worst world of the best policy are its own",
    "spanned rewards": "what is played is a combination of the tests, so the allowed moments say what it gets",
    "softened dual": "there are many rows and vertices, so the dual is nearly smooth and Newton's method climbs it",
    "refined cells": "there are many rows, so cells of rows propose, split where they lose, and all rows certify",
    "interior point": "general tests, dimensions and slack",
}


def solve(game: Game, ambiguity: Ambiguity, local: LocalGame | None = None, method: str | None = None) -> Solution:
    """Find multipliers and a worst world for a game on an ambiguity set, with certified bounds.

    Parameters
    ----------
    game : Game
    ambiguity : Ambiguity
    local : LocalGame, optional
        The local game that a policy will play, if it was made before.
    method : str, optional
        One of ``METHODS`` to insist on an algorithm (it must apply); by default the first that applies.
    """
    local = local_game(game) if local is None else local
    if ambiguity.full:
        return _full(game, ambiguity)
    rows, index = _merge(game, ambiguity)
    part = game if index is None or game.shared else game.take(first_rows(index, rows.n_rows))
    part_local = local if game.shared else local_game(part)
    proposal = _propose(part, rows, part_local, method, ambiguity.n_rows)
    beliefs = proposal.beliefs if index is None else proposal.beliefs.take(index, axis=0)
    certificate = _certificate(part, proposal)
    return Solution(proposal.multipliers, beliefs, certificate, proposal.name, proposal.iterations)


def certified(game: Game, ambiguity: Ambiguity, multipliers: FloatArray, beliefs: FloatArray) -> Solution:
    """Certify multipliers and a world of one coordinate and one test that are known already."""
    lower = certified_lower(game, ambiguity, multipliers, local_game(game))
    upper = certified_upper(game, ambiguity, beliefs, multipliers)
    proposal = _Proposal("scalar", multipliers, beliefs, 0, lower, upper)
    return Solution(multipliers, beliefs, _certificate(game, proposal), proposal.name)


def shared_saddle(game: Game, ambiguity: Ambiguity, optimum: Solution) -> Solution | None:
    """Certify the worst case of a policy, whose game this is, by the best policy's; None if the policy is not optimal.

    An optimal policy has the same worst world as the best one, and the same multipliers prove it.
    """
    multipliers, beliefs = optimum.multipliers, optimum.beliefs
    if multipliers is None:
        return None
    least = optimum.lower - TOLERANCE * game.scale
    if ambiguity.weights @ best_utilities(game, beliefs) < least:
        return None
    lower = certified_lower(game, ambiguity, multipliers, local_game(game))
    if lower < least:
        return None
    proposal = _Proposal(
        "saddle", multipliers, beliefs, 0, lower, certified_upper(game, ambiguity, beliefs, multipliers)
    )
    found = Solution(multipliers, beliefs, _certificate(game, proposal), proposal.name)
    return found if found.certificate.status is Status.OPTIMAL else None


@dataclass(frozen=True, eq=False)
class _Proposal:
    """What an algorithm proposes, with the bounds that it comes to."""

    name: str
    multipliers: FloatArray
    beliefs: FloatArray
    iterations: int
    lower: float
    upper: float


def _propose(game: Game, rows: Ambiguity, local: LocalGame, method: str | None, stand_for: int) -> _Proposal:
    """Run the first algorithm that applies, or the one asked for; rows may stand for more that were merged."""
    from prudent.solvers.general import (  # late: keeps `import prudent` fast
        general,
        second_opinion,
        through_cells,
        through_softening,
    )

    def wanted(name: str) -> bool:
        return method is None or method == name

    def bounded(name: str, multipliers: FloatArray, beliefs: FloatArray, iterations: int = 0) -> _Proposal:
        lower = certified_lower(game, rows, multipliers, local)
        upper = certified_upper(game, rows, beliefs, multipliers)
        return _Proposal(name, multipliers, beliefs, iterations, lower, upper)

    def closed(proposal: _Proposal) -> bool:
        return proposal.upper - proposal.lower <= TOLERANCE * game.scale

    if rows.tests.n_moments == 0 and wanted("no tests"):
        return bounded("no tests", *no_tests(rows, local))
    if wanted("plug-in regions") and game.shared:
        found = plug_in_regions(rows)
        if found is not None:
            proposal = bounded("plug-in regions", *found)
            if closed(proposal):  # not so for a policy that does not best respond
                return proposal
    if wanted("separated rows"):
        found = separated_rows(game, rows, local)
        if found is not None:
            return bounded("separated rows", *found)
    if wanted("slackened cells"):
        found = slackened_cells(game, rows)
        if found is not None:
            return bounded("slackened cells", *found)
    if wanted("scalar") and rows.tests.n_moments == 1 and game.dimension == 1 and (game.shared or game.n_actions == 1):
        return bounded("scalar", *scalar_dual(game, rows, local))
    if wanted("spanned rewards"):
        found = spanned_rewards(game, rows)
        if found is not None:
            proposal = bounded("spanned rewards", *found)
            if closed(proposal):
                return proposal
    for name, algorithm in (("softened dual", through_softening), ("refined cells", through_cells)):
        many = algorithm(game, rows, local) if wanted(name) else None
        if many is not None:
            proposal = bounded(name, *many)
            if method is not None or closed(proposal):
                return proposal
    if not wanted("interior point"):
        raise ValueError(f"method {method!r} does not apply here; choose from {METHODS} or leave it out.")
    best = bounded("interior point", *general(game, rows, stand_for))
    for attempt in (_on_exact_set, second_opinion):
        # Where a gap is left, keep the better bounds of two more attempts.
        if closed(best):
            break
        answer = attempt(game, rows)
        if answer is not None:
            other = bounded(best.name, *answer)
            if other.lower > best.lower:
                best = replace(best, multipliers=other.multipliers, lower=other.lower)
            if other.upper < best.upper:
                best = replace(best, beliefs=other.beliefs, upper=other.upper)
    return best


def _on_exact_set(game: Game, rows: Ambiguity) -> tuple[FloatArray, FloatArray] | None:
    """Solve with tiny slack made exact."""
    from prudent.solvers.general import general, without_small_slack

    tight = without_small_slack(rows)
    if tight is None:
        return None
    try:
        multipliers, beliefs, _ = general(game, tight)
    except InfeasibleError:  # the centre itself may be out of reach
        return None
    return multipliers, beliefs


def _certificate(game: Game, proposal: _Proposal) -> Certificate:
    lower = proposal.lower
    upper = max(proposal.upper, lower)
    relative = (upper - lower) / game.scale
    last_digits = 16 * np.finfo(np.float64).eps * max(abs(lower), abs(upper))
    closed = relative <= TOLERANCE or upper - lower <= last_digits
    status = Status.OPTIMAL if closed else Status.NOT_PROVEN
    message = f"Method: {proposal.name}, because {_REASONS[proposal.name]}."
    if status is Status.NOT_PROVEN:
        message += f" The gap is {relative:.1e} of the utility range; both bounds hold, optimality is not proven."
    return Certificate(lower, upper, status, message)


def _full(game: Game, ambiguity: Ambiguity) -> Solution:
    certificate = Certificate(
        *certified_value(game, ambiguity), Status.OPTIMAL, f"Method: full, because {_REASONS['full']}."
    )
    return Solution(None, ambiguity.forecasts.copy(), certificate, "full")


def _merge(game: Game, ambiguity: Ambiguity) -> tuple[Ambiguity, IntArray | None]:
    """Collapse rows with equal tests (and equal own rewards); None if all differ, or if hardly any are equal."""
    tests = ambiguity.tests
    found = tests.cells if game.shared else equal_rows(tests.table, game.rewards, game.offsets)
    if found is None:
        return ambiguity, None
    count, index = found
    return ambiguity.merge(index, count), index
