"""Tests stated as expressions: what a guarantee writes down once, and every back end evaluates."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, describe_rows, frozen
from prudent.errors import OutsideSpaceError
from prudent.guarantees.evaluated import EvaluatedTests, join
from prudent.guarantees.expressions import (
    ONE,
    Arrays,
    BackEnd,
    Expression,
    Group,
    Indicator,
    Label,
    Lookup,
    Pair,
    coordinates,
)
from prudent.spaces import Space

#: What forecasts must meet where tests take logarithms.
STRICTLY_INSIDE = "the guarantee takes logarithms, so forecasts must lie strictly inside the space"

_MOST_LABELS = 1 << 16
_ROWS = 8192  # at a time: intermediate results then stay in the fast cache, and below the allocator's mmap threshold


@frozen
class Term:
    """A summand ``table[label] * factor`` of a tilt; without a label the table has one row."""

    table: FloatArray  # (labels, d)
    label: Label | None = None
    factor: Expression | None = None

    @property
    def constant(self) -> bool:
        """True if all forecasts share it."""
        return self.label is None and self.factor is None


@frozen
class SymbolicTests:
    """Columns of a table of tests as expressions.

    Attributes
    ----------
    columns : sequence of Expression
        What :attr:`EvaluatedTests.table` holds, column by column.
    layout : EvaluatedTests
        Names, units and shape of the tests, without rows.
    positive : tuple of Expression
        What logarithms are taken of: where one of these is not positive, tests are not defined.
    """

    columns: Sequence[Expression]
    layout: EvaluatedTests
    positive: tuple[Expression, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[SymbolicTests]) -> SymbolicTests:
        """Put tests side by side."""
        parts = list(parts)
        columns = [column for part in parts for column in part.columns]
        positive = tuple(margin for part in parts for margin in part.positive)
        return cls(columns, join([part.layout for part in parts]), positive)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Every label that columns look up, in order."""
        found = [column.label for column in self.columns if isinstance(column, (Indicator, Lookup))]
        return tuple(dict.fromkeys(found))

    @cached_property
    def numbers(self) -> tuple[Expression, ...]:
        """Everything else that columns are made of and that is no constant."""
        plain = [column_number(column) for column in self.columns]
        return tuple(dict.fromkeys(number for number in plain if number != ONE))

    @property
    def groups(self) -> tuple[Group, ...]:
        """Every label of context that columns look up."""
        found, labels = list[Group](), list[Label](self.labels)
        while labels:
            match labels.pop():
                case Group() as group:
                    found.append(group)
                case Pair(first, second):
                    labels += [first, second]
        return tuple(dict.fromkeys(found))

    def defined(self, at: BackEnd) -> Any:
        """Mark rows that have tests, in NumPy or an engine; True if all have."""
        return reduce(operator.and_, [at(margin) > 0.0 for margin in self.positive], True)

    def evaluate(self, forecasts: FloatArray, known: Mapping[Any, Any] | None = None) -> EvaluatedTests:
        """Evaluate the tests at validated forecasts ``(n, d)``, some of whose labels and numbers may be known."""
        n = len(forecasts)
        if list(self.columns) == coordinates(self.layout.dimension) and known is None:
            return self.layout.with_rows(forecasts)
        if self.positive and known is None:
            self._require_defined(forecasts)
        table = np.empty((len(self.columns), n))
        labels = np.empty(n, dtype=np.int64) if self._together is not None else None
        step = _ROWS if self.numbers and known is None else max(n, 1)
        for rows in (slice(first, first + step) for first in range(0, n, step)):
            at = Arrays(forecasts[rows], known)
            for place, column in enumerate(self.columns):
                table[place, rows] = at(column)
            if labels is not None:
                labels[rows] = at(self._together)
        return self.layout.with_rows(table.T, labels)

    def _require_defined(self, forecasts: FloatArray) -> None:
        outside = np.flatnonzero(~self.defined(Arrays(forecasts)))
        if outside.size:
            raise OutsideSpaceError(
                f"{STRICTLY_INSIDE}; {describe_rows(outside)} do not (first: {forecasts[outside[0]].tolist()}). "
                f"A softmax never gives exact zeros: keep its full precision, or use another guarantee.",
                outside.tolist(),
            )

    def tilt(self, multipliers: FloatArray) -> list[Term]:
        """Terms of the tilt ``sum_j lambda_j B_j(v)``, in the order in which :meth:`EvaluatedTests.tilts` adds them.

        Neighbouring columns that look up one label, of which no row has two, are one term.
        """
        terms: list[Term] = []
        for column, factor in zip(self.columns, self.layout.factors(multipliers), strict=True):
            if not factor.any():
                continue
            index: int | slice = slice(None)
            number = column_number(column)
            if isinstance(column, Indicator):
                index, entries = column.index, factor
            elif isinstance(column, Lookup):
                entries = np.outer(column.entries, factor)
            else:
                terms.append(Term(factor[None], factor=None if number == ONE else number))
                continue
            own = column.label, None if number == ONE else number
            last = terms[-1] if terms and (terms[-1].label, terms[-1].factor) == own else None
            if last is None or ((last.table[index] != 0) & (entries != 0)).any():
                terms.append(Term(np.zeros((column.label.n_labels, len(factor))), *own))
            terms[-1].table[index] += entries
        return [term for term in terms if term.table.any()]

    @cached_property
    def _together(self) -> Any:
        """All labels as one, where they, and not too many of them, tell rows with other tests apart."""
        labels = [] if self.numbers else self.labels
        few = np.prod([float(label.n_labels) for label in labels]) <= _MOST_LABELS
        return reduce(Pair, labels) if labels and few else None


def column_number(column: Expression) -> Expression:
    """The number that a column of tests is where its label lets it be; one for a column that is constant there."""
    if isinstance(column, Indicator):
        return column.of
    return ONE if isinstance(column, Lookup) else column


def forecast_names(space: Space) -> list[str]:
    """Names of the forecast's coordinates in names of tests."""
    return ["v"] if space.dimension == 1 else [f"v{name[1:]}" for name in space.coordinate_names]
