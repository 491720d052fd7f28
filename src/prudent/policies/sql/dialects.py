"""The few things that databases write differently, as templates.

Numbers are written so that each engine reads back the same double: a plain
``0.1`` would be a decimal in DuckDB and PostgreSQL.
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

    name: str
    double: str
    text_type: str
    key_types: tuple[str, ...]
    number_template: str
    text: _OfOne
    identifier: _OfOne
    array_template: str
    element: _OfTwo  # of an array at an index, counted from one
    position: _OfTwo  # in an array, of the first "min" or "max", counted from one
    field_template: str  # expression and name
    row_template: str  # fields
    start_template: str
    extend_template: str  # steps and row
    keep: _OfTwo  # steps and condition
    finish: _OfTwo  # steps and body
    failure_template: str  # message and shown value, typed as a truth value
    uniform_template: str  # prefix in hexadecimal and text of the key: see prudent.policies.draws
    type_of: str = "typeof({})"
    columns_template: str = "unnest({})"  # makes columns of the fields of a row

    def number(self, value: float) -> str:
        """Write a double, bit for bit; a negative one in brackets, so that no two minus signs start a comment."""
        digits = repr(float(value))
        literal = digits if "e" in digits and self.number_template == "{}e0" else self.number_template.format(digits)
        return f"({literal})" if literal.startswith("-") else literal

    def array(self, items: Sequence[str]) -> str:
        """Write an array of expressions."""
        return self.array_template.format(", ".join(items))

    def start(self, fields: Mapping[str, str]) -> str:
        """Begin the steps of a :class:`Pipeline` with fields of one row."""
        return self.start_template.format(self.row(fields))

    def extend(self, steps: str, fields: Mapping[str, str]) -> str:
        """Replace the fields of the row by others."""
        return self.extend_template.format(steps, self.row(fields))

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
        return f"CAST({expression} AS {self.double})"

    def as_text(self, expression: str) -> str:
        """Convert to text."""
        return f"CAST({expression} AS {self.text_type})"

    def usable_key(self, key: str) -> str:
        """Say whether a key is there and its type has the same text as in Python."""
        types = ", ".join(f"'{name}'" for name in self.key_types)
        return f"{key} IS NOT NULL AND {self.type_of.format(key)} IN ({types})"

    def row(self, fields: Mapping[str, str]) -> str:
        """Write a row with named fields."""
        written = [self.field_template.format(expression, name) for name, expression in fields.items()]
        return self.row_template.format(", ".join(written))


def dialect_named(name: str) -> Dialect:
    """Find a dialect."""
    if name not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}; got {name!r}.")
    return DIALECTS[name]


def _quoted(text: str, quote: str = "'") -> str:
    if "\0" in text:
        raise InputError(f"names and labels with a NUL character cannot be written in SQL; got {text!r}.")
    return quote + text.replace(quote, quote * 2) + quote


def _postgres_text(value: str) -> str:
    plain = _quoted(value)
    # A backslash means something else under standard_conforming_strings = off.
    return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')" if "\\" in value else plain


def _postgres_identifier(name: str) -> str:
    if len(name.encode()) > 63:
        raise InputError(f"PostgreSQL cuts names after 63 bytes; {name!r} is longer. Use a shorter alias.")
    return _quoted(name, '"')


def _spark_text(value: str) -> str:
    # Quotes and backslashes are read differently from version to version and setting to setting.
    if value.isascii() and value.isprintable() and not set(value) & set("'\"\\"):
        return f"'{value}'"
    return f"decode(X'{value.encode().hex()}', 'UTF-8')"


_DUCKDB = Dialect(
    name="duckdb",
    double="DOUBLE",
    text_type="VARCHAR",
    key_types=(
        *("VARCHAR", "UUID", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    ),
    number_template="{}e0",
    text=_quoted,
    identifier=lambda name: _quoted(name, '"'),
    array_template="[{}]",
    element="list_extract({}, {})".format,
    position="list_position({0}, list_{1}({0}))".format,
    field_template="'{1}': {0}",
    row_template="{{{}}}",
    start_template="[{}]",
    extend_template=f"list_transform({{}}, lambda {ROW}: {{}})",
    keep=f"list_filter({{}}, lambda {ROW}: {{}})".format,
    finish=f"list_transform({{}}, lambda {ROW}: {{}})[1]".format,
    failure_template="error({} || {})",
    uniform_template=(
        f"CAST(CAST('0x' || left(sha256(from_hex('{{}}') || encode({{}})), {_HEX_DIGITS}) AS BIGINT) AS DOUBLE)"
    ),
)
_POSTGRES = Dialect(
    name="postgres",
    double="double precision",
    text_type="text",
    key_types=("text", "character varying", "smallint", "integer", "bigint", "uuid"),
    type_of="CAST(pg_typeof({}) AS text)",
    number_template="{}::float8",
    text=_postgres_text,
    identifier=_postgres_identifier,
    array_template="ARRAY[{}]",
    element="({})[{}]".format,
    position="array_position({0}, (SELECT {1}(item) FROM unnest({0}) AS item))".format,
    field_template="{0} AS {1}",
    row_template="{}",
    start_template="SELECT {}",
    # OFFSET 0 keeps the planner from copying expressions into every place that uses their names.
    extend_template=f"SELECT {{1}} FROM ({{0}} OFFSET 0) AS {ROW}",
    keep=f"SELECT * FROM ({{}} OFFSET 0) AS {ROW} WHERE {{}}".format,
    finish=f"(SELECT {{1}} FROM ({{0}} OFFSET 0) AS {ROW})".format,
    # There is no expression that raises; a conversion that fails shows the text it was given.
    failure_template="CAST({} || {} AS integer) = 0",
    uniform_template=(
        "CAST(CAST(CAST('x' || lpad(left(encode(sha256(decode('{}', 'hex') || convert_to({}, 'UTF8')), 'hex'), "
        f"{_HEX_DIGITS}), 16, '0') AS bit(64)) AS bigint) AS float8)"
    ),
)
_SPARK = Dialect(
    name="spark",
    double="DOUBLE",
    text_type="STRING",
    key_types=("string", "tinyint", "smallint", "int", "bigint"),
    number_template="{}D",
    text=_spark_text,
    identifier=lambda name: _quoted(name, "`"),
    array_template="array({})",
    element="element_at({}, CAST({} AS INT))".format,
    position="array_position({0}, array_{1}({0}))".format,
    field_template="'{1}', {0}",
    row_template="named_struct({})",
    start_template="array({})",
    extend_template=f"transform({{}}, {ROW} -> {{}})",
    keep=f"filter({{}}, {ROW} -> {{}})".format,
    finish=f"get(transform({{}}, {ROW} -> {{}}), 0)".format,
    failure_template="CAST(raise_error(concat({}, {})) AS BOOLEAN)",
    columns_template="inline(array({}))",
    uniform_template=(
        f"CAST(conv(substr(sha2(concat(X'{{}}', encode({{}}, 'UTF-8')), 256), 1, {_HEX_DIGITS}), 16, 10) AS DOUBLE)"
    ),
)
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (_DUCKDB, _POSTGRES, _SPARK)}
