"""Certificates: bounds that hold whatever produced the multipliers and the world.

Lower: for *any* multipliers and *any* mixtures, weak duality gives
``worst(pi) >= sum_i w_i [c.pi_i + min_p p.(R^T pi_i + s_i) - s_i.v_i] - sigma_S(L)``
(docs/theory.md, section 2). Upper: any world ``q`` in the ambiguity set holds every
policy to ``E val(q)``. Both are rounded outward.

Outcomes are measured from the lower corner of the space and utilities from
their mean there, so that a far-away origin costs no digits.
"""

from __future__ import annotations

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray
from prudent.solvers.game import Game
from prudent.solvers.local import LocalGame
from prudent.spaces import Simplex

__all__ = ["certified_lower", "certified_upper"]

_EPSILON = float(np.finfo(np.float64).eps)


def certified_lower(game: Game, ambiguity: Ambiguity, multipliers: FloatArray, local: LocalGame) -> float:
    """Compute the dual value ``G(L)`` with the mixtures that will be played, rounded down."""
    low, high = game.space.bounds
    width = high - low
    offsets, common = _offsets(game, low)
    tilts = ambiguity.tests.tilts(multipliers)
    mixtures = local.mixtures(tilts, ambiguity.forecasts)
    direction = game.mixed_rewards(mixtures) + tilts
    least = direction.min(axis=1) if isinstance(game.space, Simplex) else np.minimum(direction * width, 0.0).sum(axis=1)
    linear = (tilts * (ambiguity.forecasts - low)).sum(axis=1)
    total = float(ambiguity.weights @ ((mixtures * offsets).sum(axis=1) + least - linear))
    penalty = ambiguity.slack.support(multipliers)
    # Everything that was added up: each operation errs by at most epsilon of it. Tilts may cancel, so their
    # own sums count at full size.
    reach = float(ambiguity.weights @ (ambiguity.tests.tilt_sizes(multipliers) * width).sum(axis=1))
    margin = _rounding(ambiguity, game) * (_size(game, offsets, width) + 2 * reach + abs(penalty))
    return total - penalty - margin + common - 2 * _EPSILON * abs(common)


def certified_upper(game: Game, ambiguity: Ambiguity, beliefs: FloatArray, multipliers: FloatArray) -> float:
    """Compute ``E val(q)`` for a world in the ambiguity set, rounded up.

    Moments that miss the set by rounding are charged at the price of the
    multipliers, which is what the optimum changes by to first order.
    """
    low, high = game.space.bounds
    offsets, common = _offsets(game, low)
    utilities = Game(game.rewards, offsets, game.space, game.shared).utilities(beliefs - low)
    moments = ambiguity.moments(beliefs)
    missed = abs(float(multipliers @ (moments - ambiguity.slack.project(moments))))
    margin = _rounding(ambiguity, game) * _size(game, offsets, high - low)
    return float(ambiguity.weights @ utilities.max(axis=1)) + missed + margin + common + 2 * _EPSILON * abs(common)


def _offsets(game: Game, low: FloatArray) -> tuple[FloatArray, float]:
    """Utilities at the lower corner of the space, without their mean; and that mean."""
    corner = game.offsets + game.rewards @ low
    common = float(corner.mean())
    return corner - common, common


def _size(game: Game, offsets: FloatArray, width: FloatArray) -> float:
    """Largest absolute utility that can occur: the unit of rounding errors."""
    return float((np.abs(offsets) + (np.abs(game.rewards) * width).sum(axis=2)).max())


def _rounding(ambiguity: Ambiguity, game: Game) -> float:
    """Relative rounding: pairwise sums err by at most log2(n) epsilon, short dot products by their length."""
    depth = np.log2(ambiguity.n_rows + 1) + game.n_actions + game.dimension + ambiguity.tests.n_tests + 8
    return float(depth) * _EPSILON
