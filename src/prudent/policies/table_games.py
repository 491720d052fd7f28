"""Games that the rows of a table play: against the best policy, or against one that is given.

For every row the dual has the concave part ``phi(s)``, a least value over
finitely many points: the vertices of ``epi(val)``, or those of the space where
a policy is given. On cells it is computed from means, on rows by the engine.
Outcomes are measured from the lower corner of the space and utilities from
their mean there, so that a far-away origin costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Protocol

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies.table_cells import TableCells
from prudent.problem import DecisionProblem
from prudent.solvers import Game, LocalGame, local_game
from prudent.solvers.envelope import Envelope
from prudent.solvers.vertices import VertexGame
from prudent.spaces import Simplex
from prudent.tables.dual import corner_tests, least_point, least_score, point_label, vertex_label

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["BestPolicy", "FromCorner", "GivenPolicy", "RowGame", "TableGame"]

_MOST_SIGNS = 8


class RowGame(Protocol):
    """What certifying on a table asks of a game."""

    @property
    def problem(self) -> DecisionProblem:
        """The decision."""
        ...

    @property
    def common(self) -> float:
        """What utilities are measured from."""
        ...

    @property
    def size(self) -> float:
        """Largest size of what is added up: the unit of rounding errors."""
        ...

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        """``phi`` at the means of cells, ``(cells,)``."""
        ...

    def of_rows(self, tilts: list[nw.Expr]) -> nw.Expr:
        """Write ``phi`` of a row."""
        ...

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        """The most by which a row can lie below its cell's linear piece, ``(cells,)``; infinite where unknown."""
        ...

    def label(self, tilts: list[nw.Expr]) -> tuple[nw.Expr, int]:
        """Write at which point a row is least, and say how many there are."""
        ...

    def shortfall(self, tilts: FloatArray, values: FloatArray) -> float:
        """The most by which mixtures, as they are played in floats, miss the value of their local game."""
        ...


class TableGame(RowGame, Protocol):
    """What solving on a table asks of a game."""

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        """The game between mean utilities of cells."""
        ...


@dataclass(frozen=True, eq=False)
class BestPolicy:
    """The problem itself: the adversary meets the best mixture at every row."""

    problem: DecisionProblem

    @cached_property
    def game(self) -> Game:
        """The problem, shared by all cells."""
        return Game.of_problem(self.problem)

    @cached_property
    def local(self) -> LocalGame:
        """The tilted game that a policy plays."""
        return local_game(self.game)

    @cached_property
    def _vertices(self) -> tuple[FloatArray, FloatArray]:
        """Vertices ``(N, d)`` of ``epi(val)`` in the user's units, and ``val`` there."""
        game, local = self.game, self.local
        if isinstance(local, Envelope):
            points = local.points[:, None]
        elif isinstance(local, VertexGame):
            points = np.unique(local.points, axis=0)
        elif game.n_actions == 1 and (isinstance(game.space, Simplex) or game.dimension <= 10):
            points = _points(self.problem)
        else:
            raise InputError(
                f"this decision has too many vertices to be certified inside an engine ({game.n_actions} actions in "
                f"{game.dimension} coordinates). Fit on a sample in memory."
            )
        return points, game.utilities(points).max(axis=1)

    @property
    def common(self) -> float:
        return float(self._vertices[1].mean())

    @property
    def _measured(self) -> tuple[FloatArray, FloatArray]:
        points, values = self._vertices
        return points - self.problem.space.bounds[0], values - self.common

    @property
    def size(self) -> float:
        low, high = self.problem.space.bounds
        return float(np.abs(self._measured[1]).max() + np.abs(self.problem.rewards).max(axis=0) @ (high - low))

    def on_cells(self, cells: TableCells) -> tuple[Game, LocalGame]:
        return self.game, self.local

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        points, heights = self._measured
        least: FloatArray = (tilts @ points.T + heights).min(axis=1)
        return least

    def of_rows(self, tilts: list[nw.Expr]) -> nw.Expr:
        return least_score(tilts, *self._measured)

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        points, heights = self._measured
        return _hidden(cells, multipliers, points, heights[None])

    def label(self, tilts: list[nw.Expr]) -> tuple[nw.Expr, int]:
        return vertex_label(tilts, *self._measured), len(self._vertices[1])

    def shortfall(self, tilts: FloatArray, values: FloatArray) -> float:
        game = self.game
        low, high = game.space.bounds
        mixtures = self.local.mixtures(tilts)
        direction = game.mixed_rewards(mixtures) + tilts
        simplex = isinstance(game.space, Simplex)
        least = direction.min(axis=1) if simplex else np.minimum(direction, 0.0) @ (high - low)
        played = mixtures @ (game.offsets + game.rewards_at(low))[0] + least
        return max(0.0, float((values + self.common - played).max()))


@dataclass(frozen=True, eq=False)
class FromCorner:
    """Utilities of actions, measured from their mean at the lower corner of the space."""

    problem: DecisionProblem

    @cached_property
    def _heights(self) -> FloatArray:
        heights: FloatArray = self.problem.rewards @ self.problem.space.bounds[0] - self.problem.costs
        return heights

    @property
    def _width(self) -> FloatArray | None:
        low, high = self.problem.space.bounds
        return None if isinstance(self.problem.space, Simplex) else high - low

    @property
    def common(self) -> float:
        """What utilities are measured from."""
        return float(self._heights.mean())

    @property
    def size(self) -> float:
        """Largest size of what is added up: the unit of rounding errors."""
        low, high = self.problem.space.bounds
        reach = np.abs(self.problem.rewards) @ (high - low)
        return float((np.abs(self._heights - self.common) + reach).max())


@dataclass(frozen=True, eq=False)
class GivenPolicy(FromCorner):
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
        direction = mixtures @ self.problem.rewards + tilts
        least = direction.min(axis=1) if self._width is None else np.minimum(direction, 0.0) @ self._width
        value: FloatArray = mixtures @ (self._heights - self.common) + least
        return value

    def of_rows(self, tilts: list[nw.Expr]) -> nw.Expr:
        heights = (self._heights - self.common).tolist()
        base = self._mixed(heights)
        return base + least_point(self._directions(tilts), self._width)

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        if not self.constant or cells.rows.space.dimension > 3:
            return np.full(len(cells.sums.keys), np.inf)
        points = _points(self.problem) - self.problem.space.bounds[0]
        return _hidden(cells, multipliers, points, self._mixtures(cells) @ self.problem.rewards @ points.T)

    def label(self, tilts: list[nw.Expr]) -> tuple[nw.Expr, int]:
        return point_label(self._directions(tilts), self._width, _MOST_SIGNS)

    def shortfall(self, tilts: FloatArray, values: FloatArray) -> float:
        return 0.0

    def _mixtures(self, cells: TableCells) -> FloatArray:
        return cells.mixtures(self.columns)

    def _directions(self, tilts: list[nw.Expr]) -> list[nw.Expr]:
        return [tilt + self._mixed(self.problem.rewards[:, j].tolist()) for j, tilt in enumerate(tilts)]

    def _mixed(self, numbers: list[float]) -> nw.Expr:
        """Write the mean of a number per action under what is played."""
        import narwhals.stable.v2 as nw

        total = nw.col(self.columns[0]) * numbers[0]
        for name, number in zip(self.columns[1:], numbers[1:], strict=True):
            total = total + nw.col(name) * number
        return total


def _points(problem: DecisionProblem) -> FloatArray:
    """Vertices of the space."""
    if isinstance(problem.space, Simplex):
        return np.eye(problem.dimension)
    low, high = problem.space.bounds
    return np.array(list(product(*zip(low.tolist(), high.tolist(), strict=True))))


def _hidden(cells: TableCells, multipliers: FloatArray, points: FloatArray, heights: FloatArray) -> FloatArray:
    """The most by which any row of a cell can lie below its cell's linear piece; infinite where unknown.

    Where one point is least at all corners of a cell, it is least for all its rows: each score minus ``phi`` is convex
    in the tilt, and the tilt affine in the forecast.
    """
    labels, lower, upper = cells.partition.decode(cells.sums.keys)
    d = cells.rows.space.dimension
    coordinates = {f"v{j}" for j in range(d)}
    if not set(cells.tests.numbers) <= coordinates or d > 3:
        return np.full(len(labels), np.inf)
    worst = np.zeros((len(labels), len(points)))
    for choice in product((False, True), repeat=d):
        corner = np.where(np.array(choice), upper, lower)
        scores = corner_tests(cells.tests, labels, corner).tilts(multipliers) @ points.T + heights
        np.maximum(worst, scores - scores.min(axis=1, keepdims=True), out=worst)
    hidden: FloatArray = worst.min(axis=1)
    return hidden
