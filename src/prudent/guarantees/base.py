"""What every guarantee is: a frozen specification of tests that holds no data, stated once as expressions.

Every back end evaluates the same table of expressions, and a tilt is a sum of its terms.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, reduce
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from prudent.arrays import Context, FloatArray, describe_rows, frozen
from prudent.errors import FileFormatError, InputError, OutsideSpaceError
from prudent.files import Document, Record
from prudent.guarantees.evaluated import EvaluatedTests, join, require_few
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
from prudent.problem import DecisionProblem
from prudent.spaces import Space

#: Every family that a file can hold, by its kind.
KINDS: dict[str, type[Guarantee]] = {}


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Guarantee:
    """A set of tests H; the forecaster promises ``E[h(f)(Y - f)] = 0`` for each.

    Every subclass becomes a frozen dataclass.
    Combine with ``&``. A subclass states its tests as expressions, in
    :meth:`stated`, or, if they are Python functions, evaluates them itself.
    Where a specification depends on the sample (quantile bins, observed cells)
    it resolves itself into one that does not.
    """

    name: ClassVar[str] = ""  # in text, followed by ":N" where a number belongs to it
    kind: ClassVar[str] = ""  # in files; that of the text unless said otherwise
    full = False  # True for full calibration: the only world is the forecast itself
    savable = True  # False if the tests are Python functions, which a file cannot hold

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        cls.kind = cls.kind or cls.name.removesuffix(":N")
        if cls.kind:
            KINDS[cls.kind] = cls

    def stated(self, space: Space) -> SymbolicTests:
        """State the tests as expressions of the forecast, in the order of the moments."""
        raise InputError(
            f"{type(self).__name__} cannot be evaluated inside an engine or written in SQL: its tests are Python "
            f"functions. Collect the forecasts and decide in Python, or use a built-in guarantee."
        )

    @property
    def context_columns(self) -> tuple[str, ...]:
        """Names of the columns of context that the tests look at."""
        return tuple(getattr(self, "context", ()))

    def evaluate(self, forecasts: FloatArray, space: Space, context: Context | None = None) -> EvaluatedTests:
        """Evaluate the tests at validated forecasts ``(n, d)``, and at the context of these rows if they look at it."""
        return symbolic_tests(self, space).evaluate(forecasts)

    def tilts(
        self, multipliers: FloatArray, forecasts: FloatArray, space: Space, context: Context | None = None
    ) -> FloatArray:
        """Compute the tilt of each row, ``(n, d)``."""
        return self.evaluate(forecasts, space, context).tilts(multipliers)

    def resolve(
        self, forecasts: FloatArray, weights: FloatArray, space: Space, context: Context | None = None
    ) -> Guarantee:
        """Return the specification with everything fixed that depends on the sample."""
        return self

    def n_moments(self, space: Space) -> int:
        """Count the moments; without stating the tests where a short specification may have very many."""
        return symbolic_tests(self, space).layout.n_moments

    def plug_in_multipliers(self, problem: DecisionProblem) -> FloatArray | None:
        """Return flat multipliers whose tilt is ``-r_BR(v)``, if these tests contain them.

        With such multipliers best responding is minimax optimal (docs/theory.md,
        section 4: decision and utility calibration).
        """
        return None

    def __and__(self, other: object) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        return And((*parts_of(self), *parts_of(other)))

    def to_dict(self) -> Document:
        """Describe the guarantee for a file."""
        kind = self.kind or type(self).__name__  # of functions, which no file holds: then it only describes
        return {"kind": kind, **{item.name: _plain(getattr(self, item.name)) for item in fields(self)}}


@lru_cache(maxsize=64)
def symbolic_tests(guarantee: Guarantee, space: Space) -> SymbolicTests:
    """State the tests of a guarantee; every prediction asks for the same few."""
    return guarantee.stated(space)


def parts_of(guarantee: Guarantee) -> list[Guarantee]:
    """The guarantees that hold together, in order."""
    return [part for each in guarantee.parts for part in parts_of(each)] if isinstance(guarantee, And) else [guarantee]


class And(Guarantee):
    """Several guarantees at once; written ``a & b``."""

    parts: tuple[Guarantee, ...]

    kind = "and"

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts or not all(isinstance(part, Guarantee) for part in parts):
            raise InputError("parts must be a non-empty tuple of guarantees.")
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "full", any(part.full for part in parts))
        object.__setattr__(self, "savable", all(part.savable for part in parts))

    def __repr__(self) -> str:
        return " & ".join(repr(part) for part in self.parts)

    def stated(self, space: Space) -> SymbolicTests:
        return SymbolicTests.joined(part.stated(space) for part in self.parts)

    @property
    def context_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.context_columns))

    def evaluate(self, forecasts: FloatArray, space: Space, context: Context | None = None) -> EvaluatedTests:
        return join([part.evaluate(forecasts, space, context) for part in self.parts])

    def resolve(
        self, forecasts: FloatArray, weights: FloatArray, space: Space, context: Context | None = None
    ) -> Guarantee:
        return And(tuple(part.resolve(forecasts, weights, space, context) for part in self.parts))

    def n_moments(self, space: Space) -> int:
        return sum(part.n_moments(space) for part in self.parts)

    def plug_in_multipliers(self, problem: DecisionProblem) -> FloatArray | None:
        before = 0
        for part in self.parts if self.savable or not self.context_columns else ():
            known = part.plug_in_multipliers(problem)
            if known is not None:
                return np.pad(known, (before, self.n_moments(problem.space) - before - known.size))
            before += part.n_moments(problem.space)
        return None


def guarantee_from_dict(document: Any) -> Guarantee:
    """Rebuild any built-in guarantee from its description; nothing in it is executed."""
    kind = document.get("kind") if isinstance(document, dict) else document
    if not isinstance(document, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise FileFormatError(f"guarantee kind must be one of {sorted(KINDS)}; got {kind!r}.")
    family = KINDS[kind]
    Record(document, f"guarantee {kind!r}", "kind", *(item.name for item in fields(family)))
    given = {name: value for name, value in document.items() if name != "kind"}
    try:
        for name, reader in (("parts", guarantee_from_dict), ("problems", DecisionProblem.from_dict)):
            if name in given:
                given[name] = tuple(map(reader, given[name]))
        if "guarantee" in given:
            given["guarantee"] = guarantee_from_dict(given["guarantee"])
        return family(**given)
    except (TypeError, InputError) as error:
        raise FileFormatError(f"guarantee {kind!r}: {error}") from error


def count_moments(guarantee: Guarantee, space: Space) -> int:
    """Count the moments of a guarantee that was read from a file; refuse more than memory should hold.

    Examples
    --------
    >>> from prudent import Simplex, guarantees
    >>> from prudent.guarantees.base import count_moments
    >>> count_moments(guarantees.SelfOrthogonal() & guarantees.TopLabel(10), Simplex(3))
    39
    """
    count = guarantee.n_moments(space)
    require_few(count, space)
    return count


def name_of(function: Any) -> str:
    """Name a user's function."""
    return str(getattr(function, "__name__", type(function).__name__))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if callable(value):
        return name_of(value)
    return value.to_dict() if isinstance(value, (Guarantee, DecisionProblem)) else value


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
