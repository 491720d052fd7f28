from prudent.problem.decision_problem import DecisionProblem
from prudent.problem.discretization import Discretization, forecasts_from
from prudent.problem.problem_file import EXAMPLE_PROBLEM, problem_from_table, read_problem

__all__ = [
    "EXAMPLE_PROBLEM",
    "DecisionProblem",
    "Discretization",
    "forecasts_from",
    "problem_from_table",
    "read_problem",
]
