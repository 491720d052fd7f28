"""Results as text, JSON and tables; numbers with a few digits, and large ones in full."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from difflib import get_close_matches
from enum import Enum
from html import escape
from math import isfinite
from typing import Any, ClassVar, Literal

import numpy as np

from prudent.errors import MissingExtraError

Backend = Literal["pandas", "polars", "pyarrow"]

_IN_GROUPS = 1e4
_IN_FULL = 1e9
_LONGEST, _LONGEST_TEXT = 130, 40  # characters of one attribute in a ``repr``


class Printable:
    """A result: one line as ``repr``, ``str`` for people and for notebooks, ``to_dict`` for JSON.

    ``repr`` and ``to_dict`` show the fields of a dataclass, without those that are declared ``field(repr=False)``, and
    the attributes that ``_shown`` names.
    """

    _shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        said = ((name, _in_one_line(getattr(self, name))) for name in self._names())
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in said if text)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes by name as JSON has them: numbers that are not finite become None."""
        return {name: _plain(getattr(self, name)) for name in self._names()}

    def _names(self) -> list[str]:
        declared: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        return [*(field.name for field in declared if field.repr), *self._shown]


class Table(Printable):
    """A result that is a table."""

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown."""
        raise NotImplementedError

    def __str__(self) -> str:
        return format_table(self.columns)

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return the table as a data frame ("pandas", "polars" or "pyarrow")."""
        import narwhals.stable.v2 as nw  # late: most results are never made a frame

        table = {name: np.asarray(column).tolist() for name, column in self.columns.items()}
        try:
            return nw.from_dict(table, backend=backend).to_native()
        except ImportError as error:
            raise MissingExtraError(backend, "all", "to_frame") from error


def _plain(value: Any) -> Any:
    """Write a value as JSON has it; what JSON does not have, such as a guarantee, is named by its ``repr``."""
    if isinstance(value, Printable):
        return value.to_dict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else repr(value)


def _in_one_line(value: Any) -> str:
    """Write a short value; of a collection the size; of a long text or what is absent nothing."""
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return ""
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    if isinstance(value, (Mapping, list, tuple)):
        return f"<{len(value)}>"
    text = format_number(value, 4) if isinstance(value, float) else repr(value)
    return text if len(text) <= (_LONGEST_TEXT if isinstance(value, str) else _LONGEST) and "\n" not in text else ""


def format_number(value: float, digits: int, sign: str = "") -> str:
    """Write a number with so many digits that mean something; in full up to a billion, in groups from 10,000 on.

    Examples
    --------
    >>> from prudent.formatting import format_number
    >>> [format_number(value, 4) for value in (0.00012346, 0.5, 1234.0, 64023.4, -2500000.0, 7.5e12)]
    ['0.0001235', '0.5', '1234', '64,020', '-2,500,000', '7.5e+12']
    >>> format_number(64023.4, 6), format_number(640.0, 2), format_number(128.0, 2, "+")
    ('64,023.4', '640', '+130')
    """
    text = f"{value:{sign}.{digits}g}"
    size = abs(float(text))
    if not size < _IN_FULL or ("e" not in text and size < _IN_GROUPS) or "e-" in text:
        return text
    group = "," if size >= _IN_GROUPS else ""
    return f"{float(text):{sign}{group}.0f}" if "e" in text else f"{float(text):{sign}{group}.{digits}g}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Ask about the known word that is most like one that is not known; empty if none is."""
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def format_table(
    columns: Mapping[str, Any],
    rows: Sequence[int] | None = None,
    number: Callable[[Any], str] = lambda value: format_number(value, 3),
) -> str:
    """Write all or some rows of a table as text: words to the left, numbers to the right.

    Examples
    --------
    >>> from prudent.formatting import format_table
    >>> print(format_table({"name": ["bins", "unbiased"], "worth": [1 / 3, 2]}))
    name      worth
    bins      0.333
    unbiased      2
    """
    laid = []
    for name, column in columns.items():
        words, shown = isinstance(column[0], str), range(len(column)) if rows is None else rows
        cells = [name, *(column[row] if words else number(column[row]) for row in shown)]
        width = max(map(len, cells))
        laid.append([cell.ljust(width) if words else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*laid, strict=True))
