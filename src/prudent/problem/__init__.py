"""Decision problems: actions and utilities, in Python or in a file."""

from typing import TYPE_CHECKING

from prudent.late import late_names
from prudent.problem.decision_problem import DecisionProblem
from prudent.problem.discretization import Discretization

if TYPE_CHECKING:
    from prudent.problem.problem_file import EXAMPLE_PROBLEM, problem_from_table, read_problem

__all__ = ["EXAMPLE_PROBLEM", "DecisionProblem", "Discretization", "problem_from_table", "read_problem"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(__name__, {"problem_file": "EXAMPLE_PROBLEM problem_from_table read_problem"})
