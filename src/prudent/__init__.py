from prudent import guarantees
from prudent.problem import DecisionProblem, Discretization
from prudent.spaces import Box, Simplex
