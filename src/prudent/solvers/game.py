"""The decision problem as solvers see it: arrays with a row axis of length 1 or n.

Length 1 is one problem for all rows; length n gives each row its own rewards,
as in the worst case of a given policy, where the "problem" of a row is the
one mixture that the policy plays there.

The tilted local game of a row says which mixture to play and which belief hurts most: in one coordinate by the upper
envelope, in several by the vertices of the epigraph of ``val`` or, if they are too many, by the interior point.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from prudent.arrays import (
    EPSILON,
    FloatArray,
    IntArray,
    frozen,
    largest_in_columns,
    largest_in_rows,
    smallest_in_columns,
    sums_of_rows,
)
from prudent.arrays.chunks import over_rows
from prudent.cases.memory_rows import Ambiguity
from prudent.problem import DecisionProblem
from prudent.slack import SlackSet
from prudent.solvers.orthonormal_tests import accurate_combination
from prudent.spaces import Box, Space

if TYPE_CHECKING:
    from prudent.solvers.vertices import VertexGame


@frozen
class Game:
    """Utilities ``u_i(a, p) = rewards[i, a] . p + offsets[i, a]`` on an outcome space.

    Attributes
    ----------
    rewards : array of shape (1 or n, m, d)
    offsets : array of shape (1 or n, m)
    space : Box or Simplex
    shared : bool
        True if one problem stands for all rows; a single row may have a problem of its own.
    rounding : float
        By how much a utility may be off, where rewards and offsets were computed.
    """

    rewards: FloatArray
    offsets: FloatArray
    space: Space
    shared: bool
    rounding: float = 0.0

    @classmethod
    @lru_cache(maxsize=64)
    def of_problem(cls, problem: DecisionProblem) -> Game:
        """Share one problem among all rows."""
        return cls(problem.rewards[None], -problem.costs[None], problem.space, shared=True)

    @classmethod
    def of_rows(cls, problem: DecisionProblem, rewards: FloatArray, costs: FloatArray) -> Game:
        """Give every row rewards and costs of its own."""
        return cls(rewards, -costs, problem.space, shared=False)

    def against(self, mixtures: FloatArray) -> Game:
        """Write the game against a fixed policy, mixtures ``(n, m)``: one action per row, shared if all are alike."""
        shared = self.shared and len(mixtures) > 1 and all((column == column[0]).all() for column in mixtures.T)
        mixtures = mixtures[:1] if shared else mixtures
        rewards, offsets = self.mixed(mixtures)
        return Game(rewards[:, None], offsets[:, None], self.space, shared, self._rounding_of_mixtures)

    def gains_over(self, mixtures: FloatArray) -> Game:
        """Write what every action gains over a fixed policy, row by row."""
        rewards, offsets = self.mixed(mixtures)
        rounding = 2 * (self.rounding + self._rounding_of_mixtures)
        return Game(self.rewards - rewards[:, None], self.offsets - offsets[:, None], self.space, False, rounding)

    @property
    def _rounding_of_mixtures(self) -> float:
        far = np.maximum(*(np.abs(bound) for bound in self.space.bounds))
        return (self.n_actions + 3) * EPSILON * float(self.largest_rewards @ far + np.abs(self.offsets).max())

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.rewards.shape[1])

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates."""
        return int(self.rewards.shape[2])

    @cached_property
    def scale(self) -> float:
        """Utility range over actions and space; one where utilities are constant."""

        def ends(part: slice) -> tuple[float, float]:
            rewards, offsets = self.rewards[part], self.offsets[part]
            lowest = self.space.support_minimum(rewards) + offsets
            highest = offsets - self.space.support_minimum(-rewards)
            return float(lowest.min()), float(highest.max())

        lowest, highest = zip(*over_rows(ends, len(self.rewards)), strict=True)
        spread = max(highest) - min(lowest)
        return spread if spread > 0 else 1.0

    @cached_property
    def from_corner(self) -> tuple[Game, float]:
        """Measure outcomes from the lower corner of the space and utilities from their mean there; and that mean.

        In twice the working precision, so that a corner far from zero costs no digits.
        """
        low = self.space.bounds[0]
        common = float((self.offsets + self.rewards @ low).mean())
        if not low.any():
            return replace(self, offsets=self.offsets - common), common
        space = Box([0.0] * low.size, self.space.widths.tolist())
        terms = np.concatenate([self.rewards, self.offsets[:, :, None], np.ones((*self.offsets.shape, 1))], axis=2)
        corner, _ = accurate_combination(terms.reshape(-1, self.dimension + 2), np.array([*low, 1.0, -common]))
        return replace(self, offsets=corner.reshape(self.offsets.shape), space=space), common

    @cached_property
    def largest_utility(self) -> float:
        """Largest absolute utility that can occur, from the mean at the corner: the unit of rounding errors.

        The largest numbers of all actions and rows count together, which is quick and never too little.
        """
        return float(np.abs(self.from_corner[0].offsets).max() + self.largest_rewards @ self.space.widths)

    @cached_property
    def largest_rewards(self) -> FloatArray:
        """Largest absolute reward of every coordinate, over actions and rows, ``(d,)``."""
        flat = self.rewards.reshape(len(self.rewards) * self.n_actions, -1)
        return np.maximum(largest_in_columns(flat), -smallest_in_columns(flat))

    def take(self, index: IntArray | slice) -> Game:
        """Keep the given rows (all, if the problem is shared)."""
        return self if self.shared else replace(self, rewards=self.rewards[index], offsets=self.offsets[index])

    def utilities(self, beliefs: FloatArray) -> FloatArray:
        """Compute ``u_i(a, p_i)``, shape ``(n, m)``."""
        if self.shared:
            return beliefs @ self.rewards[0].T + self.offsets
        return np.einsum("nmd,nd->nm", self.rewards, beliefs) + self.offsets

    def best_utilities(self, points: FloatArray) -> FloatArray:
        """Compute ``val`` at each point; action by action where there is one coordinate, without a table of all."""
        if self.dimension > 1 or not self.shared:
            return largest_in_rows(self.utilities(points))
        lines = zip(self.rewards[0, :, 0], self.offsets[0], strict=True)
        return reduce(np.maximum, (points[:, 0] * slope + offset for slope, offset in lines))

    def mixed(self, mixtures: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the mean rewards ``R_i^T pi_i (n, d)`` and offsets ``(n,)`` of mixtures."""
        if self.shared:
            return mixtures @ self.rewards[0], mixtures @ self.offsets[0]
        return np.einsum("nm,nmd->nd", mixtures, self.rewards), sums_of_rows(mixtures * self.offsets)


def normalize_game(game: Game) -> Game:
    """Shift and scale outcomes and utilities; mixtures stay what they are."""
    low, width, scale = game.space.bounds[0], game.space.widths, game.scale
    rewards = game.rewards * (width / scale)
    offsets = (game.offsets + game.rewards @ low) / scale
    space = game.space if game.space.is_simplex else Box().with_dimension(game.dimension)
    return Game(rewards, offsets - offsets.mean(), space, game.shared)


def normalize(game: Game, ambiguity: Ambiguity) -> tuple[Game, Ambiguity, FloatArray]:
    """Put a game and its ambiguity set into natural units; and what multiplies normalised multipliers, ``(K,)``."""
    low, width = ambiguity.space.bounds[0], ambiguity.space.widths
    tests, slack = ambiguity.tests, ambiguity.slack
    if tests.scalar and slack.radius.size == slack.center.size:
        per_moment = np.tile(width, tests.n_tests)
    else:  # the moments of a ball keep one unit, so tests take up what widths differ by
        per_moment = np.full(tests.n_moments, width.max())
        if (width != width[0]).any():
            tests = tests.as_vector()
            tests = tests.with_rows(tests.table * np.tile(width / width.max(), tests.n_moments))
    per_ball = np.ones_like(slack.radius)
    per_ball[slack.groups] = per_moment

    def inside(points: FloatArray) -> FloatArray:
        return np.clip((points - low) / width, 0.0, 1.0)

    normal = normalize_game(game)
    moved = replace(
        ambiguity,
        space=normal.space,
        forecasts=inside(ambiguity.forecasts),
        tests=tests,
        slack=SlackSet(slack.center / per_moment, slack.radius / per_ball, slack.groups),
        plug_in_multipliers=None,
        member=None if ambiguity.member is None else inside(ambiguity.member),
    )
    return normal, moved, game.scale / per_moment


@frozen
class Envelope:
    """Upper envelope of lines on an interval.

    Attributes
    ----------
    slopes : array of shape (M,)
        Increasing.
    points : array of shape (M + 1,)
        Where the best action changes, from ``lo`` to ``hi``.
    actions : array of shape (M,)
        The action of each segment; of equal lines the one declared first.
    n_actions : int
    """

    slopes: FloatArray
    points: FloatArray
    actions: IntArray
    n_actions: int

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        """Return the maximin mixture for each tilt ``(n, 1)``, shape ``(n, m)``; action by action, in long columns."""
        target = np.clip(-tilts[:, 0], self.slopes[0], self.slopes[-1])
        columns = np.zeros((self.n_actions, target.size))
        columns[self.actions[0]] = 1.0
        for lower, upper, start, end in zip(
            self.actions[:-1], self.actions[1:], self.slopes[:-1], self.slopes[1:], strict=True
        ):
            share = target - start
            share /= end - start
            np.clip(share, 0.0, 1.0, out=share)
            columns[lower] -= share  # exact: where this share is not zero, that of the lower action was one
            columns[upper] = share
        return columns.T

    def settled(self, tilts: FloatArray) -> bool:  # mixtures depend on tilts alone
        """True: no mixture depends on the forecast."""
        return True

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        """Return a minimiser of ``val(p) + s p`` for each tilt, shape ``(n, 1)``.

        Where a whole segment minimises (``-s`` equals a slope), its middle.
        """
        target = -tilts[:, 0]
        left = self.points[np.searchsorted(self.slopes, target, side="left")]
        right = self.points[np.searchsorted(self.slopes, target, side="right")]
        middle: FloatArray = ((left + right) / 2)[:, None]
        return middle


def upper_envelope(game: Game) -> Envelope:
    """Find the envelope of a shared game with one coordinate."""
    slopes, offsets = game.rewards[0, :, 0], game.offsets[0]
    low, high = game.space.interval
    # Heights at the lower end describe each line without reference to a far-away origin.
    at_low = offsets + slopes * low
    order = np.lexsort((np.arange(slopes.size), -at_low, slopes))
    negligible = 1e-12 * (high - low)
    kept: list[int] = []
    starts: list[float] = []
    for action in order.tolist():
        start = low
        while kept:
            last = kept[-1]
            rise = slopes[action] - slopes[last]
            lead = at_low[last] - at_low[action]
            if rise <= 0 or lead >= rise * (high - low) - rise * negligible:
                start = high  # never strictly better than the line before it
                break
            start = low + max(lead / rise, 0.0)
            if start - starts[-1] > negligible:
                break
            kept.pop()
            starts.pop()
            start = low
        if not kept or start < high:
            kept.append(action)
            starts.append(start)
    actions = np.array(kept, dtype=np.int64)
    return Envelope(slopes[actions], np.array([*starts, high]), actions, slopes.size)


#: Past this many vertices the local game is solved by interior point instead of by table.
VERTEX_LIMIT = 20_000
_CHUNK_ROWS = 20_000


#: ``phi(s) = min_p { val(p) + s.p }`` and its optimal mixture, row by row: ``mixtures`` ``(n, m)`` of tilts, ties by
#: nominal utility at forecasts, where these are given; ``beliefs`` ``(n, d)`` that minimise ``val(p) + s.p``; and
#: ``settled``, true where mixtures are the same whatever the forecast, because no tie is left to it.
LocalGame: TypeAlias = "Envelope | VertexGame | SingleAction | InteriorGame"


def local_game(game: Game) -> LocalGame:
    """Choose the closed form, the vertex table, or interior point for a game."""
    if game.n_actions == 1:
        return SingleAction(game)
    if game.shared and game.dimension == 1:
        return upper_envelope(game)
    if game.shared:
        table = _tabulated(game.space, game.n_actions, game.rewards.tobytes(), game.offsets.tobytes())
        if table is not None:
            return table
    return InteriorGame(game)


@lru_cache(maxsize=4)
def _tabulated(space: Space, m: int, rewards: bytes, offsets: bytes) -> VertexGame | None:
    """Tabulate a shared game, by value: every rung of a ladder asks about the same decision."""
    from prudent.solvers.vertex_enumeration import enumerate_vertices  # late: keeps `import prudent` fast

    table = np.frombuffer(rewards).reshape(1, m, space.dimension)
    return enumerate_vertices(Game(table, np.frombuffer(offsets).reshape(1, m), space, shared=True), VERTEX_LIMIT)


@frozen
class SingleAction:
    """Nothing to choose; the adversary takes the least point."""

    game: Game

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        return np.ones((tilts.shape[0], 1))

    def settled(self, tilts: FloatArray) -> bool:
        return True

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        return self.game.space.support_minimizer(self.game.rewards[:, 0] + tilts)


@frozen
class InteriorGame:
    """Rows with rewards of their own, or too many vertices to tabulate."""

    game: Game

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        mixtures = self._solve(tilts)[0]
        mixtures[mixtures < 1e-9] = 0.0
        mixtures /= mixtures.sum(axis=1, keepdims=True)
        return mixtures

    def settled(self, tilts: FloatArray) -> bool:  # rows are solved together, and agree to the last digits only so
        return False

    def beliefs(self, tilts: FloatArray) -> FloatArray:
        return self._solve(tilts)[1]

    def _solve(self, tilts: FloatArray) -> tuple[FloatArray, FloatArray]:
        from prudent.solvers.game import normalize_game
        from prudent.solvers.interior_point import interior_point  # late: keeps `import prudent` fast
        from prudent.solvers.moment_system import no_moments

        n, d = tilts.shape
        mixtures, beliefs = np.empty((n, self.game.n_actions)), np.empty((n, d))
        low, widths = self.game.space.bounds[0], self.game.space.widths
        center = 1.0 / d if self.game.space.is_simplex else 0.5
        for first in range(0, n, _CHUNK_ROWS):
            rows = np.arange(first, min(first + _CHUNK_ROWS, n))
            part = self.game.take(rows)
            offsets = np.broadcast_to(part.offsets, (rows.size, part.n_actions))
            tilted = Game(part.rewards + tilts[rows, None, :], offsets, part.space, shared=False)
            start = np.full((rows.size, d), center)
            proposal = interior_point(normalize_game(tilted), no_moments(rows.size, d), start)
            mixtures[rows], beliefs[rows] = proposal.mixtures, low + widths * proposal.beliefs
        return mixtures, beliefs
