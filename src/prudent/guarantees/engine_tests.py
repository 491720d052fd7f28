"""Tests as narwhals expressions, so that an engine evaluates them where the forecasts live.

Every row has a few whole-numbered labels (a bin, a best response) and a few numbers (the forecast itself, its
polynomials or logarithms); given the labels, tests are affine in the numbers. Means of the numbers over rows of the
same labels therefore give the means of the tests, exactly, and a table needs no column per test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property, reduce
from operator import add, and_
from typing import Any

import numpy as np

from prudent.arrays import Expr, Exprs, FloatArray, IntArray, frozen, nw, where
from prudent.guarantees.base import STRICTLY_INSIDE, Guarantee, SymbolicTests, column_number, symbolic_tests
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import BackEnd, Bin, Coordinate, Expression, Group
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
        """The number of a bin: by arithmetic where all have the same width, else by the comparisons of a bisection."""
        n, first, last = len(edges) - 1, edges[0], edges[-1]
        step, reach = (last - first) / n, (abs(first) + abs(last)) / (last - first)
        if n * n * (1 + reach) > 1e10 or not np.array_equal(edges[1:-1], np.arange(1, n) * step + first):
            return _chosen(value, edges[1:-1], range(n))
        # This bin or the next, and n only above the last edge: far from where rounding matters. The edge decides.
        scale = (n - 0.5 - 0.25 / n) / (last - first)
        upper = ((value - first if first else value) * scale + 0.5).floor()
        edge = upper * step + first if first else upper * step
        return (upper - (value < edge).cast(nw.Float64)).cast(nw.Int64)

    def group(self, label: Group) -> Expr:
        """The number of the row's group; NULL for no known one."""
        found = nw.lit(None)
        for place, conditions in reversed([*enumerate(label.conditions())]):
            met: Exprs = []
            for name, value in conditions:
                column, between = nw.col(context_column(name)), isinstance(value, tuple)
                met += [column >= value[0], column < value[1]] if between else [column == nw.lit(value)]
            found = where(reduce(and_, met), place, found)
        return found.cast(nw.Int64)

    def first_largest(self, scores: Exprs) -> Expr:
        """The number of the first largest score."""
        best, highest = nw.lit(0), scores[0]
        for number, score in enumerate(scores[1:], start=1):
            best, highest = where(score > highest, number, best), nw.max_horizontal(highest, score)
        return best


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
    """

    expression: Expr
    n_labels: int
    cuts: tuple[float, ...] | None = None


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
            cuts = label.edges[1:-1] if self.stated.layout.dimension == 1 and isinstance(label, Bin) else None
            found.append(EngineLabel(self._at(label), label.n_labels, cuts))
        return found

    @property
    def numbers(self) -> dict[str, Expr]:
        """The numbers that tests are made of, by name."""
        return {name: self._at(number) for name, number in self._numbers.items()}

    @property
    def factors(self) -> list[str | None]:
        """The number that every column of the table is, by name; None for one that is constant where labels are."""
        names = {number: name for name, number in self._numbers.items()}
        return [names.get(column_number(column)) for column in self.stated.columns]

    @property
    def conditions(self) -> list[tuple[Expr, str]]:
        """What rows must meet to have tests, and the rule in words."""
        met = [(self.stated.defined(self._at), STRICTLY_INSIDE)] if self.stated.positive else []
        for group in self.stated.groups:
            columns = ", ".join(repr(name) for name, _ in group.columns)
            met.append((~self._at(group).is_null(), f"context {columns} must be there, of a group that was fitted on"))
        return met

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


def context_column(name: str) -> str:
    """Name of a column of context among those of placed rows, where no other begins like it."""
    return f"c_{name}"


def coordinate(j: int) -> str:
    """Name of a forecast's coordinate, as a column and as a number."""
    return f"v{j}"


def linear(numbers: Sequence[Expr], factors: Sequence[Any], start: float | None = None) -> Expr:
    """Write the sum of numbers times factors, those that are zero left out; ``start`` is added to it."""
    terms = [] if start is None else [nw.lit(start)]
    pairs = zip(numbers, factors, strict=True)
    terms += [number * factor for number, factor in pairs if not (isinstance(factor, float) and factor == 0.0)]
    return reduce(add, terms) if terms else nw.lit(0.0)


def joined(digits: Sequence[Expr], counts: Sequence[int]) -> Expr:
    """Write several whole numbers, each below a count, as one; :func:`split` takes them apart."""
    key = digits[0] if digits else nw.lit(0)
    for digit, count in zip(digits[1:], counts[1:], strict=True):
        key = key * count + digit
    return key


def split(keys: IntArray, counts: Sequence[int]) -> IntArray:
    """Return the whole numbers ``(n, counts)`` that :func:`joined` made keys of."""
    return np.stack(np.unravel_index(keys, [*counts, 1]), axis=1)[:, :-1]


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
