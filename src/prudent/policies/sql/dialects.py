"""The few things that databases write differently, as templates.

Numbers are written so that each engine reads back the same double: a plain ``0.1`` would be a decimal in DuckDB.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prudent.errors import InputError
from prudent.spaces import Label

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
