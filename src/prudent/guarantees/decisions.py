"""Guarantees made for decision problems: the line at which best responding becomes optimal.

Decision regions are a partition by the library's one tie-break, the same that
the plug-in policy plays; closed overlapping regions, as in the paper, break
its theorems (docs/theory.md, section 3.4).
"""

from collections.abc import Iterable

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, SymbolicTests
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import BestResponse, Indicator, Lookup
from prudent.problem import DecisionProblem
from prudent.spaces import Space


class _OfProblems(Guarantee):
    """A guarantee that is stated for one or several decision problems."""

    problems: tuple[DecisionProblem, ...]

    def __post_init__(self) -> None:
        given = (self.problems,) if isinstance(self.problems, DecisionProblem) else self.problems
        members = tuple(given) if isinstance(given, Iterable) else ()
        if not members or not all(isinstance(problem, DecisionProblem) for problem in members):
            raise InputError(f"problems must be a DecisionProblem or a non-empty list of them; got {given!r}.")
        object.__setattr__(self, "problems", members)

    def stated(self, space: Space) -> SymbolicTests:
        for problem in self.problems:
            if not problem.space.same_as(space):
                raise InputError(
                    f"{type(self).__name__}: its problem has outcome space {problem.space!r}, but forecasts live in "
                    f"{space!r}; all problems must share one space."
                )
        many = len(self.problems) > 1
        return SymbolicTests.joined(
            self._tests(problem, f"problem {number}: " if many else "", space)
            for number, problem in enumerate(self.problems, start=1)
        )

    def _tests(self, problem: DecisionProblem, prefix: str, space: Space) -> SymbolicTests:
        """State the tests of one problem."""
        raise NotImplementedError

    def _multipliers(self, problem: DecisionProblem) -> FloatArray:
        """Flat multipliers of one problem's tests whose tilt is ``-r_BR(v)``."""
        raise NotImplementedError

    def plug_in_multipliers(self, problem: DecisionProblem) -> FloatArray | None:
        same = [  # by its regions, not its labels: names of actions do not change a best response
            member.space.same_as(problem.space)
            and np.array_equal(member.rewards, problem.rewards)
            and np.array_equal(member.costs, problem.costs)
            for member in self.problems
        ]
        if not any(same):
            return None
        pieces = [self._multipliers(member) for member in self.problems]
        return np.concatenate([piece * (i == same.index(True)) for i, piece in enumerate(pieces)])


class DecisionCalibrated(_OfProblems):
    """Forecasts are right on average wherever one action is the best response.

    Parameters
    ----------
    problems : DecisionProblem or sequence of them
        For each of them best responding becomes minimax optimal.

    Examples
    --------
    >>> import prudent
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    >>> prudent.guarantees.DecisionCalibrated(problem).problems == (problem,)
    True
    """

    name = "decision-calibrated"

    def _tests(self, problem: DecisionProblem, prefix: str, space: Space) -> SymbolicTests:
        columns = [Indicator(BestResponse(problem), action) for action in range(problem.n_actions)]
        names = [f"{prefix}best response {action}" for action in problem.actions]
        return SymbolicTests(columns, EvaluatedTests.scalar_layout(names, space, disjoint=True))

    def _multipliers(self, problem: DecisionProblem) -> FloatArray:
        return -problem.rewards.reshape(-1)


class UtilityCalibrated(_OfProblems):
    """The utility that best responding expects is right on average, one number per problem.

    The single vector test ``B(v) = r_BR(v)``: strictly weaker than decision
    calibration, yet enough for best responding to be minimax optimal. Its
    slack is in units of utility.

    Examples
    --------
    >>> import prudent
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    >>> prudent.guarantees.UtilityCalibrated([problem]).problems == (problem,)
    True
    """

    name = "utility-calibrated"

    def _tests(self, problem: DecisionProblem, prefix: str, space: Space) -> SymbolicTests:
        rewards = [Lookup(BestResponse(problem), tuple(column)) for column in problem.rewards.T.tolist()]
        layout = EvaluatedTests.vector_layout([f"{prefix}utility"], _largest_rewards(problem)[None])
        return SymbolicTests(rewards, layout)

    def _multipliers(self, problem: DecisionProblem) -> FloatArray:
        return np.array([-1.0])


def _largest_rewards(problem: DecisionProblem) -> FloatArray:
    """Largest reward per coordinate; on the simplex up to a constant per action, which no outcome difference sees."""
    rewards = problem.rewards
    if problem.space.is_simplex:
        rewards = rewards - (rewards.max(axis=1, keepdims=True) + rewards.min(axis=1, keepdims=True)) / 2
    return np.abs(rewards).max(axis=0)
