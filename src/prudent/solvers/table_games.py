"""Games that the rows of a table play: against the best policy, or against one that is given.

For every row the dual has the concave part ``phi(s)``, a least value over
finitely many points: the vertices of ``epi(val)``, or those of the space where
a policy is given. On cells it is computed from means, on rows by the engine.
Outcomes are measured from the lower corner of the space and utilities from
their mean there, so that a far-away origin costs no digits.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.arrays.lazy_narwhals import Expr, Exprs, nw
from prudent.cases.table_cells import TableCells
from prudent.errors import InputError
from prudent.guarantees.engine_tests import linear
from prudent.problem import DecisionProblem
from prudent.solvers.game import Game
from prudent.solvers.local_games import Envelope, LocalGame, local_game
from prudent.solvers.vertices import VertexGame, space_corners
from prudent.spaces import Space


@frozen
class _Measured:
    """A problem with utilities measured from their mean at the lower corner of the space."""

    problem: DecisionProblem

    @cached_property
    def game(self) -> Game:
        """The problem in the user's units."""
        return Game.of_problem(self.problem)

    @property
    def _heights(self) -> FloatArray:
        return self.game.from_corner[0].offsets[0]

    @property
    def common(self) -> float:
        """What utilities are measured from."""
        return self.game.from_corner[1]

    @property
    def size(self) -> float:
        """Largest size of what is added up: the unit of rounding errors."""
        reach = np.abs(self.problem.rewards) @ self.problem.space.widths
        return float((np.abs(self._heights) + reach).max())

    def _least(self, directions: FloatArray) -> FloatArray:
        """``min_p p . x`` over the space, from its lower corner, for directions ``(..., d)``."""
        return self.game.from_corner[0].space.support_minimum(directions)

    def shortfall(self, cells: TableCells, tilts: FloatArray, values: FloatArray) -> float:
        """The most by which mixtures, as they are played in floats, miss the value of their local game."""
        return 0.0


@frozen
class BestPolicy(_Measured):
    """The problem itself: the adversary meets the best mixture at every row."""

    @cached_property
    def _local(self) -> LocalGame:
        """The tilted game that a policy plays."""
        return local_game(self.game)

    @cached_property
    def _vertices(self) -> tuple[FloatArray, FloatArray]:
        """Vertices ``(N, d)`` of ``epi(val)`` in the user's units, and ``val`` there."""
        game, local, corners = self.game, self._local, space_corners(self.problem.space)
        if isinstance(local, Envelope):
            points = local.points[:, None]
        elif isinstance(local, VertexGame):
            points = np.unique(local.points, axis=0)
        elif game.n_actions == 1 and corners is not None:
            points = game.space.bounds[0] + game.space.widths * corners
        else:
            raise InputError(
                f"this decision has too many vertices to be certified inside an engine ({game.n_actions} actions in "
                f"{game.dimension} coordinates). Fit on a sample in memory."
            )
        return points, game.utilities(points).max(axis=1)

    @property
    def _measured(self) -> tuple[FloatArray, FloatArray]:
        points, values = self._vertices
        return points - self.problem.space.bounds[0], values - self.common

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        """The game between mean utilities of cells."""
        return self.game, self._local

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        """``phi`` at the means of cells, ``(cells,)``."""
        points, heights = self._measured
        least: FloatArray = (tilts @ points.T + heights).min(axis=1)
        return least

    def of_rows(self, tilts: Exprs) -> Expr:
        """Write ``phi`` of a row."""
        scores = _scores(tilts, *self._measured)
        return nw.min_horizontal(*scores) if len(scores) > 1 else scores[0]  # Spark takes the least of several only

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        """The most by which a row can lie below its cell's linear piece, ``(cells,)``; infinite where unknown."""
        return _hidden(cells, multipliers, *self._measured)

    def shortfall(self, cells: TableCells, tilts: FloatArray, values: FloatArray) -> float:
        mixtures = self._local.mixtures(tilts)
        played = mixtures @ self._heights + self._least(mixtures @ self.problem.rewards + tilts)
        return max(0.0, float((values - played).max()))


@frozen
class GivenPolicy(_Measured):
    """One policy, whose probabilities are columns of the rows: the adversary meets what it plays.

    ``constant`` says that it plays the same at all rows of a cell.
    """

    columns: list[str]
    constant: bool

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        game = self.game.against(cells.mixtures(self.columns))
        return game, local_game(game)

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        mixtures = cells.mixtures(self.columns)
        least = self._least(mixtures @ self.problem.rewards + tilts)
        return mixtures @ self._heights + least

    def of_rows(self, tilts: Exprs) -> Expr:
        moved = [tilt + _mixed(self.columns, self.problem.rewards[:, j]) for j, tilt in enumerate(tilts)]
        return _mixed(self.columns, self._heights) + _least_point(moved, self.problem.space)

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        corners = space_corners(self.problem.space)
        if corners is None or not self.constant or self.problem.dimension > 3:
            return np.full(len(cells.keys), np.inf)
        points = self.problem.space.widths * corners
        return _hidden(cells, multipliers, points, cells.mixtures(self.columns) @ self.problem.rewards @ points.T)


#: What solving and certifying on a table ask of a game.
TableGame = BestPolicy | GivenPolicy


def _hidden(cells: TableCells, multipliers: FloatArray, points: FloatArray, heights: FloatArray) -> FloatArray:
    """The most by which any row of a cell can lie below its cell's linear piece.

    Infinite where unknown: with many coordinates, and where tests are not affine in the forecast.
    Where one point is least at all corners of a cell, it is least for all its rows: each score minus ``phi`` is convex
    in the tilt, and the tilt affine in the forecast.
    """
    names, d, worst = cells.rows.coordinates, cells.rows.space.dimension, np.zeros((len(cells.keys), len(points)))
    if not set(cells.tests.numbers) <= set(names) or d > 3:
        return np.full(len(worst), np.inf)
    labels, lower, upper = cells.partition.decode(cells.keys)
    for choice in product((False, True), repeat=d):
        corner = dict(zip(names, np.where(choice, upper, lower).T, strict=True))
        tests = cells.tests.assemble(labels, corner)
        scores = tests.tilts(multipliers) @ points.T + heights
        np.maximum(worst, scores - scores.min(axis=1, keepdims=True), out=worst)
    return worst.min(axis=1)


def _mixed(columns: list[str], numbers: FloatArray) -> Expr:
    """Write the mean of a number per action under what is played."""
    return linear([nw.col(name) for name in columns], numbers.tolist())


def _least_point(directions: Exprs, space: Space) -> Expr:
    """Write ``min_p p . x`` over a space, from its lower corner."""
    if space.is_simplex:
        return nw.min_horizontal(*directions)
    return linear([nw.min_horizontal(direction, nw.lit(0.0)) for direction in directions], space.widths.tolist())


def _scores(tilts: Exprs, points: FloatArray, heights: FloatArray) -> Exprs:
    """Write ``heights_j + s . points_j`` for every point."""
    return [linear(tilts, point, height) for point, height in zip(points.tolist(), heights.tolist(), strict=True)]
