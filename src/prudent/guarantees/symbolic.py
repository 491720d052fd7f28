"""Tests stated as expressions: what a guarantee writes down once, and every back end evaluates."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, describe_rows, frozen
from prudent.errors import InputError, OutsideSpaceError
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import ONE, Arrays, BackEnd, Expression, Indicator, Label, Lookup, Pair, coordinates
from prudent.spaces import Space

_MOST_LABELS = 1 << 16
_ROWS = 8192  # at a time: intermediate results then stay in the fast cache, and below the allocator's mmap threshold


@dataclass(frozen=True)
class Condition:
    """What forecasts must meet for tests to be defined: margins that are positive, or, not ``strict``, not negative."""

    margins: tuple[Expression, ...]
    strict: bool
    rule: str  # "forecasts must lie ..."
    advice: str

    def holds(self, at: BackEnd) -> Any:
        """Mark rows that meet the condition, in NumPy or an engine."""
        margins = [at(margin) for margin in self.margins]
        return reduce(operator.and_, [margin > 0.0 if self.strict else margin >= 0.0 for margin in margins])

    def require(self, at: Arrays) -> None:
        """Refuse rows that do not meet the condition."""
        outside = np.flatnonzero(~self.holds(at))
        if not outside.size:
            return
        first = at.forecasts[outside[0]].tolist()
        message = (
            f"{self.rule}; {describe_rows(outside)} do not (first: {first[0] if len(first) == 1 else first}). "
            f"{self.advice}"
        )
        # Where the boundary is excluded, rows on it are outside the space; bins may end inside it.
        raise OutsideSpaceError(message, outside.tolist()) if self.strict else InputError(message)


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

    Of the columns that look up one label at most one is not zero in each coordinate of the tilt, so that adding them
    up is one lookup.

    Attributes
    ----------
    columns : sequence of Expression
        What :attr:`EvaluatedTests.table` holds, column by column.
    layout : EvaluatedTests
        Names, units and shape of the tests, without rows.
    conditions : tuple of Condition
    """

    columns: Sequence[Expression]
    layout: EvaluatedTests
    conditions: tuple[Condition, ...] = ()

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Every label that columns look up, in order."""
        found = [column.label for column in self.columns if isinstance(column, (Indicator, Lookup))]
        return tuple(dict.fromkeys(found))

    @cached_property
    def numbers(self) -> tuple[Expression, ...]:
        """Every other column that is no constant."""
        plain = [column for column in self.columns if column != ONE and not isinstance(column, (Indicator, Lookup))]
        return tuple(dict.fromkeys(plain))

    def evaluate(self, forecasts: FloatArray, known: Mapping[Any, Any] | None = None) -> EvaluatedTests:
        """Evaluate the tests at validated forecasts ``(n, d)``, some of whose labels and numbers may be known."""
        n = len(forecasts)
        if list(self.columns) == coordinates(self.layout.dimension) and known is None:
            return self.layout.with_rows(forecasts)
        for condition in self.conditions if known is None else ():
            condition.require(Arrays(forecasts))
        table = (np.zeros if self._indicators else np.empty)((len(self.columns), n))
        labels = np.empty(n, dtype=np.int64) if self._together is not None else None
        step = _ROWS if self.numbers and known is None else max(n, 1)
        for rows in (slice(first, first + step) for first in range(0, n, step)):
            at = Arrays(forecasts[rows], known)
            for place, column in enumerate(self.columns):
                if isinstance(column, Lookup):
                    table[place, rows] = np.array(column.entries).take(at(column.label))
                elif not isinstance(column, Indicator):
                    table[place, rows] = at(column)
            for label, places in self._indicators.items():
                found = at(label)
                table[places.take(found), np.arange(rows.start, rows.start + len(found))] = 1.0
            if labels is not None:
                labels[rows] = at(self._together)
        return self.layout.with_rows(table.T, labels)

    def tilt(self, multipliers: FloatArray) -> list[Term]:
        """Terms of the tilt ``sum_j lambda_j B_j(v)``, in the order in which :meth:`EvaluatedTests.tilts` adds them."""
        factors = self.layout.factors(multipliers)
        terms: list[Term] = []
        tables: dict[Label, FloatArray] = {}
        for column, factor in zip(self.columns, factors, strict=True):
            if not factor.any():
                continue
            if not isinstance(column, (Indicator, Lookup)):
                terms.append(Term(factor[None], factor=None if column == ONE else column))
                continue
            if column.label not in tables:
                tables[column.label] = np.zeros((column.label.n_labels, len(factor)))
                terms.append(Term(tables[column.label], column.label))
            if isinstance(column, Indicator):
                tables[column.label][column.index] += factor
            else:
                tables[column.label] += np.outer(column.entries, factor)
        return [term for term in terms if term.table.any()]

    @cached_property
    def _together(self) -> Any:
        """All labels as one, where they, and not too many of them, tell rows with other tests apart."""
        labels = [] if self.numbers else self.labels
        few = np.prod([float(label.n_labels) for label in labels]) <= _MOST_LABELS
        return reduce(Pair, labels) if labels and few else None

    @cached_property
    def _indicators(self) -> dict[Label, Any]:
        """For every label the columns that indicate its values."""
        found: dict[Label, Any] = {}
        for place, column in enumerate(self.columns):
            if isinstance(column, Indicator):
                found.setdefault(column.label, np.zeros(column.label.n_labels, dtype=np.int64))[column.index] = place
        return found


def tilt_terms(tests: Iterable[SymbolicTests], multipliers: FloatArray) -> list[Term]:
    """Terms of the tilt of several tests side by side."""
    flat, terms = multipliers.reshape(-1), []
    for part in tests:
        terms += part.tilt(flat[: part.layout.n_moments])
        flat = flat[part.layout.n_moments :]
    return terms


def forecast_names(space: Space) -> list[str]:
    """Names of the forecast's coordinates in names of tests."""
    return ["v"] if space.dimension == 1 else [f"v{name[1:]}" for name in space.coordinate_names]
