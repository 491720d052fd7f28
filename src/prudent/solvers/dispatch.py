"""Choose an algorithm, run it, certify what it proposes.

The order is from exact and cheap to general; the certificate's message says
which one was taken and why. Whatever an algorithm returns, the bounds come
from :mod:`prudent.solvers.bounds`.
"""

from __future__ import annotations

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.errors import InfeasibleError
from prudent.solvers.aggregation import aggregated, aggregation_applies
from prudent.solvers.bounds import certified_lower, certified_upper
from prudent.solvers.closed_forms import no_tests, plug_in_regions, separated_rows, slackened_cells
from prudent.solvers.game import Game
from prudent.solvers.general import general, second_opinion, without_small_slack
from prudent.solvers.local import LocalGame, local_game
from prudent.solvers.scalar import scalar_dual
from prudent.solvers.solution import Certificate, Solution, Status

__all__ = ["METHODS", "TOLERANCE", "solve"]

#: A solution is called optimal if its gap is at most this share of the utility range.
TOLERANCE = 1e-6

#: Aggregated proposals with a larger gap (share of the utility range) are solved again on all rows.
_AGGREGATION_GAP = 2e-7

METHODS = (
    "full",
    "no tests",
    "plug-in regions",
    "separated rows",
    "slackened cells",
    "scalar",
    "aggregation",
    "interior point",
)

_REASONS = {
    "full": "full calibration leaves one world, the forecasts themselves",
    "no tests": "there are no tests, so every world is allowed",
    "plug-in regions": "the tests contain this decision's own regions, so best responding is optimal",
    "separated rows": "the tests tell all distinct rows apart, so each has its mean forecast as belief",
    "slackened cells": "one coordinate and one test per cell, so each cell is a small problem of its own",
    "scalar": "one coordinate and one test, so the dual is one-dimensional and sorting solves it",
    "aggregation": "one coordinate and many rows, so cells of neighbouring rows propose and all rows certify",
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
    part = game if index is None else game.take(_first(index, rows.n_rows))
    part_local = local if game.shared else local_game(part)
    name, multipliers, beliefs, iterations = _propose(part, rows, part_local, method)
    certificate = _certify(part, rows, part_local, name, multipliers, beliefs)
    world = beliefs if index is None else beliefs[index]
    return Solution(multipliers, world, certificate, name, iterations)


def _propose(
    game: Game, rows: Ambiguity, local: LocalGame, method: str | None
) -> tuple[str, FloatArray, FloatArray, int]:
    """Run the first algorithm that applies, or the one asked for."""

    def wanted(name: str) -> bool:
        return method is None or method == name

    if rows.tests.n_moments == 0 and wanted("no tests"):
        return ("no tests", *no_tests(rows, local), 0)
    if wanted("plug-in regions") and game.shared:
        proposal = plug_in_regions(rows)
        if proposal is not None:
            return ("plug-in regions", *proposal, 0)
    if wanted("separated rows"):
        proposal = separated_rows(game, rows, local)
        if proposal is not None:
            return ("separated rows", *proposal, 0)
    if wanted("slackened cells"):
        proposal = slackened_cells(game, rows)
        if proposal is not None:
            return ("slackened cells", *proposal, 0)
    if wanted("scalar") and rows.tests.n_moments == 1 and game.dimension == 1 and (game.shared or game.n_actions == 1):
        return ("scalar", *scalar_dual(game, rows), 0)
    if wanted("aggregation") and aggregation_applies(game, rows):
        cells = aggregated(game, rows)
        if cells is not None and _gap(game, rows, local, cells[0], cells[1]) <= _AGGREGATION_GAP * game.scale:
            return ("aggregation", *cells)
    if not wanted("interior point"):
        raise ValueError(f"method {method!r} does not apply here; choose from {METHODS} or leave it out.")
    return ("interior point", *_general(game, rows, local))


def _general(game: Game, rows: Ambiguity, local: LocalGame) -> tuple[FloatArray, FloatArray, int]:
    """Run the general solver; where it leaves a gap, keep the better bounds of two more attempts."""
    multipliers, beliefs, iterations = general(game, rows)
    for attempt in (_on_exact_set, second_opinion):
        if _gap(game, rows, local, multipliers, beliefs) <= TOLERANCE * game.scale:
            break
        answer = attempt(game, rows)
        if answer is None:
            continue
        if certified_lower(game, rows, answer[0], local) > certified_lower(game, rows, multipliers, local):
            multipliers = answer[0]
        if certified_upper(game, rows, answer[1], answer[0]) < certified_upper(game, rows, beliefs, multipliers):
            beliefs = answer[1]
    return multipliers, beliefs, iterations


def _on_exact_set(game: Game, rows: Ambiguity) -> tuple[FloatArray, FloatArray] | None:
    """Solve with tiny slack made exact."""
    tight = without_small_slack(rows)
    if tight is None:
        return None
    try:
        multipliers, beliefs, _ = general(game, tight)
    except InfeasibleError:  # the centre itself may be out of reach
        return None
    return multipliers, beliefs


def _certify(
    game: Game, rows: Ambiguity, local: LocalGame, name: str, multipliers: FloatArray, beliefs: FloatArray
) -> Certificate:
    lower = certified_lower(game, rows, multipliers, local)
    upper = max(certified_upper(game, rows, beliefs, multipliers), lower)
    relative = (upper - lower) / game.scale
    last_digits = 16 * np.finfo(np.float64).eps * max(abs(lower), abs(upper))
    closed = relative <= TOLERANCE or upper - lower <= last_digits
    status = Status.OPTIMAL if closed else Status.NOT_PROVEN
    message = f"Method: {name}, because {_REASONS[name]}."
    if status is Status.NOT_PROVEN:
        message += f" The gap is {relative:.1e} of the utility range; both bounds hold, optimality is not proven."
    return Certificate(lower, upper, status, message)


def _gap(game: Game, rows: Ambiguity, local: LocalGame, multipliers: FloatArray, beliefs: FloatArray) -> float:
    lower = certified_lower(game, rows, multipliers, local)
    return certified_upper(game, rows, beliefs, multipliers) - lower


def _full(game: Game, ambiguity: Ambiguity) -> Solution:
    value = float(ambiguity.weights @ game.utilities(ambiguity.forecasts).max(axis=1))
    certificate = Certificate(value, value, Status.OPTIMAL, f"Method: full, because {_REASONS['full']}.")
    return Solution(None, ambiguity.forecasts, certificate, "full")


def _merge(game: Game, ambiguity: Ambiguity) -> tuple[Ambiguity, IntArray | None]:
    """Collapse rows with equal tests (and equal own rewards); None if all differ."""
    n = ambiguity.n_rows
    columns = [ambiguity.tests.values.reshape(n, -1)]
    if not game.shared:
        columns += [game.rewards.reshape(n, -1), game.offsets]
    keys = np.hstack(columns) + 0.0  # so that 0.0 and -0.0 are one key
    if keys.shape[1] == 0:
        return ambiguity.merge(np.zeros(n, dtype=np.int64), 1), np.zeros(n, dtype=np.int64)
    _, first, index = np.unique(_fingerprints(keys), return_index=True, return_inverse=True)
    if first.size == n or not np.array_equal(keys, keys[first[index]]):
        return ambiguity, None  # nothing to merge, or two keys share a fingerprint
    return ambiguity.merge(index, first.size), index


def _fingerprints(keys: FloatArray) -> IntArray:
    """Hash each row of bit patterns to 64 bits; equal rows get equal numbers."""
    bits = np.ascontiguousarray(keys).view(np.uint64)
    mixed = np.zeros(keys.shape[0], dtype=np.uint64)
    for j in range(keys.shape[1]):
        mixed ^= bits[:, j]
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def _first(index: IntArray, count: int) -> IntArray:
    first = np.zeros(count, dtype=np.int64)
    first[index[::-1]] = np.arange(index.size)[::-1]
    return first
