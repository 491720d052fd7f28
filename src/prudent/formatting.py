"""How sentences and tables write numbers: with a few digits, and large ones in full."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

_IN_GROUPS = 1e4
_IN_FULL = 1e9


class Printable:
    """A result that notebooks show as ``print`` does."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


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


def format_table(
    columns: Mapping[str, Any],
    rows: Sequence[int],
    number: Callable[[Any], str] = lambda value: format_number(value, 3),
) -> str:
    """Write some rows of a table as text: words to the left, numbers to the right.

    Examples
    --------
    >>> from prudent.formatting import format_table
    >>> print(format_table({"rung": ["bins", "unbiased"], "worth": [1 / 3, 2]}, range(2)))
    rung      worth
    bins      0.333
    unbiased      2
    """
    laid = []
    for name, column in columns.items():
        words = isinstance(column[0], str)
        cells = [name, *(column[row] if words else number(column[row]) for row in rows)]
        width = max(map(len, cells))
        laid.append([cell.ljust(width) if words else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*laid, strict=True))


def records(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Turn columns of a table into one object per row."""
    names = [name.replace(" ", "_").replace("-", "_") for name in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
