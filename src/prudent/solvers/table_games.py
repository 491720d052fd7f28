"""Games that the rows of a table play: against the best policy, or against one that is given.

For every row the dual has the concave part ``phi(s)``, a least value over
finitely many points: the vertices of ``epi(val)``, or those of the space where
a policy is given. On cells it is computed from means, on rows by the engine.
Outcomes are measured from the lower corner of the space and utilities from
their mean there, so that a far-away origin costs no digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from itertools import product

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.arrays.lazy_narwhals import Expr, Exprs, nw
from prudent.cases.table_cells import TableCells
from prudent.errors import InputError
from prudent.guarantees.engine_tests import linear
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.solvers.game import Game
from prudent.solvers.local_games import Envelope, LocalGame, local_game
from prudent.solvers.pure import pure_envelope
from prudent.solvers.vertices import VertexGame, space_corners


@frozen
class RowGame(ABC):
    """What certifying on a table asks of a game; utilities are measured from their mean at the lower corner."""

    problem: DecisionProblem

    @cached_property
    def _heights(self) -> FloatArray:
        return self.problem.rewards @ self.problem.space.bounds[0] - self.problem.costs

    @property
    def _width(self) -> FloatArray | None:
        return None if self.problem.space.is_simplex else self.problem.space.widths

    @property
    def common(self) -> float:
        """What utilities are measured from."""
        return float(self._heights.mean())

    @property
    def size(self) -> float:
        """Largest size of what is added up: the unit of rounding errors."""
        reach = np.abs(self.problem.rewards) @ self.problem.space.widths
        return float((np.abs(self._heights - self.common) + reach).max())

    def _least(self, directions: FloatArray) -> FloatArray:
        """``min_p p . x`` over the space, from its lower corner, for directions ``(..., d)``."""
        width = self._width
        return directions.min(axis=-1) if width is None else np.minimum(directions, 0.0) @ width

    @abstractmethod
    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        """``phi`` at the means of cells, ``(cells,)``."""

    @abstractmethod
    def of_rows(self, tilts: Exprs) -> Expr:
        """Write ``phi`` of a row."""

    @abstractmethod
    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        """The most by which a row can lie below its cell's linear piece, ``(cells,)``; infinite where unknown."""

    def shortfall(self, cells: TableCells, tilts: FloatArray, values: FloatArray) -> float:
        """The most by which mixtures, as they are played in floats, miss the value of their local game."""
        return 0.0


class TableGame(RowGame):
    """What solving on a table asks of a game."""

    @abstractmethod
    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        """The game between mean utilities of cells."""


@frozen
class BestPolicy(TableGame):
    """The problem itself: the adversary meets the best mixture at every row."""

    @cached_property
    def _local(self) -> LocalGame:
        """The tilted game that a policy plays."""
        return local_game(Game.of_problem(self.problem))

    @cached_property
    def _vertices(self) -> tuple[FloatArray, FloatArray]:
        """Vertices ``(N, d)`` of ``epi(val)`` in the user's units, and ``val`` there."""
        game, local, corners = Game.of_problem(self.problem), self._local, space_corners(self.problem.space)
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
        return Game.of_problem(self.problem), self._local

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        points, heights = self._measured
        least: FloatArray = (tilts @ points.T + heights).min(axis=1)
        return least

    def of_rows(self, tilts: Exprs) -> Expr:
        scores = _scores(tilts, *self._measured)
        return nw.min_horizontal(*scores) if len(scores) > 1 else scores[0]  # Spark takes the least of several only

    def hidden(self, cells: TableCells, multipliers: FloatArray, bases: FloatArray | None = None) -> FloatArray:
        """The same where the tilts of cells are lower by ``bases (cells, d)``."""
        points, heights = self._measured
        lower = 0.0 if bases is None else bases @ points.T
        return _hidden(cells, multipliers, points, heights[None] - lower)

    def shortfall(self, cells: TableCells, tilts: FloatArray, values: FloatArray) -> float:
        mixtures = self._local.mixtures(tilts)
        played = mixtures @ self._heights + self._least(mixtures @ self.problem.rewards + tilts)
        return max(0.0, float((values + self.common - played).max()))


@frozen
class GivenPolicy(TableGame):
    """One policy, whose probabilities are columns of the rows: the adversary meets what it plays.

    ``constant`` says that it plays the same at all rows of a cell.
    """

    columns: list[str]
    constant: bool

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        game = Game.of_mixtures(self.problem, self._mixtures(cells))
        return game, local_game(game)

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        mixtures = self._mixtures(cells)
        least = self._least(mixtures @ self.problem.rewards + tilts)
        return mixtures @ (self._heights - self.common) + least

    def of_rows(self, tilts: Exprs) -> Expr:
        return mixed(self.columns, self._heights - self.common) + least_point(self._directions(tilts), self._width)

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        corners = space_corners(self.problem.space)
        if corners is None or not self.constant or self.problem.dimension > 3:
            return np.full(len(cells.keys), np.inf)
        points = self.problem.space.widths * corners
        return _hidden(cells, multipliers, points, self._mixtures(cells) @ self.problem.rewards @ points.T)

    def _mixtures(self, cells: TableCells) -> FloatArray:
        return cells.mixtures(self.columns)

    def _directions(self, tilts: Exprs) -> Exprs:
        return [tilt + mixed(self.columns, self.problem.rewards[:, j]) for j, tilt in enumerate(tilts)]


@frozen
class GainOver(TableGame):
    """What the best mixture, or the best action, gains over a rule in use whose probabilities are columns of the rows.

    ``constant`` says that it plays the same at all rows of a cell.
    """

    columns: list[str]
    constant: bool
    randomize: bool = True

    @cached_property
    def _best(self) -> BestPolicy | BestAction:
        return BestPolicy(self.problem) if self.randomize else BestAction(self.problem)

    @property
    def common(self) -> float:
        """Gains are differences of utilities."""
        return 0.0

    @property
    def size(self) -> float:
        """Largest size of what is added up: the unit of rounding errors."""
        return 2 * self._best.size

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        game = Game.of_problem(self.problem).gains_over(cells.mixtures(self.columns))
        return game, local_game(game)

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        return self._best.of_means(cells, tilts - self._bases(cells)) - self._in_use(cells)

    def of_rows(self, tilts: Exprs) -> Expr:
        moved = [tilt - mixed(self.columns, self.problem.rewards[:, j]) for j, tilt in enumerate(tilts)]
        return self._best.of_rows(moved) - mixed(self.columns, self._heights - self._best.common)

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        if not self.constant or not isinstance(self._best, BestPolicy):
            return np.full(len(cells.keys), np.inf)
        return self._best.hidden(cells, multipliers, self._bases(cells))

    def shortfall(self, cells: TableCells, tilts: FloatArray, values: FloatArray) -> float:
        return self._best.shortfall(cells, tilts - self._bases(cells), values + self._in_use(cells))

    def _bases(self, cells: TableCells) -> FloatArray:
        found: FloatArray = cells.mixtures(self.columns) @ self.problem.rewards
        return found

    def _in_use(self, cells: TableCells) -> FloatArray:
        found: FloatArray = cells.mixtures(self.columns) @ (self._heights - self._best.common)
        return found


@frozen
class BestAction(RowGame):
    """The game in which every row plays the one action that is best at its tilt."""

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        """Value of the best action at the means of cells, ``(cells,)``."""
        least = self._least(tilts[:, None, :] + self.problem.rewards)
        return (least + self._heights - self.common).max(axis=1)

    def of_rows(self, tilts: Exprs) -> Expr:
        """Write the value of the best action of a row."""
        values = self._values(tilts)
        return nw.max_horizontal(*values) if len(values) > 1 else values[0]

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        """Zero for cells in which the value is linear, so that means say all; infinite for the others, ``(cells,)``."""
        ends = tests_at_ends(cells)
        if not ends:
            return np.full(len(cells.keys), np.inf)
        envelope = pure_envelope(Game.of_problem(self.problem))
        tilts = [tests.tilts(multipliers)[:, 0] for tests in ends]
        lowest, highest = np.minimum(*tilts), np.maximum(*tilts)
        kinks = np.sort(np.concatenate([envelope.concave, envelope.convex]))
        inside = np.searchsorted(kinks, highest, side="right") > np.searchsorted(kinks, lowest, side="left")
        return np.where(inside, np.inf, 0.0)

    def _values(self, tilts: Exprs) -> Exprs:
        heights = (self._heights - self.common).tolist()
        values = []
        for reward, height in zip(self.problem.rewards.tolist(), heights, strict=True):
            directions = [tilt + part for tilt, part in zip(tilts, reward, strict=True)]
            values.append(least_point(directions, self._width) + height)
        return values


def tests_at_corners(cells: TableCells) -> list[EvaluatedTests]:
    """Tests at all corners of every cell; none with many coordinates, or where they are not affine in the forecast."""
    labels, lower, upper = cells.partition.decode(cells.keys)
    names, d = cells.rows.coordinates, cells.rows.space.dimension
    if not set(cells.tests.numbers) <= set(names) or d > 3:
        return []
    corners = [np.where(choice, upper, lower) for choice in product((False, True), repeat=d)]
    return [cells.tests.assemble(labels, dict(zip(names, corner.T, strict=True))) for corner in corners]


def tests_at_ends(cells: TableCells) -> list[EvaluatedTests]:
    """Tests at both ends of every cell, where there is one coordinate and they are affine in it; else none."""
    return tests_at_corners(cells) if cells.rows.space.dimension == 1 else []


def _hidden(cells: TableCells, multipliers: FloatArray, points: FloatArray, heights: FloatArray) -> FloatArray:
    """The most by which any row of a cell can lie below its cell's linear piece; infinite where unknown.

    Where one point is least at all corners of a cell, it is least for all its rows: each score minus ``phi`` is convex
    in the tilt, and the tilt affine in the forecast.
    """
    corners = tests_at_corners(cells)
    worst = np.full((len(cells.keys), len(points)), 0.0 if corners else np.inf)
    for tests in corners:
        scores = tests.tilts(multipliers) @ points.T + heights
        np.maximum(worst, scores - scores.min(axis=1, keepdims=True), out=worst)
    return worst.min(axis=1)


def mixed(columns: list[str], numbers: FloatArray) -> Expr:
    """Write the mean of a number per action under what is played."""
    return linear([nw.col(name) for name in columns], numbers.tolist())


def least_point(directions: Exprs, width: FloatArray | None) -> Expr:
    """Write ``min_p p . x`` over a box of some width from the origin, or over the simplex where there is none."""
    if width is None:
        return nw.min_horizontal(*directions)
    return linear([nw.min_horizontal(direction, nw.lit(0.0)) for direction in directions], width.tolist())


def _scores(tilts: Exprs, points: FloatArray, heights: FloatArray) -> Exprs:
    """Write ``heights_j + s . points_j`` for every point."""
    return [linear(tilts, point, height) for point, height in zip(points.tolist(), heights.tolist(), strict=True)]
