"""Fields of saved objects, read with the type, range and shape that JSON has lost."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prudent.errors import FileFormatError

#: What a file holds of an object, by field.
Document = dict[str, Any]

_Field = TypeVar("_Field")

_LARGEST = sys.float_info.max


class Record:
    """The fields of one object in a document: exactly those expected, each of its type, range and shape.

    Shapes come from what was read before, so that no list is longer than the rest of the
    file says, and nothing is computed from a number that does not fit the others.

    Parameters
    ----------
    content : dict
    name : str
        Of the object, for messages.
    *fields : str
    """

    def __init__(self, content: Any, name: str, *fields: str) -> None:
        if not isinstance(content, dict) or content.keys() != set(fields):
            found = sorted(content) if isinstance(content, dict) else type(content).__name__
            raise FileFormatError(f"{name} must have exactly the fields {sorted(fields)}; got {found}.")
        self._content, self._name = content, name

    def __getitem__(self, field: str) -> Any:
        return self._content[field]

    def has(self, field: str) -> bool:
        """Say whether a field that need not be there is."""
        return field in self._content

    def typed(self, field: str, kind: type[_Field]) -> _Field:
        """Read a text, a flag, a list or an object."""
        value = self._content[field]
        if type(value) is not kind:
            raise self._wrong(field, f"of type {kind.__name__}")
        return value

    def number(self, field: str, least: float = -_LARGEST, most: float = _LARGEST) -> float:
        """Read a number of a range."""
        value = self._content[field]
        if not _has_shape(value, ()) or not least <= value <= most:
            raise self._wrong(field, f"a number from {least:g} to {most:g}")
        return float(value)

    def count(self, field: str, most: int = 2**53) -> int:
        """Read a whole number that is not negative."""
        value = self.typed(field, int)
        if not 0 <= value <= most:
            raise self._wrong(field, f"a whole number from 0 to {most}")
        return value

    def array(self, field: str, *shape: int | None) -> NDArray[np.float64]:
        """Read finite numbers of a shape, in which None stands for any length."""
        value = self._content[field]
        if not _has_shape(value, shape):
            raise self._wrong(field, f"numbers of shape {shape}")
        return np.array(value, dtype=np.float64).reshape([-1 if length is None else length for length in shape])

    def _wrong(self, field: str, rule: str) -> FileFormatError:
        found = repr(self._content[field])
        shown = found if len(found) <= 80 else f"{found[:77]}..."
        return FileFormatError(f"{self._name}.{field} must be {rule}; got {shown}.")


def _has_shape(value: Any, shape: tuple[int | None, ...]) -> bool:
    if not shape:
        return type(value) in (int, float) and -_LARGEST <= value <= _LARGEST
    first, *rest = shape
    fits = type(value) is list and first in (None, len(value))
    return fits and all(_has_shape(item, tuple(rest)) for item in value)
