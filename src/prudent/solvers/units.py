"""Natural units: the unit box (or the simplex) for outcomes, a range of one for utilities.

Users have dollars beside degrees. The general algorithms work in units in
which every coordinate runs from zero to one; worlds and multipliers are
mapped back. Round slack on coordinates of different width would become an
ellipsoid, so there the tests carry the widths instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from prudent.ambiguity import Ambiguity, SlackSet
from prudent.arrays import FloatArray
from prudent.remembering import remembered, remembered_for_arrays
from prudent.solvers.game import Game
from prudent.spaces import Box, Simplex

__all__ = ["Units", "normalize", "normalize_game"]


@dataclass(frozen=True, eq=False)
class Units:
    """How normalised quantities translate into the user's.

    Attributes
    ----------
    low, width : arrays of shape (d,)
        A normalised outcome ``z`` is ``low + width * z``.
    price : array of shape (K,)
        Multiplies normalised multipliers.
    """

    low: FloatArray
    width: FloatArray
    price: FloatArray

    def outcomes(self, normal: FloatArray) -> FloatArray:
        """Translate normalised outcomes, never past a bound."""
        return np.clip(self.low + self.width * normal, self.low, self.low + self.width)

    def multipliers(self, normal: FloatArray) -> FloatArray:
        """Translate normalised multipliers."""
        return normal * self.price


def normalize_game(game: Game) -> Game:
    """Shift and scale outcomes and utilities; mixtures stay what they are."""
    low, high = game.space.bounds
    width, scale = high - low, game.scale
    rewards = game.rewards * (width / scale)
    offsets = (game.offsets + game.rewards_at(low)) / scale
    d = game.dimension
    space = game.space if isinstance(game.space, Simplex) else Box([0.0] * d, [1.0] * d)
    return Game(rewards, offsets - offsets.mean(), space, game.shared)


def normalize(game: Game, ambiguity: Ambiguity) -> tuple[Game, Ambiguity, Units]:
    """Put a game and its ambiguity set into natural units."""
    normal = normalize_game(game)
    low, high = game.space.bounds
    rows, per_moment = _normal_rows(ambiguity)
    return normal, rows, Units(low, high - low, game.scale / per_moment)


@remembered
def _normal_rows(ambiguity: Ambiguity) -> tuple[Ambiguity, FloatArray]:
    """Put rows into natural units; also how wide the outcomes are that each moment is made of."""
    low, high = ambiguity.space.bounds
    width = high - low
    tests, slack = ambiguity.tests, ambiguity.slack
    if tests.scalar and (not slack.ball or (width == width[0]).all()):
        per_moment = np.tile(width, tests.values.shape[1])
        radius = slack.radius / (width[0] if slack.ball else per_moment)
        slack = SlackSet(slack.center / per_moment, radius, slack.groups, slack.ball)
    else:
        widest = float(width.max())
        if tests.scalar or (width != widest).any():
            tests = tests.as_vector()
            tests = replace(tests, values=tests.values * (width / widest))
        slack = SlackSet(slack.center / widest, slack.radius / widest, slack.groups, slack.ball)
        per_moment = np.full(tests.n_moments, widest)

    def inside(points: FloatArray) -> FloatArray:
        if not low.any() and (width == 1).all() and points.max(initial=0.0) <= 1.0:
            return points
        return _inside(points, tuple(low.tolist()), tuple(width.tolist()))

    d = ambiguity.space.dimension
    moved = replace(
        ambiguity,
        space=ambiguity.space if isinstance(ambiguity.space, Simplex) else Box([0.0] * d, [1.0] * d),
        forecasts=inside(ambiguity.forecasts),
        tests=tests,
        slack=slack,
        plug_in_multipliers=None,
        member=None if ambiguity.member is None else inside(ambiguity.member),
    )
    return moved, per_moment


@remembered_for_arrays
def _inside(points: FloatArray, low: tuple[float, ...], width: tuple[float, ...]) -> FloatArray:
    """Put points of a box into the unit box."""
    return np.clip((points - np.array(low)) / np.array(width), 0.0, 1.0)
