"""Guarantees made for decision problems: the line at which best responding becomes optimal.

Decision regions are a partition by the library's one tie-break, the same that
the plug-in policy plays; closed overlapping regions, as in the paper, break
its theorems (THEORY, section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.spaces import Space

__all__ = ["DecisionCalibrated", "UtilityCalibrated"]


@dataclass(frozen=True)
class DecisionCalibrated(Guarantee):
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

    problems: tuple[DecisionProblem, ...]

    kind: ClassVar[str] = "decision-calibrated"

    def __post_init__(self) -> None:
        object.__setattr__(self, "problems", _as_problems(self.problems, "DecisionCalibrated"))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        columns, names = [], []
        for number, problem in enumerate(self.problems, start=1):
            _require_space(problem, space, "DecisionCalibrated")
            columns.append(np.eye(problem.n_actions)[_best_response(problem, forecasts)])
            prefix = "" if len(self.problems) == 1 else f"problem {number}: "
            names += [f"{prefix}best response {action}" for action in problem.actions]
        return EvaluatedTests.from_scalar(np.hstack(columns), names, np.ones(len(names)), space.coordinate_names)

    def plug_in_multipliers(self, problem: DecisionProblem, forecasts: FloatArray) -> FloatArray | None:
        blocks = [np.zeros_like(member.rewards) for member in self.problems]
        for position, member in enumerate(self.problems):
            if _same_decision(member, problem):
                blocks[position] = -member.rewards
                return np.concatenate(blocks).reshape(-1)
        return None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "problems": [problem.to_dict() for problem in self.problems]}

    @classmethod
    def from_fields(cls, document: dict[str, Any]) -> Guarantee:
        return cls(tuple(DecisionProblem.from_dict(problem) for problem in document["problems"]))


@dataclass(frozen=True)
class UtilityCalibrated(Guarantee):
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

    problems: tuple[DecisionProblem, ...]

    kind: ClassVar[str] = "utility-calibrated"

    def __post_init__(self) -> None:
        object.__setattr__(self, "problems", _as_problems(self.problems, "UtilityCalibrated"))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        columns, names = [], []
        for number, problem in enumerate(self.problems, start=1):
            _require_space(problem, space, "UtilityCalibrated")
            columns.append(problem.rewards[_best_response(problem, forecasts)])
            names.append("utility" if len(self.problems) == 1 else f"problem {number}: utility")
        return EvaluatedTests.from_vector(np.stack(columns, axis=1), names, np.ones(len(names)))

    def plug_in_multipliers(self, problem: DecisionProblem, forecasts: FloatArray) -> FloatArray | None:
        multipliers = np.zeros(len(self.problems))
        for position, member in enumerate(self.problems):
            if _same_decision(member, problem):
                multipliers[position] = -1.0
                return multipliers
        return None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "problems": [problem.to_dict() for problem in self.problems]}

    @classmethod
    def from_fields(cls, document: dict[str, Any]) -> Guarantee:
        return cls(tuple(DecisionProblem.from_dict(problem) for problem in document["problems"]))


def _best_response(problem: DecisionProblem, forecasts: FloatArray) -> Any:
    return problem.linear_utility(forecasts).argmax(axis=1)


def _as_problems(problems: Any, name: str) -> tuple[DecisionProblem, ...]:
    if isinstance(problems, DecisionProblem):
        return (problems,)
    members = tuple(problems) if isinstance(problems, Iterable) else ()
    if not members or not all(isinstance(member, DecisionProblem) for member in members):
        raise InputError(f"{name} needs a DecisionProblem or a non-empty list of them; got {problems!r}.")
    return members


def _require_space(problem: DecisionProblem, space: Space, name: str) -> None:
    if not problem.space.same_as(space):
        raise InputError(
            f"{name}: its problem has outcome space {problem.space!r}, but forecasts live in {space!r}; "
            f"all problems must share one space."
        )


def _same_decision(one: DecisionProblem, other: DecisionProblem) -> bool:
    """Compare regions, not labels: names of actions do not change a best response."""
    return (
        one.space.same_as(other.space)
        and np.array_equal(one.rewards, other.rewards)
        and np.array_equal(one.costs, other.costs)
    )
