"""The few things that databases write differently.

Numbers are written so that each engine reads back the same double: a plain
``0.1`` would be a decimal in DuckDB and PostgreSQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from prudent.errors import InputError
from prudent.spaces import Label

__all__ = ["DIALECTS", "ROW", "Dialect", "dialect_named"]

#: What a step calls the row it sees; no column of the caller may have this name.
ROW = "prudent_row"
_HEX_DIGITS = 13


class Dialect(ABC):
    """How one engine writes literals, names, arrays, steps, hashes and errors."""

    name: ClassVar[str]
    double: ClassVar[str]
    text_type: ClassVar[str]
    key_types: ClassVar[tuple[str, ...]]
    type_of: ClassVar[str] = "typeof({})"

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a double, bit for bit."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Write a string literal that nothing in the string can end."""

    @abstractmethod
    def identifier(self, name: str) -> str:
        """Quote a name."""

    @abstractmethod
    def array(self, items: Sequence[str]) -> str:
        """Write an array of expressions."""

    @abstractmethod
    def element(self, array: str, index: str) -> str:
        """Take an element, counted from one."""

    @abstractmethod
    def position(self, array: str, extreme: str) -> str:
        """Find the first place of the ``min`` or ``max`` of an array of numbers, counted from one."""

    @abstractmethod
    def start(self, fields: Mapping[str, str]) -> str:
        """Begin the steps of a :class:`Pipeline` with fields of one row."""

    @abstractmethod
    def extend(self, steps: str, fields: Mapping[str, str]) -> str:
        """Replace the fields of the row by others."""

    @abstractmethod
    def keep(self, steps: str, condition: str) -> str:
        """Drop the row unless a condition holds."""

    @abstractmethod
    def finish(self, steps: str, body: str) -> str:
        """Return the body at the row; NULL if it was dropped."""

    @abstractmethod
    def failure(self, message: str, shown: str) -> str:
        """Stop the query, with a message and the value of a text expression; typed as a truth value."""

    @abstractmethod
    def uniform(self, prefix: bytes, key: str) -> str:
        """Write the keyed uniform number of :mod:`prudent.policies.draws`."""

    def numbers(self, values: Sequence[float]) -> str:
        """Write an array of doubles."""
        return self.array([self.number(value) for value in values])

    def label(self, label: Label) -> str:
        """Write an action label."""
        if isinstance(label, bool):
            return "TRUE" if label else "FALSE"
        if isinstance(label, int):
            if not -(2**63) < label < 2**63:
                raise InputError(f"actions must fit into 64-bit integers to be written in SQL; got {label}.")
            return f"({label})" if label < 0 else str(label)
        return self.number(label) if isinstance(label, float) else self.text(label)

    def as_double(self, expression: str) -> str:
        """Convert to a double."""
        return f"CAST({expression} AS {self.double})"

    def as_text(self, expression: str) -> str:
        """Convert to text."""
        return f"CAST({expression} AS {self.text_type})"

    def usable_key(self, key: str) -> str:
        """Say whether a key is there and its type has the same text as in Python."""
        types = ", ".join(f"'{name}'" for name in self.key_types)
        return f"{key} IS NOT NULL AND {self.type_of.format(key)} IN ({types})"


class _DuckDB(Dialect):
    name = "duckdb"
    double, text_type = "DOUBLE", "VARCHAR"
    key_types = (
        *("VARCHAR", "UUID", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    )

    def number(self, value: float) -> str:
        digits = repr(float(value))
        return _signed(digits if "e" in digits else f"{digits}e0")

    def text(self, value: str) -> str:
        return _quoted(value, "'")

    def identifier(self, name: str) -> str:
        return _quoted(name, '"')

    def array(self, items: Sequence[str]) -> str:
        return f"[{', '.join(items)}]"

    def element(self, array: str, index: str) -> str:
        return f"list_extract({array}, {index})"

    def position(self, array: str, extreme: str) -> str:
        return f"list_position({array}, list_{extreme}({array}))"

    def start(self, fields: Mapping[str, str]) -> str:
        return f"[{self._row(fields)}]"

    def extend(self, steps: str, fields: Mapping[str, str]) -> str:
        return f"list_transform({steps}, lambda {ROW}: {self._row(fields)})"

    def keep(self, steps: str, condition: str) -> str:
        return f"list_filter({steps}, lambda {ROW}: {condition})"

    def finish(self, steps: str, body: str) -> str:
        return f"list_transform({steps}, lambda {ROW}: {body})[1]"

    def failure(self, message: str, shown: str) -> str:
        return f"error({self.text(message)} || COALESCE({shown}, 'NULL'))"

    @staticmethod
    def _row(fields: Mapping[str, str]) -> str:
        return "{" + ", ".join(f"'{name}': {expression}" for name, expression in fields.items()) + "}"

    def uniform(self, prefix: bytes, key: str) -> str:
        digits = f"left(sha256(from_hex('{prefix.hex()}') || encode({self.as_text(key)})), {_HEX_DIGITS})"
        return f"CAST(CAST('0x' || {digits} AS BIGINT) AS DOUBLE) / {self.number(16.0**_HEX_DIGITS)}"


class _PostgreSQL(Dialect):
    name = "postgres"
    double, text_type = "double precision", "text"
    key_types = ("text", "character varying", "smallint", "integer", "bigint", "uuid")
    type_of = "CAST(pg_typeof({}) AS text)"

    def number(self, value: float) -> str:
        return _signed(f"{float(value)!r}::float8")

    def text(self, value: str) -> str:
        if "\0" in value:
            raise InputError(f"PostgreSQL text cannot hold the NUL character of {value!r}; rename the action.")
        if "\\" in value:  # means something else under standard_conforming_strings = off
            return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')"
        return _quoted(value, "'")

    def identifier(self, name: str) -> str:
        if len(name.encode()) > 63:
            raise InputError(f"PostgreSQL cuts names after 63 bytes; {name!r} is longer. Use a shorter alias.")
        return _quoted(name, '"')

    def array(self, items: Sequence[str]) -> str:
        return f"ARRAY[{', '.join(items)}]"

    def numbers(self, values: Sequence[float]) -> str:
        return f"'{{{','.join(repr(float(value)) for value in values)}}}'::float8[]"

    def element(self, array: str, index: str) -> str:
        return f"({array})[{index}]"

    def position(self, array: str, extreme: str) -> str:
        return f"array_position({array}, (SELECT {extreme}(item) FROM unnest({array}) AS item))"

    def start(self, fields: Mapping[str, str]) -> str:
        return f"SELECT {self._fields(fields)}"

    def extend(self, steps: str, fields: Mapping[str, str]) -> str:
        # OFFSET 0 keeps the planner from copying expressions into every place that uses their names.
        return f"SELECT {self._fields(fields)} FROM ({steps} OFFSET 0) AS {ROW}"

    def keep(self, steps: str, condition: str) -> str:
        return f"SELECT * FROM ({steps} OFFSET 0) AS {ROW} WHERE {condition}"

    def finish(self, steps: str, body: str) -> str:
        return f"(SELECT {body} FROM ({steps} OFFSET 0) AS {ROW})"

    def failure(self, message: str, shown: str) -> str:
        # There is no expression that raises; a conversion that fails shows the text it was given.
        return f"CAST({self.text(message)} || COALESCE({shown}, 'NULL') AS integer) = 0"

    @staticmethod
    def _fields(fields: Mapping[str, str]) -> str:
        return ", ".join(f"{expression} AS {name}" for name, expression in fields.items())

    def uniform(self, prefix: bytes, key: str) -> str:
        digest = f"sha256(decode('{prefix.hex()}', 'hex') || convert_to({self.as_text(key)}, 'UTF8'))"
        digits = f"lpad(left(encode({digest}, 'hex'), {_HEX_DIGITS}), 16, '0')"
        return f"CAST(CAST(CAST('x' || {digits} AS bit(64)) AS bigint) AS float8) / {self.number(16.0**_HEX_DIGITS)}"


class _Spark(Dialect):
    name = "spark"
    double, text_type = "DOUBLE", "STRING"
    key_types = ("string", "tinyint", "smallint", "int", "bigint")

    def number(self, value: float) -> str:
        return _signed(f"{float(value)!r}D")

    def text(self, value: str) -> str:
        # Quotes and backslashes are read differently from version to version and setting to setting.
        if value.isascii() and value.isprintable() and not set(value) & set("'\"\\"):
            return f"'{value}'"
        return f"decode(X'{value.encode().hex()}', 'UTF-8')"

    def identifier(self, name: str) -> str:
        return _quoted(name, "`")

    def array(self, items: Sequence[str]) -> str:
        return f"array({', '.join(items)})"

    def element(self, array: str, index: str) -> str:
        return f"element_at({array}, CAST({index} AS INT))"

    def position(self, array: str, extreme: str) -> str:
        return f"array_position({array}, array_{extreme}({array}))"

    def start(self, fields: Mapping[str, str]) -> str:
        return f"array({self._row(fields)})"

    def extend(self, steps: str, fields: Mapping[str, str]) -> str:
        return f"transform({steps}, {ROW} -> {self._row(fields)})"

    def keep(self, steps: str, condition: str) -> str:
        return f"filter({steps}, {ROW} -> {condition})"

    def finish(self, steps: str, body: str) -> str:
        return f"get(transform({steps}, {ROW} -> {body}), 0)"

    def failure(self, message: str, shown: str) -> str:
        return f"CAST(raise_error(concat({self.text(message)}, COALESCE({shown}, 'NULL'))) AS BOOLEAN)"

    @staticmethod
    def _row(fields: Mapping[str, str]) -> str:
        return "named_struct(" + ", ".join(f"'{name}', {expression}" for name, expression in fields.items()) + ")"

    def uniform(self, prefix: bytes, key: str) -> str:
        digest = f"sha2(concat(X'{prefix.hex()}', encode({self.as_text(key)}, 'UTF-8')), 256)"
        return f"CAST(conv(substr({digest}, 1, {_HEX_DIGITS}), 16, 10) AS DOUBLE) / {self.number(16.0**_HEX_DIGITS)}"


DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (_DuckDB(), _PostgreSQL(), _Spark())}


def dialect_named(name: str) -> Dialect:
    """Find a dialect."""
    if name not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}; got {name!r}.")
    return DIALECTS[name]


def _signed(literal: str) -> str:
    """Bracket a negative number, so that no two minus signs ever start a comment."""
    return f"({literal})" if literal.startswith("-") else literal


def _quoted(text: str, quote: str) -> str:
    if "\0" in text:
        raise InputError(f"names and labels with a NUL character cannot be written in SQL; got {text!r}.")
    return quote + text.replace(quote, quote * 2) + quote
