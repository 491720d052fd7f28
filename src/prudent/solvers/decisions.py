"""Solve a decision on rows in memory or in an engine: for the best policy, or for the worst world of a given one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prudent.arrays import FloatArray
from prudent.cases.ambiguity import Ambiguity
from prudent.problem import DecisionProblem
from prudent.solvers.game import Game
from prudent.solvers.pure import solve_pure
from prudent.solvers.solution import Solution
from prudent.solvers.solve import shared_saddle, solve

if TYPE_CHECKING:
    from prudent.cases.table_rows import TableAmbiguity


def best_policy(problem: DecisionProblem, worlds: Ambiguity | TableAmbiguity, *, randomize: bool = True) -> Solution:
    """Find multipliers of the best policy, or of the best deterministic rule; solutions are cached with the rows."""
    if not isinstance(worlds, Ambiguity):
        from prudent.solvers.table_solver import best_policy_on_table  # late: keeps the first fit in memory fast

        return best_policy_on_table(problem, worlds, randomize=randomize).solution
    game = Game.of_problem(problem)

    def optimum() -> Solution:
        return solve(game, worlds)

    if worlds.cache is None or worlds.key is None:
        mixed = optimum()
    else:
        mixed = worlds.cache.get(("optimum", worlds.key), optimum)
    return mixed if randomize else solve_pure(game, worlds, mixed)


def worst_world(problem: DecisionProblem, worlds: Ambiguity, mixtures: FloatArray) -> Solution:
    """Find the worst world for mixtures ``(n, m)``; an optimal policy has that of the best one, if that is known."""
    game, found = Game.of_mixtures(problem, mixtures), None
    if worlds.cache is not None and ("optimum", worlds.key) in worlds.cache:
        found = shared_saddle(game, worlds, best_policy(problem, worlds))
    return found or solve(game, worlds)
