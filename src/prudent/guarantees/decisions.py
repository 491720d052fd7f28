"""Guarantees made for decision problems: the line at which best responding becomes optimal.

Decision regions are a partition by the library's one tie-break, the same that
the plug-in policy plays; closed overlapping regions, as in the paper, break
its theorems (docs/theory.md, section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.spaces import Simplex, Space

__all__ = ["DecisionCalibrated", "UtilityCalibrated"]


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

    def _best_responses(self, forecasts: FloatArray, space: Space) -> list[IntArray]:
        """Each problem's best response to each forecast, by the one tie-break."""
        for problem in self.problems:
            if not problem.space.same_as(space):
                raise InputError(
                    f"{type(self).__name__}: its problem has outcome space {problem.space!r}, but forecasts live in "
                    f"{space!r}; all problems must share one space."
                )
        return [problem.best_actions(forecasts) for problem in self.problems]

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

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        columns, names = [], []
        responses = self._best_responses(forecasts, space)
        for number, (problem, best) in enumerate(zip(self.problems, responses, strict=True), start=1):
            columns.append(np.eye(problem.n_actions)[best])
            prefix = "" if len(self.problems) == 1 else f"problem {number}: "
            names += [f"{prefix}best response {action}" for action in problem.actions]
        return EvaluatedTests.from_scalar(
            np.hstack(columns), names, np.ones(len(names)), space.coordinate_names, disjoint=len(columns) == 1
        )

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

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        responses = self._best_responses(forecasts, space)
        columns = [problem.rewards[best] for problem, best in zip(self.problems, responses, strict=True)]
        count = len(columns)
        names = ["utility"] if count == 1 else [f"problem {number}: utility" for number in range(1, count + 1)]
        bounds = np.stack([_largest_rewards(problem) for problem in self.problems])
        return EvaluatedTests.from_vector(np.stack(columns, axis=1), names, np.ones(count), bounds)

    def plug_in_multipliers(self, problem: DecisionProblem, forecasts: FloatArray) -> FloatArray | None:
        position = self._position(problem)
        return None if position is None else -np.eye(len(self.problems))[position]


def _largest_rewards(problem: DecisionProblem) -> FloatArray:
    """Largest reward per coordinate; on the simplex up to a constant per action, which no outcome difference sees."""
    rewards = problem.rewards
    if isinstance(problem.space, Simplex):
        rewards = rewards - (rewards.max(axis=1, keepdims=True) + rewards.min(axis=1, keepdims=True)) / 2
    largest: FloatArray = np.abs(rewards).max(axis=0)
    return largest
