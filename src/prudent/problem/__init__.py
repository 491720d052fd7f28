"""The decision problem: actions, utilities, outcome space, and the one tie-break."""

from prudent.problem.decision_problem import DecisionProblem
from prudent.problem.discretization import Discretization

__all__ = ["DecisionProblem", "Discretization"]
