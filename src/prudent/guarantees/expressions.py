"""Formulas of a forecast: a test is stated once as a small tree, which NumPy, a table's engine and SQL evaluate alike.

Every back end performs the same operations in the same order, so that doubles agree to the last bit (logarithms
aside, which engines round differently).
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from prudent.arrays import FloatArray
from prudent.problem import DecisionProblem

_Kind = TypeVar("_Kind")


def _operation(symbol: str) -> Callable[[Expression, Expression | float], Arithmetic]:
    return lambda left, right: Arithmetic(symbol, left, _expression(right))


class Expression:
    """A number that every forecast has."""

    __add__ = _operation("+")
    __sub__ = _operation("-")
    __mul__ = _operation("*")
    __truediv__ = _operation("/")

    def __rsub__(self, other: float) -> Arithmetic:
        return _expression(other) - self


@dataclass_transform(frozen_default=True)
def _node(kind: type[_Kind]) -> type[_Kind]:
    """Make a frozen dataclass that computes its hash once: back ends look expressions up all the time."""
    made = dataclass(frozen=True)(kind)
    plain = made.__hash__

    def hash_once(self: _Kind) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = plain(self)
            object.__setattr__(self, "_hash", known)
        return int(known)

    made.__hash__ = hash_once  # type: ignore[assignment]
    return made


@_node
class Coordinate(Expression):
    """A coordinate of the forecast."""

    index: int


@_node
class Constant(Expression):
    """The same number for every forecast."""

    value: float


@_node
class Arithmetic(Expression):
    """A sum, difference, product or quotient (the latter by a constant)."""

    operator: str
    left: Expression
    right: Expression


@_node
class Logarithm(Expression):
    """The natural logarithm."""

    of: Expression


@_node
class Chebyshev(Expression):
    """The Chebyshev polynomial ``T_degree`` of an expression with values in [-1, 1]."""

    degree: int
    of: Expression

    @property
    def expansion(self) -> Expression:
        """The polynomial in terms of those of half the degree: ``T_{m+n} = 2 T_m T_n - T_{m-n}``.

        Unlike the three-term recurrence it has as many terms as its degree where an engine has no names for them.
        """
        small = self.degree // 2
        half, other = _chebyshev(small, self.of), _chebyshev(self.degree - small, self.of)
        return (half + half) * other - (self.of if self.degree % 2 else ONE)


@_node
class Largest(Expression):
    """The largest coordinate's value."""

    dimension: int


class Label(Expression):
    """A whole number from zero to ``n_labels``, excluded."""

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        raise NotImplementedError


@_node
class Bin(Label):
    """The bin ``[e_i, e_{i+1})`` of an expression; the outer bins have no end."""

    of: Expression
    edges: tuple[float, ...]

    @property
    def n_labels(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1


@_node
class LargestCoordinate(Label):
    """Which coordinate is the largest, the first of equals."""

    dimension: int

    @property
    def n_labels(self) -> int:
        """Number of coordinates."""
        return self.dimension


@_node
class BestResponse(Label):
    """Which action is best for the forecast, the first declared of equals."""

    problem: DecisionProblem

    @property
    def n_labels(self) -> int:
        """Number of actions."""
        return self.problem.n_actions

    @property
    def utilities(self) -> list[Expression]:
        """Expected utility of every action, with the sums of :meth:`DecisionProblem.best_actions`."""
        problem = self.problem
        return [
            reduce(operator.add, [v * reward for v, reward in zip(coordinates(len(own)), own, strict=True)], start)
            for own, start in zip(problem.rewards.tolist(), map(Constant, (-problem.costs).tolist()), strict=True)
        ]


@_node
class Pair(Label):
    """Two labels as one."""

    first: Label
    second: Label

    @property
    def n_labels(self) -> int:
        """Number of pairs."""
        return self.first.n_labels * self.second.n_labels


@_node
class Group(Label):
    """The place of a row's context among known groups.

    A group has a value of every column; of a column with cuts that is how many of them the number has reached.
    """

    columns: tuple[tuple[str, tuple[float, ...]], ...]
    values: tuple[tuple[Any, ...], ...]
    rest: bool = False  # whether rows of no known group have the last place

    @property
    def n_labels(self) -> int:
        """Number of groups."""
        return len(self.values) + self.rest

    def conditions(self) -> Iterator[list[tuple[str, Any]]]:
        """What a row of each group meets: a column has a value, or lies between two ends, the upper one excluded."""
        for group in self.values:
            own = zip(self.columns, group, strict=True)
            yield [(name, (-MOST, *cuts, MOST)[at : at + 2] if cuts else at) for (name, cuts), at in own]


@_node
class Indicator(Expression):
    """One, or another expression, where a label has a value, else zero."""

    label: Label
    index: int
    of: Expression = Constant(1.0)


@_node
class Lookup(Expression):
    """The entry of a table at a label."""

    label: Label
    entries: tuple[float, ...]


ONE = Constant(1.0)
#: The end of numbers that have none: greater than all of them, infinity and NaN aside.
MOST = float(np.finfo(np.float64).max)

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


class BackEnd(ABC):
    """Evaluates expressions, each once; ``known`` may hold some from the start."""

    def __init__(self, known: Mapping[Any, Any] | None = None) -> None:
        self.known: dict[Expression, Any] = dict(known or {})

    def __call__(self, expression: Expression) -> Any:
        if isinstance(expression, Constant):  # zeros of both signs are equal, but not the same
            return self.constant(expression.value)
        if expression not in self.known:
            self.known[expression] = self._evaluate(expression)
        return self.known[expression]

    def _evaluate(self, expression: Expression) -> Any:
        match expression:
            case Coordinate(index):
                return self.coordinate(index)
            case Arithmetic():
                return self.arithmetic(expression)
            case Logarithm(of):
                return self.logarithm(self(of))
            case Chebyshev():
                return self.chebyshev(expression)
            case Largest(dimension):
                return self.largest([self(v) for v in coordinates(dimension)])
            case Bin(of, edges):
                return self.bin(self(of), edges)
            case LargestCoordinate(dimension):
                return self.first_largest([self(v) for v in coordinates(dimension)])
            case BestResponse():
                return self.best_response(expression)
            case Group():
                return self.group(expression)
            case Pair(first, second):
                return self.pair(self(first), self(second), second.n_labels)
        raise TypeError(f"{expression!r} is a column of tests, which only arrays hold.")

    def constant(self, value: float) -> Any:
        """A constant."""
        return value

    @abstractmethod
    def coordinate(self, index: int) -> Any:
        """A coordinate of the forecast."""

    def arithmetic(self, expression: Arithmetic) -> Any:
        """A sum, difference, product or quotient."""
        return _OPERATIONS[expression.operator](self(expression.left), self(expression.right))

    @abstractmethod
    def logarithm(self, value: Any) -> Any:
        """A natural logarithm."""

    def chebyshev(self, expression: Chebyshev) -> Any:
        """A Chebyshev polynomial."""
        return self(expression.expansion)

    @abstractmethod
    def largest(self, values: list[Any]) -> Any:
        """The largest of several values."""

    @abstractmethod
    def bin(self, value: Any, edges: tuple[float, ...]) -> Any:
        """The number of a bin."""

    def best_response(self, label: BestResponse) -> Any:
        """The number of the first best action."""
        return self.first_largest([self(utility) for utility in label.utilities])

    @abstractmethod
    def first_largest(self, scores: list[Any]) -> Any:
        """The number of the first largest score."""

    def group(self, label: Group) -> Any:
        """The number of the row's group."""
        raise TypeError(f"{label!r} is known of rows in memory before expressions are evaluated.")

    def pair(self, first: Any, second: Any, count: int) -> Any:
        """Two labels as one, the second of ``count`` values."""
        return first * count + second


class Arrays(BackEnd):
    """NumPy: forecasts ``(n, d)`` in, one array ``(n,)`` per expression out; constants stay numbers."""

    def __init__(self, forecasts: FloatArray, known: Mapping[Any, Any] | None = None) -> None:
        super().__init__(known)
        self.forecasts = forecasts
        # Next to each other in memory: NumPy may round logarithms otherwise where numbers are not.
        self._columns = np.ascontiguousarray(forecasts.T)

    def coordinate(self, index: int) -> Any:
        """A column of the forecasts."""
        return self._columns[index]

    def logarithm(self, value: Any) -> Any:
        """A natural logarithm; of numbers that no condition allows it is nothing to warn about."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(value)

    def largest(self, values: list[Any]) -> Any:
        """The largest of several values."""
        return reduce(np.maximum, values)

    def bin(self, value: Any, edges: tuple[float, ...]) -> Any:
        """The number of inner edges that a value has reached."""
        return np.searchsorted(edges[1:-1], value, side="right")

    def best_response(self, label: BestResponse) -> Any:
        """The number of the first best action, by the problem itself."""
        return label.problem.best_actions(self.forecasts)

    def first_largest(self, scores: list[Any]) -> Any:
        """The number of the first largest score."""
        return np.argmax(scores, axis=0)

    def _evaluate(self, expression: Expression) -> Any:
        match expression:
            case Indicator(label, index, of):
                return (self(label) == index) * self(of)
            case Lookup(label, entries):
                return np.array(entries).take(self(label))
        return super()._evaluate(expression)


def coordinates(dimension: int) -> list[Expression]:
    """All coordinates of a forecast."""
    return [Coordinate(index) for index in range(dimension)]


def _chebyshev(degree: int, of: Expression) -> Expression:
    return (ONE, of)[degree] if degree < 2 else Chebyshev(degree, of)


def _expression(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else Constant(float(value) + 0.0)
