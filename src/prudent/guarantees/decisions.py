"""Guarantees made for decision problems: the line at which best responding becomes optimal.

Decision regions are a partition by the library's one tie-break, the same that
the plug-in policy plays; closed overlapping regions, as in the paper, break
its theorems (docs/theory.md, section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.joining import join
from prudent.guarantees.written import Block, WrittenTests, coordinate
from prudent.problem import DecisionProblem
from prudent.spaces import Simplex, Space

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["DecisionCalibrated", "UtilityCalibrated", "best_response_label"]


@dataclass(frozen=True)
class _OfProblems(Guarantee):
    """A guarantee that is stated for one or several decision problems."""

    problems: tuple[DecisionProblem, ...]

    def __post_init__(self) -> None:
        members = (self.problems,) if isinstance(self.problems, DecisionProblem) else self.problems
        members = tuple(members) if isinstance(members, Iterable) else ()
        if not members or not all(isinstance(member, DecisionProblem) for member in members):
            name = type(self).__name__
            raise InputError(f"{name} needs a DecisionProblem or a non-empty list of them; got {self.problems!r}.")
        object.__setattr__(self, "problems", members)

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return self.evaluate_responses([problem.best_actions(forecasts) for problem in self.problems], space)

    def evaluate_responses(self, responses: Sequence[IntArray], space: Space) -> EvaluatedTests:
        """Evaluate on rows of which each problem's best responses are known, by the one tie-break."""
        self._require_space(space)
        tests = [self._tests(number, best, space) for number, best in enumerate(responses)]
        return replace(tests[0], labels=responses[0]) if len(tests) == 1 else join(tests)

    def _tests(self, number: int, best: IntArray, space: Space) -> EvaluatedTests:
        """Tests of one problem."""
        raise AssertionError("every guarantee for decisions has tests")

    def _write(self, tests: Callable[[int, IntArray, Space], EvaluatedTests], space: Space) -> WrittenTests:
        """Label rows by each problem's best response."""
        self._require_space(space)

        def block(number: int, problem: DecisionProblem) -> Block:
            return Block(
                lambda labels, _: tests(number, labels, space),
                label=best_response_label(problem),
                n_labels=problem.n_actions,
            )

        return WrittenTests(tuple(block(number, problem) for number, problem in enumerate(self.problems)))

    def _require_space(self, space: Space) -> None:
        for problem in self.problems:
            if not problem.space.same_as(space):
                raise InputError(
                    f"{type(self).__name__}: its problem has outcome space {problem.space!r}, but forecasts live in "
                    f"{space!r}; all problems must share one space."
                )

    def _position(self, problem: DecisionProblem) -> int | None:
        """Find a problem by its regions, not its labels: names of actions do not change a best response."""
        for position, member in enumerate(self.problems):
            if (
                member.space.same_as(problem.space)
                and np.array_equal(member.rewards, problem.rewards)
                and np.array_equal(member.costs, problem.costs)
            ):
                return position
        return None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "problems": [problem.to_dict() for problem in self.problems]}

    @classmethod
    def from_fields(cls, document: dict[str, Any]) -> Guarantee:
        return cls(tuple(DecisionProblem.from_dict(problem) for problem in document["problems"]))


@dataclass(frozen=True)
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

    kind: ClassVar[str] = "decision-calibrated"

    def write(self, space: Space) -> WrittenTests:
        return self._write(self._tests, space)

    def _tests(self, number: int, best: IntArray, space: Space) -> EvaluatedTests:
        """Tests of one problem."""
        problem = self.problems[number]
        prefix = "" if len(self.problems) == 1 else f"problem {number + 1}: "
        names = [f"{prefix}best response {action}" for action in problem.actions]
        values = np.eye(problem.n_actions).take(best, axis=0)
        return EvaluatedTests.from_scalar(values, names, np.ones(len(names)), space.coordinate_names, disjoint=True)

    def plug_in_multipliers(self, problem: DecisionProblem, forecasts: FloatArray) -> FloatArray | None:
        position = self._position(problem)
        if position is None:
            return None
        blocks = [np.zeros_like(member.rewards) for member in self.problems]
        blocks[position] = -problem.rewards
        return np.concatenate(blocks).reshape(-1)


@dataclass(frozen=True)
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

    kind: ClassVar[str] = "utility-calibrated"

    def write(self, space: Space) -> WrittenTests:
        return self._write(self._tests, space)

    def _tests(self, number: int, best: IntArray, space: Space) -> EvaluatedTests:
        """The test of one problem."""
        problem = self.problems[number]
        name = "utility" if len(self.problems) == 1 else f"problem {number + 1}: utility"
        bounds = _largest_rewards(problem)[None]
        return EvaluatedTests.from_vector(problem.rewards.take(best, axis=0)[:, None], [name], np.ones(1), bounds)

    def plug_in_multipliers(self, problem: DecisionProblem, forecasts: FloatArray) -> FloatArray | None:
        position = self._position(problem)
        return None if position is None else -np.eye(len(self.problems))[position]


def best_response_label(problem: DecisionProblem) -> nw.Expr:
    """Write a problem's best response as an expression: its sums in the same order, ties to the first declared."""
    import narwhals.stable.v2 as nw

    best, highest = nw.lit(0), _utility(problem, 0)
    for action in range(1, problem.n_actions):
        utility = _utility(problem, action)
        best = nw.when(utility > highest).then(nw.lit(action)).otherwise(best)
        highest = nw.max_horizontal(highest, utility)
    return best


def _utility(problem: DecisionProblem, action: int) -> nw.Expr:
    import narwhals.stable.v2 as nw

    utility = nw.lit(-float(problem.costs[action]))
    for j, reward in enumerate(problem.rewards[action].tolist()):
        utility = utility + nw.col(coordinate(j)) * reward
    return utility


def _largest_rewards(problem: DecisionProblem) -> FloatArray:
    """Largest reward per coordinate; on the simplex up to a constant per action, which no outcome difference sees."""
    rewards = problem.rewards
    if isinstance(problem.space, Simplex):
        rewards = rewards - (rewards.max(axis=1, keepdims=True) + rewards.min(axis=1, keepdims=True)) / 2
    largest: FloatArray = np.abs(rewards).max(axis=0)
    return largest
