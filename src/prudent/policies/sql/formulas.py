"""Expressions of :mod:`prudent.guarantees.expressions` in SQL, and the tilt ``s(v)`` that is made of them.

One SQL expression has several steps: names for values, and demands that rows must meet. Steps follow each other and
are not nested in each other: engines evaluate nested steps in time exponential in their number.

The few things that databases write differently are templates. Numbers are written so that each engine reads back the
same double: a plain ``0.1`` would be a decimal in DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.guarantees.base import Term
from prudent.guarantees.expressions import Arithmetic, BackEnd, Chebyshev, Group
from prudent.guarantees.expressions import Label as RowLabel
from prudent.spaces import Label


@dataclass
class Pipeline:
    """Named values of one row, each step using the names of those before it.

    Attributes
    ----------
    source : dict
        The only expressions that see the caller's columns; nothing later can be mistaken for one of them.
    strict : bool
        Whether a demand that is not met stops the query or gives NULL.
    """

    dialect: Dialect
    source: dict[str, str]
    strict: bool
    steps: list[dict[str, str] | str] = field(default_factory=list)
    count: int = 0

    def bind(self, prefix: str, expressions: list[str]) -> list[str]:
        """Name expressions, and return what stands for them from now on."""
        names = [f"{prefix}{self.count + number}" for number in range(1, len(expressions) + 1)]
        self.count += len(expressions)
        self.steps.append(dict(zip(names, expressions, strict=True)))
        return [f"{ROW}.{name}" for name in names]

    def demand(self, condition: str, message: str, shown: str) -> None:
        """Go on only with rows that meet a condition; NULL does not."""
        otherwise = self.dialect.failure(message, shown) if self.strict else "FALSE"
        self.steps.append(f"CASE WHEN {condition} THEN TRUE ELSE {otherwise} END")

    def close(self, body: str) -> str:
        """Write all steps that a body depends on, and the body."""
        texts = [step if isinstance(step, str) else " ".join(step.values()) for step in self.steps]
        dialect, known, needed = self.dialect, list(self.source), _names(" ".join([*texts, body]))
        text = dialect.array([dialect.row({name: self.source[name] for name in known if name in needed})])
        for place, step in enumerate(self.steps, start=1):
            if isinstance(step, str):
                text = dialect.keep(text, step)
                continue
            needed = _names(" ".join([*texts[place:], body]))
            if needed.isdisjoint(step):
                continue
            fields = {**{name: f"{ROW}.{name}" for name in known}, **step}
            text = dialect.transform(text, dialect.row({name: fields[name] for name in fields if name in needed}))
            known += step
        return dialect.first(dialect.transform(text, body))


class Formulas(BackEnd):
    """SQL: expressions of the forecast ``v``; what is used more than once gets a name. Labels count from one."""

    def __init__(self, names: Pipeline, v: list[str], context: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__()
        self.names, self.v, self.context = names, v, context

    def constant(self, value: float) -> str:
        """A literal."""
        return self.names.dialect.number(value)

    def coordinate(self, index: int) -> str:
        """A coordinate of the forecast."""
        return self.v[index]

    def arithmetic(self, expression: Arithmetic) -> str:
        """A sum, difference, product or quotient, in brackets, so that SQL computes it in the same order."""
        return f"({self(expression.left)} {expression.operator} {self(expression.right)})"

    def logarithm(self, value: str) -> str:
        """A natural logarithm."""
        return f"ln({value})"

    def chebyshev(self, expression: Chebyshev) -> str:
        """A Chebyshev polynomial, with a name, as the variable it is a polynomial of."""
        if isinstance(expression.of, Arithmetic):
            self.known[expression.of] = self._named("x", self(expression.of))
        return self._named("t", self(expression.expansion))

    def largest(self, values: list[str]) -> str:
        """The largest of several values."""
        return self._named("largest", f"GREATEST({', '.join(values)})")

    def bin(self, value: str, edges: tuple[float, ...]) -> str:
        """The number of a bin, with a name."""
        below = [f"{value} < {self.names.dialect.number(edge)}" for edge in edges[1:-1]]
        return self._named("bin", case(below, [str(number) for number in range(1, len(edges))]))

    def first_largest(self, scores: list[str]) -> str:
        """The place of the first largest score."""
        return self.first_extreme(scores, "max")

    def first_extreme(self, scores: list[str], extreme: str) -> str:
        """Name the place of the first smallest or largest score."""
        dialect = self.names.dialect
        return self._named("place", dialect.position(self._named("scores", dialect.array(scores)), extreme))

    def group(self, label: Group) -> str:
        """The number of the row's group, with a name; NULL for no known one, unless there is a place for them."""
        number, written = self.names.dialect.number, self.names.dialect.label
        branches = []
        for place, conditions in enumerate(label.conditions(), start=1):
            met = []
            for name, value in conditions:
                column = self.context[name]
                if isinstance(value, tuple):
                    column = self.names.dialect.as_double(column)
                    met += [f"{column} >= {number(value[0])}", f"{column} < {number(value[1])}"]
                else:
                    met.append(f"{column} = {written(value)}")
            branches.append(f"WHEN {' AND '.join(met)} THEN {place}")
        others = f" ELSE {label.n_labels}" if label.rest else ""
        return self._named("group", f"CASE {' '.join(branches)}{others} END")

    def pair(self, first: str, second: str, count: int) -> str:
        """Two labels as one."""
        return self._named("pair", f"({first} - 1) * {count} + {second}")

    def telling_apart(self, label: RowLabel | None) -> list[str]:
        """Write conditions, each implied by the one before: the label of a row is the first whose condition holds."""
        return [] if label is None else self.up_to(self(label), label.n_labels)

    def up_to(self, place: str, count: int) -> list[str]:
        """Write conditions that tell ``count`` places apart."""
        return [f"{place} <= {number}" for number in range(1, count)]

    def tilt(self, terms: list[Term], dimension: int) -> list[str]:
        """Write a tilt, coordinate by coordinate, with the sums of :meth:`EvaluatedTests.tilts`."""
        number = self.names.dialect.number

        def written(term: Term, column: FloatArray) -> str:
            if term.factor is not None and term.label is None:
                return str(self(term.factor * column[0]))
            chosen = case(self.telling_apart(term.label), list(map(number, column)))
            return chosen if term.factor is None else f"({chosen}) * {self(term.factor)}"

        sums = ([written(term, term.table[:, j]) for term in terms if term.table[:, j].any()] for j in range(dimension))
        return [" + ".join(parts) or number(0.0) for parts in sums]

    def _named(self, prefix: str, text: str) -> str:
        (name,) = self.names.bind(prefix, [text])
        return name


def case(conditions: list[str], outcomes: list[str]) -> str:
    """Write the first outcome whose condition holds, the last if none does; each condition implies the next one."""
    kept = [place for place in range(len(conditions)) if outcomes[place] != outcomes[place + 1]]
    if not kept:
        return outcomes[-1]
    branches = " ".join(f"WHEN {conditions[place]} THEN {outcomes[place]}" for place in kept)
    return f"CASE {branches} ELSE {outcomes[-1]} END"


def _names(text: str) -> set[str]:
    """Find the names that an expression uses; literals are cut out first, so that no label looks like a name."""
    return set(re.findall(rf"\b{ROW}\.([a-z]+[0-9]*)\b", re.sub(r"'(?:[^']|'')*'", "", text)))


#: What a step calls the row it sees; no column of the caller may have this name.
ROW = "prudent_row"
_HEX_DIGITS = 13
_OfOne = Callable[[str], str]
_OfTwo = Callable[[str, str], str]


@dataclass(frozen=True)
class Dialect:
    """How one engine writes literals, names, arrays, steps, hashes and errors.

    Templates have one or two places ``{}``. The steps of a pipeline start with fields of one row; they replace the
    fields by others, keep the row only if a condition holds, and finish with a body, which is NULL if it was dropped.
    """

    text_type: str
    key_types: tuple[str, ...]
    number_template: str
    text: _OfOne
    quote: str  # of identifiers
    array_template: str
    element: _OfTwo  # of an array at an index, counted from one
    position: _OfTwo  # in an array, of the first "min" or "max", counted from one
    field_template: str  # expression and name
    row_template: str  # fields
    transform: _OfTwo  # steps and what becomes of the row
    keep: _OfTwo  # steps and condition
    first: _OfOne  # of an array, NULL if it is empty
    failure_template: str  # message and shown value, typed as a truth value
    uniform_template: str  # prefix in hexadecimal and text of the key: see prudent.policies.draws
    columns_template: str  # makes columns of the fields of a row

    def number(self, value: float) -> str:
        """Write a double, bit for bit; a negative one in brackets, so that no two minus signs start a comment."""
        digits = repr(float(value))
        literal = digits if "e" in digits and self.number_template == "{}e0" else self.number_template.format(digits)
        return f"({literal})" if literal.startswith("-") else literal

    def array(self, items: Sequence[str]) -> str:
        """Write an array of expressions."""
        return self.array_template.format(", ".join(items))

    def identifier(self, name: str) -> str:
        """Write the name of a column."""
        return _quoted(name, self.quote)

    def failure(self, message: str, shown: str) -> str:
        """Stop the query, with a message and the value of a text expression."""
        return self.failure_template.format(self.text(message), f"COALESCE({shown}, 'NULL')")

    def uniform(self, prefix: bytes, key: str) -> str:
        """Write the keyed uniform number of :mod:`prudent.policies.draws`."""
        return f"{self.uniform_template.format(prefix.hex(), self.as_text(key))} / {self.number(16.0**_HEX_DIGITS)}"

    def label(self, label: Label) -> str:
        """Write an action label."""
        if isinstance(label, bool):
            return "TRUE" if label else "FALSE"
        if isinstance(label, int):
            return f"({label})"
        return self.number(label) if isinstance(label, float) else self.text(label)

    def as_double(self, expression: str) -> str:
        """Convert to a double."""
        return f"CAST({expression} AS DOUBLE)"

    def as_text(self, expression: str) -> str:
        """Convert to text."""
        return f"CAST({expression} AS {self.text_type})"

    def usable_key(self, key: str) -> str:
        """Say whether a key is there and its type has the same text as in Python."""
        types = ", ".join(f"'{name}'" for name in self.key_types)
        return f"{key} IS NOT NULL AND typeof({key}) IN ({types})"

    def row(self, fields: Mapping[str, str]) -> str:
        """Write a row with named fields."""
        written = [self.field_template.format(expression, name) for name, expression in fields.items()]
        return self.row_template.format(", ".join(written))


def _quoted(text: str, quote: str = "'") -> str:
    if "\0" in text:
        raise InputError(f"names and labels with a NUL character cannot be written in SQL; got {text!r}.")
    return quote + text.replace(quote, quote * 2) + quote


def _spark_text(value: str) -> str:
    # Quotes and backslashes are read differently from version to version and setting to setting.
    if value.isascii() and value.isprintable() and not set(value) & set("'\"\\"):
        return f"'{value}'"
    return f"decode(X'{value.encode().hex()}', 'UTF-8')"


_DUCKDB = Dialect(
    text_type="VARCHAR",
    key_types=(
        *("VARCHAR", "UUID", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    ),
    number_template="{}e0",
    text=_quoted,
    quote='"',
    array_template="[{}]",
    element="list_extract({}, {})".format,
    position="list_position({0}, list_{1}({0}))".format,
    field_template="'{1}': {0}",
    row_template="{{{}}}",
    transform=f"list_transform({{}}, lambda {ROW}: {{}})".format,
    keep=f"list_filter({{}}, lambda {ROW}: {{}})".format,
    first="{}[1]".format,
    columns_template="unnest({})",
    failure_template="error({} || {})",
    uniform_template=(
        f"CAST(CAST('0x' || left(sha256(from_hex('{{}}') || encode({{}})), {_HEX_DIGITS}) AS BIGINT) AS DOUBLE)"
    ),
)
_SPARK = Dialect(
    text_type="STRING",
    key_types=("string", "tinyint", "smallint", "int", "bigint"),
    number_template="{}D",
    text=_spark_text,
    quote="`",
    array_template="array({})",
    element="element_at({}, CAST({} AS INT))".format,
    position="array_position({0}, array_{1}({0}))".format,
    field_template="'{1}', {0}",
    row_template="named_struct({})",
    transform=f"transform({{}}, {ROW} -> {{}})".format,
    keep=f"filter({{}}, {ROW} -> {{}})".format,
    first="get({}, 0)".format,
    failure_template="CAST(raise_error(concat({}, {})) AS BOOLEAN)",
    columns_template="inline(array({}))",
    uniform_template=(
        f"CAST(conv(substr(sha2(concat(X'{{}}', encode({{}}, 'UTF-8')), 256), 1, {_HEX_DIGITS}), 16, 10) AS DOUBLE)"
    ),
)
DIALECTS = {"duckdb": _DUCKDB, "spark": _SPARK}
