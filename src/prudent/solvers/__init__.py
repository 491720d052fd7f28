"""Problem and ambiguity in, solution with certificate out; one algorithm per file."""

from prudent.solvers.game import Game, LocalGame, local_game
from prudent.solvers.pure import pure_actions, solve_pure
from prudent.solvers.solution import Certificate, Solution, SolverOptions, Status
from prudent.solvers.solve import METHODS, TOLERANCE, solve

__all__ = [
    "METHODS",
    "TOLERANCE",
    "Certificate",
    "Game",
    "LocalGame",
    "Solution",
    "SolverOptions",
    "Status",
    "local_game",
    "pure_actions",
    "solve",
    "solve_pure",
]
