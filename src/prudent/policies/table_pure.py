"""The best deterministic rule on a lazy table: cells propose it, all rows certify it (docs/theory.md, section 3.2).

At multipliers the rule plays ``argmax_a { c_a + min_p p.(r_a + s) }``, and the pure
dual there is what it guarantees, by weak duality. That is summed up over all rows.
It is not concave, so cells bound it from neither side: those with a kink of a row's
value inside are divided until they say what the rows say. With one coordinate and
one test, a bound over all multipliers shows whether another rule could be better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.policies.table_cells import TableCells
from prudent.policies.table_games import FromCorner
from prudent.policies.table_solver import MOST_ROUNDS, TableSolution, Worlds, certify, divided_cells, losing_cells
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, Status, explain_pure, local_game, solve, solve_pure
from prudent.solvers.dispatch import TOLERANCE
from prudent.solvers.pure_scalar import pure_ceiling, staircase
from prudent.tables.dual import corner_tests, first_least, least_point

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["BestAction", "solve_pure_table"]


@dataclass(frozen=True, eq=False)
class BestAction(FromCorner):
    """The game in which every row plays the one action that is best at its tilt."""

    def of_means(self, cells: TableCells, tilts: FloatArray) -> FloatArray:
        """Value of the best action at the means of cells, ``(cells,)``."""
        directions = tilts[:, None, :] + self.problem.rewards
        least = directions.min(axis=2) if self._width is None else np.minimum(directions, 0.0) @ self._width
        best: FloatArray = (least + self._heights - self.common).max(axis=1)
        return best

    def of_rows(self, tilts: list[nw.Expr]) -> nw.Expr:
        """Write the value of the best action of a row."""
        import narwhals.stable.v2 as nw

        values = self._values(tilts)
        return nw.max_horizontal(*values) if len(values) > 1 else values[0]

    def hidden(self, cells: TableCells, multipliers: FloatArray) -> FloatArray:
        """Zero for cells in which the value is linear, so that means say all; infinite for the others, ``(cells,)``."""
        ends = _tests_at_ends(cells)
        if ends is None:
            return np.full(len(cells.sums.keys), np.inf)
        stairs = staircase(Game.of_problem(self.problem))
        tilts = [tests.tilts(multipliers)[:, 0] for tests in ends]
        lowest, highest = np.minimum(*tilts), np.maximum(*tilts)
        kinks = np.sort(np.concatenate([stairs.ends, stairs.begins]))
        inside = np.searchsorted(kinks, highest, side="right") > np.searchsorted(kinks, lowest, side="left")
        return np.where(inside, np.inf, 0.0)

    def label(self, tilts: list[nw.Expr]) -> tuple[nw.Expr, int]:
        """Write which action a row plays, and say how many there are."""
        return first_least([-value for value in self._values(tilts)]), self.problem.n_actions

    def shortfall(self, tilts: FloatArray, values: FloatArray) -> float:
        """Nothing: what is played is the action whose value is taken, up to the rounding of both."""
        return 0.0

    def _values(self, tilts: list[nw.Expr]) -> list[nw.Expr]:
        heights = (self._heights - self.common).tolist()
        values = []
        for reward, height in zip(self.problem.rewards.tolist(), heights, strict=True):
            directions = [tilt + part for tilt, part in zip(tilts, reward, strict=True)]
            values.append(least_point(directions, self._width) + height)
        return values


def solve_pure_table(problem: DecisionProblem, mixed: TableSolution, worlds: Worlds) -> TableSolution:
    """Find the best deterministic rule, given the mixed optimum on the same table."""
    rule, game = BestAction(problem), Game.of_problem(problem)
    local, scale = local_game(game), problem.utility_range or 1.0
    upper, cells, best = mixed.solution.certificate.upper, mixed.finest, None
    tolerance, rounds, passes = TOLERANCE * scale, 0, 0
    while True:
        rounds += 1
        ambiguity = cells.ambiguity(worlds.slack, worlds.allowance, worlds.plug_in)
        proposed = solve_pure(game, ambiguity, solve(game, ambiguity, local))
        multipliers = np.zeros(0) if proposed.multipliers is None else proposed.multipliers
        proof = certify(rule, cells, ambiguity, worlds.slack, multipliers, scale)
        passes += proof.queries
        if best is None or proof.lower > best.solution.certificate.lower:
            certificate = Certificate(min(proof.lower, upper), upper, Status.NOT_PROVEN, "")
            best = TableSolution(replace(proposed, certificate=certificate), ambiguity, cells, cells)
        lower = best.solution.certificate.lower
        ceiling = _ceiling(game, cells, ambiguity, upper)
        close = ceiling - lower <= tolerance or (ceiling == upper and proof.loss.sum() <= tolerance / 2)
        if close or rounds == MOST_ROUNDS:
            break
        losing = losing_cells(proof.loss, tolerance)
        divided = divided_cells(rule, cells, cells.sums.keys[losing], multipliers) if losing.size else None
        if divided is None:
            break
        cells = divided
        passes += 1
    exact, reached = ceiling - lower <= tolerance, upper - lower <= tolerance
    found = explain_pure(exact, reached)
    if not (exact or reached) and ambiguity.tests.n_moments == 1:
        found = (
            "Best deterministic rule on the cells of a table; what it guarantees is certified, that no other "
            "deterministic rule guarantees more on its rows is not."
        )
    more = f"{passes} {'pass' if passes == 1 else 'passes'} more"
    message = f"{found} {len(cells.sums.keys):,} cells of a table, {more}; all rows certify."
    certificate = Certificate(lower, upper, Status.OPTIMAL if exact or reached else Status.NOT_PROVEN, message)
    return replace(best, solution=replace(best.solution, certificate=certificate), finest=cells)


def _ceiling(game: Game, cells: TableCells, ambiguity: Ambiguity, upper: float) -> float:
    """What no deterministic rule on the rows can exceed; without tests or with one in one coordinate it is sharp."""
    if ambiguity.tests.n_moments == 0:
        return float((game.offsets[0] + game.space.support_minimum(game.rewards[0])).max())
    ends = _tests_at_ends(cells) if ambiguity.tests.n_moments == 1 and game.dimension == 1 else None
    if ends is None:
        return upper
    values = [tests.values.reshape(-1) for tests in (*ends, ambiguity.tests)]
    return min(upper, pure_ceiling(game, ambiguity, np.minimum.reduce(values), np.maximum.reduce(values)))


def _tests_at_ends(cells: TableCells) -> tuple[EvaluatedTests, EvaluatedTests] | None:
    """Tests at both ends of every cell, where there is one coordinate and they are affine in it; else None."""
    if cells.rows.space.dimension != 1 or not set(cells.tests.numbers) <= set(cells.rows.coordinates):
        return None
    labels, lower, upper = cells.partition.decode(cells.sums.keys)
    return corner_tests(cells.tests, labels, lower), corner_tests(cells.tests, labels, upper)
