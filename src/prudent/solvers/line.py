"""Maximise the pure dual exactly along a line of multipliers.

Along ``L + x D`` each row's pure value ``max_a { c_a + min_p p.(r_a + s + x b) }``
is piecewise linear: the inner functions are concave, their maximum switches
convexly. A local maximum of the sum can therefore only sit where some inner
function bends, and all of these points are compared by one sorted sweep.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.solvers.game import Game
from prudent.spaces import Simplex

__all__ = ["best_on_line"]

_CHUNK_ELEMENTS = 1 << 21
_FINALISTS = 16


def best_on_line(
    game: Game,
    weights: FloatArray,
    forecasts: FloatArray,
    tilts: FloatArray,
    directions: FloatArray,
    penalty_knots: FloatArray,
) -> FloatArray:
    """Return the few best positions ``x``, best first, before any penalty for slack.

    Parameters
    ----------
    game : Game
    weights, forecasts : arrays of shape (n,) and (n, d)
    tilts, directions : arrays of shape (n, d)
        Each row's tilt at ``x = 0`` and its change per unit of ``x``.
    penalty_knots : array
        Positions where the slack penalty bends; they are candidates as well.
    """
    knots = _bends(game, tilts, directions)
    finite = knots[np.isfinite(knots)]
    candidates = np.concatenate([finite.ravel(), penalty_knots])
    if candidates.size == 0:
        return np.zeros(1)
    left, right = float(candidates.min()), float(candidates.max())
    events: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    slope = intercept = 0.0
    step = max(1, _CHUNK_ELEMENTS // max(1, (knots.shape[1] + 1) * game.n_actions * game.dimension))
    for start in range(0, len(weights), step):
        rows = np.arange(start, min(start + step, len(weights)))
        first, rest = _row_events(
            game.take(rows), weights[rows], forecasts[rows], tilts[rows], directions[rows], knots[rows], left, right
        )
        slope += first[0]
        intercept += first[1]
        events.append(rest)
    positions = np.concatenate([event[0] for event in events] + [[left, right], penalty_knots])
    padding = np.zeros(2 + penalty_knots.size)
    slopes = np.concatenate([event[1] for event in events] + [padding])
    intercepts = np.concatenate([event[2] for event in events] + [padding])
    order = np.argsort(positions, kind="stable")
    positions = positions[order]
    heights = (slope + np.cumsum(slopes[order])) * positions + intercept + np.cumsum(intercepts[order])
    best = np.argsort(-heights, kind="stable")[: 8 * _FINALISTS]
    _, unique = np.unique(positions[best], return_index=True)
    return positions[best[np.sort(unique)]][:_FINALISTS]


def _bends(game: Game, tilts: FloatArray, directions: FloatArray) -> FloatArray:
    """Positions where some action's ``min_p p.(r_a + s + x b)`` bends, shape ``(n, T)``; inf where none."""
    base = game.rewards + tilts[:, None, :]
    move = np.broadcast_to(directions[:, None, :], base.shape)
    if isinstance(game.space, Simplex):
        one, other = np.triu_indices(game.dimension, k=1)
        base, move = base[:, :, one] - base[:, :, other], move[:, :, one] - move[:, :, other]
    with np.errstate(divide="ignore", invalid="ignore"):
        knots = np.where(move != 0, -base / move, np.inf)
    return knots.reshape(knots.shape[0], -1)


def _row_events(
    game: Game,
    weights: FloatArray,
    forecasts: FloatArray,
    tilts: FloatArray,
    directions: FloatArray,
    knots: FloatArray,
    left: float,
    right: float,
) -> tuple[tuple[float, float], tuple[FloatArray, FloatArray, FloatArray]]:
    """Write each row's piecewise linear value as a first line and changes of slope and intercept."""
    n = len(weights)
    inner = np.sort(np.clip(knots, left, right), axis=1)
    edges = np.hstack([np.full((n, 1), left), inner, np.full((n, 1), right)])
    middle = (edges[:, 1:] + edges[:, :-1]) / 2
    slopes, intercepts = _lines(game, forecasts, tilts, directions, middle)
    current = _highest(slopes, intercepts, edges[:, :-1])
    begin_slope, begin_intercept = _pick(slopes, current), _pick(intercepts, current)
    position = edges[:, :-1].copy()
    moved: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for _ in range(game.n_actions - 1):
        now_slope, now_intercept = _pick(slopes, current), _pick(intercepts, current)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = (now_intercept[:, :, None] - intercepts) / (slopes - now_slope[:, :, None])
        ahead = (slopes > now_slope[:, :, None]) & (crossing > position[:, :, None])
        crossing = np.where(ahead & (crossing < edges[:, 1:, None]), crossing, np.inf)
        following = crossing.argmin(axis=2)
        reached = _pick(crossing, following)
        row, part = np.nonzero(np.isfinite(reached))
        if row.size == 0:
            break
        chosen = following[row, part]
        moved.append(
            (
                reached[row, part],
                weights[row] * (slopes[row, part, chosen] - now_slope[row, part]),
                weights[row] * (intercepts[row, part, chosen] - now_intercept[row, part]),
            )
        )
        position[row, part] = reached[row, part]
        current[row, part] = chosen
    end_slope, end_intercept = _pick(slopes, current), _pick(intercepts, current)
    moved.append(
        (
            inner.ravel(),
            (weights[:, None] * (begin_slope[:, 1:] - end_slope[:, :-1])).ravel(),
            (weights[:, None] * (begin_intercept[:, 1:] - end_intercept[:, :-1])).ravel(),
        )
    )
    first = (float(weights @ begin_slope[:, 0]), float(weights @ begin_intercept[:, 0]))
    return first, (
        np.concatenate([event[0] for event in moved]),
        np.concatenate([event[1] for event in moved]),
        np.concatenate([event[2] for event in moved]),
    )


def _lines(
    game: Game, forecasts: FloatArray, tilts: FloatArray, directions: FloatArray, positions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of every action's function at positions ``(n, T)``, shape ``(n, T, m)``."""
    base = (game.rewards + tilts[:, None, :])[:, None]  # (n, 1, m, d)
    moved = base + positions[:, :, None, None] * directions[:, None, None, :]
    corner = game.space.support_minimizer(moved)
    slopes = (corner * directions[:, None, None, :]).sum(axis=3) - (directions * forecasts).sum(axis=1)[:, None, None]
    constant = (corner * base).sum(axis=3) + game.offsets[:, None, :]
    return slopes, constant - (tilts * forecasts).sum(axis=1)[:, None, None]


def _highest(slopes: FloatArray, intercepts: FloatArray, positions: FloatArray) -> IntArray:
    """Find the line on top at each position; of tied ones the steepest, which is on top just after."""
    heights = slopes * positions[:, :, None] + intercepts
    top = heights.max(axis=2, keepdims=True)
    slack = 1e-12 * (1.0 + np.abs(heights).max())
    return np.where(heights >= top - slack, slopes, -np.inf).argmax(axis=2)


def _pick(values: FloatArray, index: IntArray) -> FloatArray:
    return np.take_along_axis(values, index[:, :, None], axis=2)[:, :, 0]
