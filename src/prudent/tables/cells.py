"""From Arrow arrays to NumPy arrays: every cell becomes what it says, or its place is named."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray

__all__ = ["BadCellError", "to_numbers", "to_values"]

_SHOWN = 40


class BadCellError(Exception):
    """A cell, or a whole column (``row`` is None), does not hold what it should; row 0 is the array's first."""

    def __init__(self, row: int | None, message: str) -> None:
        super().__init__(message)
        self.row = row


def to_numbers(array: Any, may_be_missing: bool) -> FloatArray:
    """Read finite numbers: text as CSV has it, or any numeric type; missing cells become NaN if they may."""
    import pyarrow as pa

    array = _plain(array)
    kind = array.type
    if pa.types.is_binary(kind):
        numbers, empty = _parsed(_decoded(array))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        empty = _nulls(array)
        numbers = _floats(array)
    elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
        empty = _nulls(array)
        numbers = _floats(array.cast(pa.float64(), safe=False))
    else:
        raise BadCellError(None, f"it holds {kind}, not numbers")
    if np.isfinite(numbers).all():
        return numbers
    if empty.any() and not may_be_missing:
        raise BadCellError(int(empty.argmax()), "the cell is empty, and a number is needed")
    odd = ~np.isfinite(numbers) & ~empty
    if may_be_missing:
        odd &= ~np.isnan(numbers)
    if odd.any():
        row = int(odd.argmax())
        raise BadCellError(row, f"the number must be finite, and it is {numbers[row]}")
    return numbers


def to_values(array: Any, may_be_missing: bool) -> NDArray[Any]:
    """Read text, whole numbers, floats or truth values as they are; missing cells become None if they may."""
    import pyarrow as pa

    array = _plain(array)
    kind = array.type
    if pa.types.is_binary(kind):
        array = _decoded(array)
        empty = _text_is_empty(array)
        values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        if empty.any() and may_be_missing:
            values = values.copy()
            values[empty] = None
    elif any(
        test(kind)
        for test in (
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_boolean,
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_null,
        )
    ):
        empty = _nulls(array)
        # With a null among them NumPy's integers would become floats; Python's stay what they are.
        plain = array.null_count == 0 and not pa.types.is_boolean(kind)
        values = array.to_numpy(zero_copy_only=False) if plain else np.empty(len(array), dtype=object)
        if not plain:
            values[:] = array.to_pylist()
    else:
        raise BadCellError(None, f"it holds {kind}; text, whole numbers, numbers or true and false are needed")
    if empty.any() and not may_be_missing:
        raise BadCellError(int(empty.argmax()), "the cell is empty")
    return values


def _plain(array: Any) -> Any:
    """Undo dictionaries and view types, which are only ways to store the same values."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array


def _floats(array: Any) -> FloatArray:
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _nulls(array: Any) -> NDArray[np.bool_]:
    if array.null_count == 0:
        return np.zeros(len(array), dtype=bool)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def _decoded(array: Any) -> Any:
    """Bytes of a text file as text."""
    import pyarrow as pa

    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        row = _first_failure(array, lambda part: part.cast(pa.string()))
        shown = array[row].as_py()[:_SHOWN]
        raise BadCellError(row, f"{shown!r} is not UTF-8 text; save the file as UTF-8") from None


def _text_is_empty(array: Any) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(pc.equal(pc.binary_length(array), 0).to_numpy(zero_copy_only=False), dtype=bool)


def _parsed(array: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Read numbers from text, spaces around them allowed; an empty cell is NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return _floats(pc.cast(array, pa.float64())), np.zeros(len(array), dtype=bool)
    except pa.ArrowInvalid:
        pass
    trimmed = pc.utf8_trim_whitespace(array)
    empty = _text_is_empty(trimmed)
    filled = pc.if_else(pa.array(empty), pa.scalar("nan"), trimmed)

    def convert(part: Any) -> Any:
        return pc.cast(part, pa.float64())

    try:
        return _floats(convert(filled)), empty
    except pa.ArrowInvalid:
        row = _first_failure(filled, convert)
        raise BadCellError(row, f"{array[row].as_py()[:_SHOWN]!r} is not a number") from None


def _first_failure(array: Any, convert: Any) -> int:
    """Find the first cell that cannot be converted, by halving."""
    import pyarrow as pa

    good, bad = 0, len(array)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            convert(array.slice(good, middle - good))
            good = middle
        except pa.ArrowInvalid:
            bad = middle
    return good
