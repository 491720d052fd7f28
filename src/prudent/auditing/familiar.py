"""Rows that many questions are asked about: what a guarantee says of them is computed once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields
from threading import Lock
from typing import Any, Generic, TypeGuard, TypeVar

import numpy as np

from prudent.ambiguity import of_usual_size
from prudent.arrays import FloatArray, IntArray
from prudent.auditing.labelled import Labelled, read_labelled
from prudent.guarantees import DecisionCalibrated, UtilityCalibrated
from prudent.guarantees.base import And, Guarantee, parts_of
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.joining import join
from prudent.moments import MomentEstimates, MomentSums, estimates_from_sums, join_sums, moment_sums
from prudent.policies import PureRobustPolicy, RobustPolicy
from prudent.problem import DecisionProblem
from prudent.remembering import steady

__all__ = ["FamiliarRows"]

Kept = TypeVar("Kept")
Fitted = TypeVar("Fitted", RobustPolicy, PureRobustPolicy)

_MOST_BYTES = 24 << 20
# What speaks of a decision goes with it, and must not push out what stays.
_MOST_BYTES_OF_DECISIONS = 16 << 20
_MOST_BYTES_OF_BEST = 8 << 20
_MOST_TESTS = 16
_MOST_ESTIMATES = 64


@dataclass(frozen=True, eq=False)
class FamiliarRows(Labelled):
    """Labelled rows that remember estimates and evaluated tests: most guarantees do not know the decision.

    Between two decisions on the same rows only the guarantees change that speak of the decision. The tests of 16
    guarantees are kept, those used last, if they have at most 24 MB; of those that do speak of it 16 MB, and best
    responses of at most 8 MB.

    Examples
    --------
    >>> import prudent
    >>> from prudent.auditing import FamiliarRows
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    >>> rows = FamiliarRows.read([0.2, 0.6, 0.7], [0.0, 1.0, 1.0], problem)
    >>> guarantee = prudent.guarantees.Unbiased()
    >>> rows.estimate(guarantee, 0.95, "auto") is rows.estimate(guarantee, 0.95, "auto")
    True
    """

    _estimates: _Shelf[MomentEstimates] = field(default_factory=lambda: _Shelf(_MOST_ESTIMATES))
    _sums: _Shelf[MomentSums] = field(default_factory=lambda: _Shelf(_MOST_ESTIMATES))
    _tests: _Shelf[EvaluatedTests] = field(default_factory=lambda: _Shelf(_MOST_TESTS, _MOST_BYTES, _bytes_of))
    _decision_tests: _Shelf[EvaluatedTests] = field(
        default_factory=lambda: _Shelf(_MOST_TESTS, _MOST_BYTES_OF_DECISIONS, _bytes_of)
    )
    _best: _Shelf[IntArray] = field(
        default_factory=lambda: _Shelf(_MOST_TESTS, _MOST_BYTES_OF_BEST, lambda table: table.nbytes)
    )
    _best_utilities: _Shelf[float] = field(default_factory=lambda: _Shelf(_MOST_TESTS))

    @classmethod
    def read(cls, forecasts: Any, outcomes: Any, problem: DecisionProblem, sample_weight: Any = None) -> FamiliarRows:
        """Check rows as :func:`prudent.audit` does."""
        rows = read_labelled(
            forecasts,
            outcomes,
            problem=problem,
            space=None,
            sample_weight=sample_weight,
            groups=None,
            missing="refuse",
        )
        steady(rows.forecasts, rows.outcomes, rows.weights)
        return cls(**{part.name: getattr(rows, part.name) for part in fields(rows)})

    def estimate(self, guarantee: Guarantee, confidence: float, method: str) -> MomentEstimates:
        """Measure the moments of a resolved guarantee."""

        def estimate() -> MomentEstimates:
            if method == "bootstrap":  # it asks how moments go together
                return super(FamiliarRows, self).estimate(guarantee, confidence, method)
            sums = self._added_up(guarantee)
            if sums.n_units < 2:  # refused, with the reason
                return super(FamiliarRows, self).estimate(guarantee, confidence, method)
            return estimates_from_sums(sums, confidence, method)

        return self._estimates.get((guarantee, confidence, method), estimate)

    def _added_up(self, guarantee: Guarantee) -> MomentSums:
        """Add up the moments of a guarantee; of several at once those parts that are new."""
        parts = parts_of(guarantee)
        scalar = all(self.evaluate(part).scalar for part in parts)
        return join_sums([self._part_added_up(part, scalar) for part in parts])

    def _part_added_up(self, guarantee: Guarantee, scalar: bool) -> MomentSums:
        """Add up the moments of one guarantee, beside others that are not ``scalar`` as vector tests."""

        def add_up() -> MomentSums:
            rows = self.forecasts, self.outcomes, self.weights, self.clusters
            tests = self.evaluate(guarantee)
            return moment_sums(guarantee, self.space, *rows, written_out=not scalar, evaluated=tests)

        return self._sums.get((guarantee, scalar), add_up)

    def evaluate(self, guarantee: Guarantee) -> EvaluatedTests:
        """Evaluate a resolved guarantee; of several at once those parts that are new."""

        def evaluate() -> EvaluatedTests:
            if isinstance(guarantee, And):
                return join([self.evaluate(part) for part in guarantee.parts])
            if _knows_decision(guarantee):
                responses = [self.best_actions(problem) for problem in guarantee.problems]
                return of_usual_size(guarantee.evaluate_responses(responses, self.space))
            return super(FamiliarRows, self).evaluate(guarantee)

        def settled() -> EvaluatedTests:
            tests = evaluate()
            steady(*tests.arrays)
            return tests

        shelf = self._decision_tests if any(map(_knows_decision, parts_of(guarantee))) else self._tests
        return shelf.get(guarantee, settled)

    def best_mixtures(self, problem: DecisionProblem) -> FloatArray:
        """Best respond to every forecast."""
        return np.eye(problem.n_actions).take(self.best_actions(problem), axis=0)

    def best_actions(self, problem: DecisionProblem) -> IntArray:
        """The index of the best response to every forecast."""
        return self._best.get(problem, lambda: problem.best_actions(self.forecasts))

    def best_utility(self, problem: DecisionProblem) -> float:
        """What best responding gets if the forecasts are right."""
        return self._best_utilities.get(problem, lambda: super(FamiliarRows, self).best_utility(problem))

    def fit_as_given(self, policy: Fitted, forecasts: Any) -> Fitted:
        """Fit a policy with slack of any kind to these rows, whose forecasts are passed as they came."""
        return policy._fit_known(
            forecasts,
            self.weights,
            self.outcomes,
            self.evaluate,
            lambda guarantee, confidence: self.estimate(guarantee, confidence, "auto"),
        )

    def play(self, policy: RobustPolicy | PureRobustPolicy) -> FloatArray:
        """What a policy plays on these rows; its guarantee was evaluated to fit it."""
        return policy._play_tested(self.forecasts, self.evaluate(policy.guarantee_))


def _knows_decision(guarantee: Guarantee) -> TypeGuard[DecisionCalibrated | UtilityCalibrated]:
    return isinstance(guarantee, (DecisionCalibrated, UtilityCalibrated))


class _Shelf(Generic[Kept]):
    """Keeps what was used last, up to a number and a total size."""

    def __init__(self, count: int, most: int = 0, size: Callable[[Kept], int] = lambda _: 0) -> None:
        self._count, self._most, self._size = count, most, size
        self._held: OrderedDict[Hashable, Kept] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what is there, or make it; two who ask at once may both make it, and get the same."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        made = make()
        if self._size(made) <= self._most:
            with self._lock:
                self._held[key] = made
                while len(self._held) > self._count or sum(map(self._size, self._held.values())) > self._most:
                    self._held.popitem(last=False)
        return made


def _bytes_of(tests: EvaluatedTests) -> int:
    """Count the table and the number of each row's cell."""
    return tests.nbytes + 8 * tests.n_rows
