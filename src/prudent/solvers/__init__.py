"""Problem and ambiguity in, solution with certificate out; one algorithm per file."""

from prudent.solvers.dispatch import METHODS, TOLERANCE, shared_saddle, solve
from prudent.solvers.game import Game
from prudent.solvers.local import LocalGame, local_game
from prudent.solvers.pure import explain_pure, pure_actions, solve_pure
from prudent.solvers.solution import Certificate, Solution, Status

__all__ = [
    "METHODS",
    "TOLERANCE",
    "Certificate",
    "Game",
    "LocalGame",
    "Solution",
    "Status",
    "explain_pure",
    "local_game",
    "pure_actions",
    "shared_saddle",
    "solve",
    "solve_pure",
]
