"""Cases where the optimum can be written down (docs/theory.md, section 4).

Each returns multipliers and a world; the bounds are certified like all others.
"""

from __future__ import annotations

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray
from prudent.solvers.envelope import upper_envelope
from prudent.solvers.game import Game
from prudent.solvers.local import LocalGame

__all__ = ["no_tests", "plug_in_regions", "separated_rows", "slackened_cells"]


def no_tests(ambiguity: Ambiguity, local: LocalGame) -> tuple[FloatArray, FloatArray]:
    """Without tests the tilt is zero: every row is a game of its own, equal ones were merged."""
    return np.zeros(0), local.beliefs(np.zeros_like(ambiguity.forecasts))


def plug_in_regions(ambiguity: Ambiguity) -> tuple[FloatArray, FloatArray] | None:
    """Where the tests contain the tilt ``-r_BR(v)``, and exactly, the forecasts are a worst world.

    Tests that the tilt is not made of may have slack, as long as the forecasts are a world.
    """
    known, slack = ambiguity.plug_in_multipliers, ambiguity.slack
    if known is None:
        return None
    radius = slack.radius[slack.groups] if slack.ball else slack.radius
    exact = not radius[known != 0].any() and not slack.center[known != 0].any()
    if not exact or slack.project(np.zeros_like(slack.center)).any():
        return None
    return known, ambiguity.forecasts


def separated_rows(game: Game, ambiguity: Ambiguity, local: LocalGame) -> tuple[FloatArray, FloatArray] | None:
    """Where exact tests tell all (merged) rows apart, every row's belief is its mean forecast.

    Covers bins, cells, regions, zero bias and forecasts with few values: with
    linearly independent test vectors ``sum_i w_i h_i (q_i - v_i) = 0`` forces
    ``q = v``. Rows on which all tests vanish are free: safety.
    """
    tests = ambiguity.tests
    if not (ambiguity.slack.exact and tests.scalar and game.shared):
        return None
    values = tests.values
    if ambiguity.n_rows > values.shape[1] + 1:  # merged rows: at most one of them is free
        return None
    free = ~values.any(axis=1)
    held = np.flatnonzero(~free)
    if held.size > values.shape[1]:
        return None
    best = game.utilities(ambiguity.forecasts).argmax(axis=1)
    wanted = -game.rewards[0][best[held]]
    if _one_test_per_row(values[held]):
        column = np.abs(values[held]).argmax(axis=1)
        table = np.zeros((values.shape[1], game.dimension))
        table[column] = wanted / values[held, column][:, None]
    else:
        if np.linalg.matrix_rank(values[held], tol=1e-9 * np.abs(values[held]).max()) < held.size:
            return None
        table = np.linalg.lstsq(values[held], wanted, rcond=None)[0]
    beliefs = ambiguity.forecasts.copy()
    if free.any():
        beliefs[free] = local.beliefs(np.zeros((1, game.dimension)))
    return table.reshape(-1), beliefs


def slackened_cells(game: Game, ambiguity: Ambiguity) -> tuple[FloatArray, FloatArray] | None:
    """One coordinate, one test per (merged) row, slack: each cell minimises ``val`` on an interval.

    The cell's mean belief may move by ``radius / (weight |h|)`` around the
    mean forecast (shifted by the centre), within the space.
    """
    tests = ambiguity.tests
    if not (game.shared and game.dimension == 1) or ambiguity.n_rows > tests.n_moments:
        return None
    values = tests.values if tests.scalar else tests.values[:, :, 0]
    if not _one_test_per_row(values) or ambiguity.slack.ball:
        return None
    unused = ~values.any(axis=0)
    if (np.abs(ambiguity.slack.center[unused]) > ambiguity.slack.radius[unused]).any():
        return None  # no row can give such a test a moment other than zero: the general solver refuses
    envelope = upper_envelope(game)
    column = np.abs(values).argmax(axis=1)
    strength = ambiguity.weights * values[np.arange(values.shape[0]), column]
    mean = ambiguity.forecasts[:, 0] + ambiguity.slack.center[column] / strength
    reach = ambiguity.slack.radius[column] / np.abs(strength)
    low, high = (bound[0] for bound in game.space.bounds)
    left, right = np.maximum(mean - reach, low), np.minimum(mean + reach, high)
    if (left > right).any():
        return None  # empty, or so by rounding: the general solver says which
    flat_left = envelope.points[np.searchsorted(envelope.slopes, 0.0, side="left")]
    flat_right = envelope.points[np.searchsorted(envelope.slopes, 0.0, side="right")]
    beliefs = np.clip(np.clip(mean, flat_left, flat_right), left, right)
    # The slope of val seen from the belief towards where it would fall further; zero at its minimum.
    below = envelope.slopes[np.searchsorted(envelope.points[1:-1], beliefs, side="left")]
    above = envelope.slopes[np.searchsorted(envelope.points[1:-1], beliefs, side="right")]
    slope = np.where(
        beliefs < flat_left, np.minimum(above, 0.0), np.where(beliefs > flat_right, np.maximum(below, 0.0), 0.0)
    )
    multipliers = np.zeros(values.shape[1])
    multipliers[column] = -slope / values[np.arange(values.shape[0]), column]
    return multipliers, beliefs[:, None]


def _one_test_per_row(values: FloatArray) -> bool:
    """True if every row has exactly one nonzero test and every test at most one row."""
    nonzero = values != 0
    return bool((nonzero.sum(axis=1) == 1).all() and (nonzero.sum(axis=0) <= 1).all())
