"""Tests as narwhals expressions, so that an engine evaluates them where the forecasts live.

Every row has a few whole-numbered labels (a bin, a best response) and a few numbers (the forecast itself, its
polynomials or logarithms); given the labels, tests are affine in the numbers. Means of the numbers over rows of the
same labels therefore give the means of the tests, exactly, and a table needs no column per test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen
from prudent.arrays.lazy_narwhals import Expr, Exprs, nw, where
from prudent.guarantees.base import Guarantee, symbolic_tests
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import BackEnd, Bin, Coordinate, Expression
from prudent.guarantees.symbolic import STRICTLY_INSIDE, SymbolicTests
from prudent.spaces import Space


class Narwhals(BackEnd):
    """Narwhals: expressions of the columns ``v0, v1, ...``."""

    def constant(self, value: float) -> Expr:
        """A literal."""
        return nw.lit(value)

    def coordinate(self, index: int) -> Expr:
        """A column."""
        return nw.col(coordinate(index))

    def logarithm(self, value: Expr) -> Expr:
        """A natural logarithm."""
        return value.log()

    def largest(self, values: Exprs) -> Expr:
        """The largest of several columns."""
        return nw.max_horizontal(*values)

    def bin(self, value: Expr, edges: tuple[float, ...]) -> Expr:
        """The number of a bin, by the comparisons of a bisection."""
        return counted(value, edges[1:-1])

    def where(self, condition: Expr, chosen: Any, otherwise: Any) -> Expr:
        """One of two values, by a condition."""
        return where(condition, chosen, otherwise)


@frozen
class EngineLabel:
    """A label of every row.

    Attributes
    ----------
    expression : narwhals expression
    n_labels : int
        Labels run from zero to this, excluded.
    cuts : tuple of float or None
        Where the label is the number of these that the one coordinate has reached; None for other labels.
    approximate : narwhals expression or None
        The same label by one multiplication, which may be off by one next to a cut; its user must check.
    """

    expression: Expr
    n_labels: int
    cuts: tuple[float, ...] | None = None
    approximate: Expr | None = None


@frozen
class EngineTests:
    """All tests of a guarantee, to be evaluated in an engine."""

    stated: SymbolicTests
    known: Mapping[Expression, Expr] = field(default_factory=dict)

    @cached_property
    def _at(self) -> Narwhals:
        return Narwhals(self.known)

    @cached_property
    def _numbers(self) -> dict[str, Expression]:
        """Every number by its name: coordinates have that of their column."""
        return {
            coordinate(number.index) if isinstance(number, Coordinate) else f"z{i}": number
            for i, number in enumerate(self.stated.numbers)
        }

    @property
    def labels(self) -> list[EngineLabel]:
        """The labels that tests look up."""
        found = []
        for label in self.stated.labels:
            cuts = approximate = None
            if self.stated.layout.dimension == 1 and isinstance(label, Bin):
                cuts, approximate = label.edges[1:-1], _by_multiplication(self._at(label.of), label.edges)
            found.append(EngineLabel(self._at(label), label.n_labels, cuts, approximate))
        return found

    @property
    def numbers(self) -> dict[str, Expr]:
        """The numbers that tests are made of, by name."""
        return {name: self._at(number) for name, number in self._numbers.items()}

    @property
    def conditions(self) -> list[tuple[Expr, str]]:
        """What rows must meet to have tests, and the rule in words."""
        return [(self.stated.defined(self._at), STRICTLY_INSIDE)] if self.stated.positive else []

    def as_columns(self) -> tuple[Exprs, EngineTests]:
        """Labels and numbers as columns that a frame has to get, and the same tests written with these columns.

        An expression that is used many times is then written once.
        """
        added = {f"number_{name}": number for name, number in self._numbers.items()}
        added |= {f"label_{place}": label for place, label in enumerate(self.stated.labels)}
        known = {expression: nw.col(name) for name, expression in added.items()}
        columns = [self._at(expression).alias(name) for name, expression in added.items()]
        return columns, EngineTests(self.stated, known)

    def assemble(self, labels: IntArray, numbers: Mapping[str, FloatArray]) -> EvaluatedTests:
        """Evaluate the tests at rows with known labels ``(n, labels)`` and numbers by name."""
        known: dict[Expression, Any] = dict(zip(self.stated.labels, labels.T, strict=True))
        known |= {number: numbers[name] for name, number in self._numbers.items()}
        return self.stated.evaluate(np.zeros((len(labels), 0)), known)

    def tilts(self, multipliers: FloatArray) -> Exprs:
        """Write the tilt ``s(v)``, one expression per coordinate."""
        tilts: list[Expr | None] = [None] * self.stated.layout.dimension
        for term in self.stated.tilt(multipliers):
            factor = None if term.factor is None else self._at(term.factor)
            for j in np.flatnonzero(term.table.any(axis=0)):
                value = _entry(None if term.label is None else self._at(term.label), term.table[:, j].tolist())
                value = value if factor is None else value * factor
                tilts[j] = value if tilts[j] is None else tilts[j] + value
        return [nw.lit(0.0) if tilt is None else tilt for tilt in tilts]


def engine_tests(guarantee: Guarantee, space: Space) -> EngineTests:
    """Write the tests of a guarantee for tables that stay in their engine."""
    return EngineTests(symbolic_tests(guarantee, space))


def coordinate(j: int) -> str:
    """Name of a forecast's coordinate, as a column and as a number."""
    return f"v{j}"


def with_ends(cuts: Iterable[float]) -> FloatArray:
    """Return cuts as edges of bins whose outer ones have no end."""
    return np.array([-np.inf, *cuts, np.inf])


def counted(value: Expr, cuts: Sequence[float]) -> Expr:
    """Write how many of some increasing cuts a value has reached."""
    return _chosen(value, cuts, range(len(cuts) + 1))


def _entry(label: Expr | None, entries: list[float]) -> Expr:
    """Write the entry of a table at a label; equal neighbours take one comparison less."""
    if label is None:
        return nw.lit(entries[0])
    changes = [i for i in range(1, len(entries)) if entries[i] != entries[i - 1]]
    return _chosen(label, changes, [entries[i] for i in [0, *changes]])


def _chosen(value: Expr, cuts: Sequence[float], entries: Sequence[float]) -> Expr:
    """Write one of several entries, by how many cuts a value has reached."""
    if not cuts:
        return nw.lit(entries[0])
    middle = len(cuts) // 2
    above = _chosen(value, cuts[middle + 1 :], entries[middle + 1 :])
    below = _chosen(value, cuts[:middle], entries[: middle + 1])
    return where(value >= cuts[middle], above, below)


def _by_multiplication(value: Expr, edges: tuple[float, ...]) -> Expr | None:
    """Write the bin by one multiplication, where all bins have the same width."""
    n, first, last = len(edges) - 1, edges[0], edges[-1]
    if not np.array_equal(edges, np.linspace(first, last, n + 1)):
        return None
    # A hair less than n bins, so that the last edge is in the last of them.
    scale = n * (1 - 8 * EPSILON) / (last - first)
    return ((value - first) * scale).floor().cast(nw.Int64)
