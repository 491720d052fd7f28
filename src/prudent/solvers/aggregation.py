"""Many rows with one coordinate: solve on cells of neighbouring rows, certify on all rows.

All tests are functions of the one coordinate, so rows that are neighbours in
it have nearly equal tests. A cell gets the total weight and mean tests, while
the linear term stays exact: the moment that the cells must reach is that of
all rows. A world that is constant on cells then has exactly the right moments
on all rows, so its value is an upper bound; the multipliers are certified on
all rows (docs/theory.md, section 6, aggregation).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prudent.ambiguity import Ambiguity, SlackSet
from prudent.arrays import FloatArray, IntArray
from prudent.errors import InfeasibleError
from prudent.solvers.game import Game
from prudent.solvers.general import general

__all__ = ["aggregated", "aggregation_applies"]

_LEAST_ROWS = 20_000
_CELLS = 4_096
_MOST_JUMPS = 4_096


def aggregation_applies(game: Game, ambiguity: Ambiguity) -> bool:
    """True for one coordinate and enough rows to be worth it."""
    return game.dimension == 1 and ambiguity.n_rows > _LEAST_ROWS and (game.shared or game.n_actions == 1)


def aggregated(game: Game, ambiguity: Ambiguity) -> tuple[FloatArray, FloatArray, int] | None:
    """Propose multipliers and a world for all rows from cells, or None where the cells allow no world."""
    tests = ambiguity.tests
    values = tests.values if tests.scalar else tests.values[:, :, 0]
    features = values if game.shared else np.hstack([values, game.rewards[:, 0], game.offsets])
    index, count = _cells(ambiguity.forecasts[:, 0], features)
    cells = ambiguity.merge(index, count)
    means = np.stack([_cell_mean(column, ambiguity.weights, index, cells.weights) for column in values.T], axis=1)
    cells = replace(cells, tests=replace(tests, values=means if tests.scalar else means[:, :, None]))
    part = game
    if not game.shared:
        rewards = _cell_mean(game.rewards[:, 0, 0], ambiguity.weights, index, cells.weights)
        offsets = _cell_mean(game.offsets[:, 0], ambiguity.weights, index, cells.weights)
        part = Game(rewards[:, None, None], offsets[:, None], game.space, shared=False)
    # What the cells' moments must reach so that all rows' are right; the difference is written without cancellation.
    shift = tests.moments(ambiguity.forecasts - cells.forecasts[index], ambiguity.weights)
    slack = ambiguity.slack
    slack = SlackSet(slack.center + shift, slack.radius, slack.groups, slack.ball)
    try:
        multipliers, world, iterations = general(part, replace(cells, slack=slack, member=None))
    except InfeasibleError:  # worlds constant on cells may all be excluded where others are not
        return None
    return multipliers, world[index], iterations


def _cells(position: FloatArray, features: FloatArray) -> tuple[IntArray, int]:
    """Cut the sorted rows into equal parts, and wherever a test or reward jumps."""
    n = position.size
    order = np.argsort(position, kind="stable")
    span = np.maximum(features.max(axis=0) - features.min(axis=0), 1e-300)
    change = (np.abs(np.diff(features[order], axis=0)) / span).max(axis=1, initial=0.0)
    jumps = np.flatnonzero(change > 1e-3) + 1
    if jumps.size > _MOST_JUMPS:
        jumps = np.argpartition(-change, _MOST_JUMPS)[:_MOST_JUMPS] + 1
    starts = np.zeros(n, dtype=np.int64)
    starts[np.linspace(0, n, _CELLS, endpoint=False).astype(np.int64)[1:]] = 1
    starts[jumps] = 1
    number = np.cumsum(starts)
    index = np.empty(n, dtype=np.int64)
    index[order] = number
    return index, int(number[-1]) + 1


def _cell_mean(column: FloatArray, weights: FloatArray, index: IntArray, totals: FloatArray) -> FloatArray:
    mean: FloatArray = np.bincount(index, weights=weights * column, minlength=totals.size) / totals
    return mean
