"""The tilt ``s(v)`` of every built-in guarantee, with the operations and the order of NumPy's.

A test is a formula of the forecast or the indicator of a cell. Sums run test
by test as in :meth:`EvaluatedTests.tilts`; a cell's indicator adds its
multiplier or nothing, so looking the multiplier up gives the same double.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees import (
    And,
    Binned,
    Classwise,
    Confidence,
    DecisionCalibrated,
    Guarantee,
    LogOdds,
    Nothing,
    Polynomial,
    SelfOrthogonal,
    Temperature,
    TopLabel,
    Unbiased,
    UtilityCalibrated,
)
from prudent.policies.sql.dialects import Dialect
from prudent.policies.sql.pipeline import Pipeline, case
from prudent.problem import DecisionProblem
from prudent.spaces import Simplex, Space

__all__ = ["Cells", "Formula", "Tilt", "best_response", "first_extreme", "tilt_of"]


@dataclass(frozen=True)
class Formula:
    """A scalar test and its multipliers, one per coordinate; without an expression the test is 1."""

    expression: str | None
    multipliers: FloatArray  # (d,)
    increasing: bool = False


@dataclass(frozen=True)
class Cells:
    """Cells of forecasts, and what each adds to the tilt.

    ``edges`` are conditions, each implied by the one before, that tell cells
    apart; without them ``index`` is the number of the cell, from one.
    """

    table: FloatArray  # (cells, d)
    edges: tuple[str, ...] | None = None
    index: str = ""

    def pick(self, dialect: Dialect, outcomes: list[str]) -> str:
        """Write the outcome of the cell that a row lies in."""
        if self.edges is None:
            same = len(set(outcomes)) == 1
            return outcomes[0] if same else dialect.element(dialect.array(outcomes), self.index)
        kept = [i for i in range(len(self.edges)) if outcomes[i] != outcomes[i + 1]]
        return case([self.edges[i] for i in kept], [outcomes[i] for i in kept] + [outcomes[-1]])


@dataclass
class Tilt:
    """Terms of a tilt, and what must hold for a forecast to be accepted, each with its reason."""

    dimension: int
    terms: list[Formula | Cells] = field(default_factory=list)
    demands: list[tuple[str, str]] = field(default_factory=list)

    @property
    def used(self) -> list[Formula | Cells]:
        """Terms whose multipliers are not all zero."""
        return [term for term in self.terms if (term.multipliers if isinstance(term, Formula) else term.table).any()]

    @property
    def monotone(self) -> bool:
        """True if rounding included the tilt never turns: constants and one increasing test in one coordinate."""
        changing = [term for term in self.used if not (isinstance(term, Formula) and term.expression is None)]
        return (
            self.dimension == 1 and len(changing) == 1 and isinstance(changing[0], Formula) and changing[0].increasing
        )

    def write(self, names: Pipeline) -> list[str]:
        """Write the tilt, coordinate by coordinate."""
        dialect = names.dialect
        return [self._coordinate(dialect, j) for j in range(self.dimension)]

    def _coordinate(self, dialect: Dialect, j: int) -> str:
        parts = []
        for term in self.used:
            if isinstance(term, Cells):
                column = term.table[:, j]
                if not column.any():
                    continue
                if term.edges is None:
                    parts.append(dialect.element(dialect.numbers(column.tolist()), term.index))
                else:
                    parts.append(term.pick(dialect, [dialect.number(value) for value in column]))
            elif term.multipliers[j]:
                literal = dialect.number(term.multipliers[j])
                parts.append(literal if term.expression is None else f"{term.expression} * {literal}")
        return " + ".join(parts) if parts else dialect.number(0.0)


def tilt_of(guarantee: Guarantee, multipliers: FloatArray, space: Space, names: Pipeline, v: list[str]) -> Tilt:
    """Write the tests of a resolved guarantee with multipliers ``(K,)`` at the forecast ``v``."""
    tilt = Tilt(space.dimension)
    writer = _Writer(multipliers.reshape(-1), space, names, v, tilt)
    writer.add(guarantee)
    return tilt


def best_response(problem: DecisionProblem, names: Pipeline, v: list[str]) -> str:
    """Name the place of the first best action, from one."""
    dialect = names.dialect
    utilities = []
    for rewards, cost in zip(problem.rewards, problem.costs, strict=True):
        parts = [dialect.number(-cost)] + [
            f"{column} * {dialect.number(reward)}" for column, reward in zip(v, rewards, strict=True)
        ]
        utilities.append(" + ".join(parts))
    return first_extreme(utilities, names, "max")


def first_extreme(scores: list[str], names: Pipeline, extreme: str) -> str:
    """Name the place, from one, of the first smallest or largest of several numbers."""
    (scored,) = names.bind("scores", [names.dialect.array(scores)])
    (place,) = names.bind("place", [names.dialect.position(scored, extreme)])
    return place


@dataclass
class _Writer:
    multipliers: FloatArray
    space: Space
    names: Pipeline
    v: list[str]
    tilt: Tilt
    taken: int = 0

    def add(self, guarantee: Guarantee) -> None:
        writers: dict[type[Guarantee], Callable[..., None]] = {
            Nothing: lambda _: None,
            Unbiased: lambda _: self._constant(),
            SelfOrthogonal: self._self_orthogonal,
            Polynomial: self._polynomial,
            LogOdds: self._log_odds,
            Temperature: self._temperature,
            Binned: self._binned,
            Classwise: self._classwise,
            TopLabel: self._top_label,
            Confidence: self._confidence,
            DecisionCalibrated: self._decisions,
            UtilityCalibrated: self._utilities,
        }
        if isinstance(guarantee, And):
            for part in guarantee.parts:
                self.add(part)
        elif type(guarantee) in writers:
            writers[type(guarantee)](guarantee)
        else:
            kind = type(guarantee).__name__
            why = "its tests are Python functions" if not guarantee.savable else "its tests have no SQL form here"
            raise InputError(
                f"a policy on {kind} cannot be written in SQL: {why}. Use built-in guarantees, or decide in Python."
            )

    def _take(self, count: int) -> FloatArray:
        """Take the multipliers of the next moments."""
        part = self.multipliers[self.taken : self.taken + count]
        self.taken += count
        return part

    def _formula(self, expression: str | None, *, increasing: bool = False) -> None:
        self.tilt.terms.append(Formula(expression, self._take(self.tilt.dimension), increasing))

    def _constant(self) -> None:
        self._formula(None)

    def _self_orthogonal(self, guarantee: SelfOrthogonal) -> None:
        if guarantee.intercept:
            self._constant()
        for column in self.v:
            self._formula(column, increasing=True)

    def _polynomial(self, guarantee: Polynomial) -> None:
        lower, upper = self.space.bounds
        number = self.names.dialect.number
        normal = [
            f"({column} - {number(low)}) / {number(width)}"
            for column, low, width in zip(self.v, lower, upper - lower, strict=True)
        ]
        z = self.names.bind("z", normal)
        self._constant()
        for degree in range(1, guarantee.degree + 1):
            for powers in combinations_with_replacement(range(len(z)), degree):
                product = z[powers[0]]
                for j in powers[1:]:
                    product = f"{product} * {z[j]}"
                self._formula(product, increasing=degree == 1)

    def _log_odds(self, guarantee: LogOdds) -> None:
        if guarantee.intercept:
            self._constant()
        for expression in self._logarithms(against_last=True):
            self._formula(expression)

    def _temperature(self, guarantee: Temperature) -> None:
        (multiplier,) = self._take(1)
        for j, expression in enumerate(self._logarithms(against_last=False)):
            self.tilt.terms.append(Formula(expression, multiplier * np.eye(self.tilt.dimension)[j]))

    def _logarithms(self, *, against_last: bool) -> list[str]:
        """Log-odds or logarithms; forecasts on the boundary are refused, as in Python."""
        reason = "takes logarithms of forecasts, which must be strictly inside the space"
        zero = self.names.dialect.number(0.0)
        if isinstance(self.space, Simplex):
            self.tilt.demands += [(f"{column} > {zero}", reason) for column in self.v]
            logs = [f"ln({column})" for column in self.v]
            return [f"({log} - {logs[-1]})" for log in logs[:-1]] if against_last else logs
        low, high = (self.names.dialect.number(bound[0]) for bound in self.space.bounds)
        column = self.v[0]
        self.tilt.demands += [(f"{column} - {low} > {zero} AND {high} - {column} > {zero}", reason)]
        return [f"(ln({column} - {low}) - ln({high} - {column}))"]

    def _binned(self, guarantee: Binned) -> None:
        number = self.names.dialect.number
        first, last = guarantee.edges[0], guarantee.edges[-1]
        self.tilt.demands.append(
            (
                f"{self.v[0]} >= {number(first)} AND {self.v[0]} <= {number(last)}",
                f"has bins from {first!r} to {last!r} only",
            )
        )
        count = len(guarantee.edges) - 1
        self.tilt.terms.append(Cells(self._take(count)[:, None], self._edges(self.v[0], guarantee.edges)))

    def _classwise(self, guarantee: Classwise) -> None:
        d, lower, upper = self.tilt.dimension, *self.space.bounds
        for j in range(d):
            table = np.zeros((guarantee.n_bins, d))
            table[:, j] = self._take(guarantee.n_bins)
            edges = np.linspace(lower[j], upper[j], guarantee.n_bins + 1).tolist()
            self.tilt.terms.append(Cells(table, self._edges(self.v[j], edges)))

    def _top_label(self, guarantee: TopLabel) -> None:
        self._top(guarantee.n_bins, self._take(self.tilt.dimension * guarantee.n_bins).reshape(self.tilt.dimension, -1))

    def _confidence(self, guarantee: Confidence) -> None:
        self._top(guarantee.n_bins, np.tile(self._take(guarantee.n_bins), (self.tilt.dimension, 1)))

    def _top(self, n_bins: int, multipliers: FloatArray) -> None:
        """Write cells of (top class, confidence bin) with multipliers ``(d, n_bins)`` on the top class."""
        d = self.tilt.dimension
        top = first_extreme(self.v, self.names, "max")
        (confidence,) = self.names.bind("confidence", [f"GREATEST({', '.join(self.v)})"])
        edges = self._edges(confidence, np.linspace(0.0, 1.0, n_bins + 1).tolist())
        number = case(list(edges), [str(i) for i in range(1, n_bins + 1)])
        (index,) = self.names.bind("cell", [f"({top} - 1) * {n_bins} + {number}"])
        table = np.zeros((d, n_bins, d))
        table[np.arange(d), :, np.arange(d)] = multipliers
        self.tilt.terms.append(Cells(table.reshape(-1, d), index=index))

    def _decisions(self, guarantee: DecisionCalibrated) -> None:
        for problem in guarantee.problems:
            table = self._take(problem.rewards.size).reshape(problem.rewards.shape)
            self._regions(problem, table)

    def _utilities(self, guarantee: UtilityCalibrated) -> None:
        for problem in guarantee.problems:
            (multiplier,) = self._take(1)
            self._regions(problem, problem.rewards * multiplier)

    def _regions(self, problem: DecisionProblem, table: FloatArray) -> None:
        if table.any():
            self.tilt.terms.append(Cells(table, index=best_response(problem, self.names, self.v)))

    def _edges(self, column: str, edges: tuple[float, ...] | list[float]) -> tuple[str, ...]:
        return tuple(f"{column} < {self.names.dialect.number(edge)}" for edge in edges[1:-1])
