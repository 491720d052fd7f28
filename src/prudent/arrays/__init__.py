"""The door: whatever users hold becomes one float64 array, or a clear error.

Inside the library every array of forecasts is C-contiguous ``float64`` of a known shape; equal weights are a
read-only view of one number.
Nothing is clipped, dropped or reordered here. Reductions of tables with many rows and few columns loop over columns,
which is about ten times as fast as NumPy; narwhals is imported on first use (``nw``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from prudent.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
#: What else than forecasts is known at decision time: columns ``(n,)`` by name.
Context = Mapping[str, AnyArray]
EPSILON = float(np.finfo(np.float64).eps)

_Kind = TypeVar("_Kind")

_SHOWN = 5
_MOST_DIMENSIONS = 8  # more than anything needs; NumPy itself fails from 32 on


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen(kind: type[_Kind]) -> type[_Kind]:
    """Make a frozen dataclass that is compared by identity, since arrays have no one truth value."""
    return dataclass(frozen=True, eq=False, repr=kind.__repr__ is object.__repr__)(kind)


def rows(values: Any, name: str, width: int) -> FloatArray:
    """Return ``values`` as an ``(n, width)`` array of finite numbers, n >= 1.

    A one-dimensional input is read as one column, so it is accepted only where ``width`` is 1.
    """
    array = finite_array(values, name)
    if array.ndim == 1:
        if width != 1:
            raise InputError(
                f"{name} must have shape (n, {width}), one column per coordinate; "
                f"Expected 2D array, got 1D array instead: shape {array.shape}. "
                f"Reshape your data; a single row is [[...]]."
            )
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"{name} must be one- or two-dimensional; got shape {array.shape}.")
    if array.shape[0] == 0:
        raise InputError(f"{name} must have at least one row; got 0 sample(s), shape {array.shape}.")
    if array.shape[1] == 0:
        raise InputError(
            f"{name} must have columns; got 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    if array.shape[1] != width:
        raise InputError(
            f"{name} must have {width} column(s), one per coordinate of the outcome space; got shape {array.shape}."
        )
    return np.ascontiguousarray(array)


def finite_array(values: Any, name: str) -> FloatArray:
    """Return ``values`` as a float64 array of any rank without NaN or infinity."""
    array = _numeric(values, name)
    # Minimum and maximum are finite exactly where all numbers are: no table of flags is needed.
    if array.size == 0 or (np.isfinite(array.min()) and np.isfinite(array.max())):
        return array
    if array.ndim == 0:
        raise InputError(f"{name} must be finite; got {float(array)}.")
    where = np.flatnonzero(_any_in_rows(~np.isfinite(array)))
    raise InputError(
        f"{name} must be finite; got NaN, infinity (inf) or a missing value in {describe_rows(where)}. "
        f"Remove or impute these rows first."
    )


def row_weights(sample_weight: Any, n: int) -> tuple[FloatArray, BoolArray]:
    """Return weights that sum to one, and the mask of rows with positive weight."""
    if sample_weight is None:
        return np.broadcast_to(1.0 / n, (n,)), np.broadcast_to(True, (n,))
    weights = finite_array(sample_weight, "weights")
    if weights.shape == () and n >= 1:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise InputError(
            f"weights must have shape ({n},), one weight per row; got {weights.shape}. "
            f"sample_weight.shape != forecasts' rows: pass one number for each row."
        )
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        raise InputError(f"weights must not be negative; it is in {describe_rows(negative)}.")
    largest = weights.max()
    if largest == 0:
        raise InputError("weights must not be zero for all rows; give at least one row weight.")
    weights = weights / largest  # first, so that the sum can neither overflow nor vanish
    weights = weights / weights.sum()
    return weights, weights > 0


def listed(values: Any, name: str) -> list[Any]:
    """Return an ordered collection as a list of plain Python values; refuse strings, sets and mappings."""
    if isinstance(values, (str, bytes, set, frozenset, dict)) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list or array; got {type(values).__name__} {values!r}.")
    shape: tuple[int, ...] = getattr(values, "shape", (0,))
    if len(shape) != 1:
        raise InputError(f"{name} must be one-dimensional; got shape {shape}.")
    for convert in ("to_pylist", "to_list", "tolist"):  # Arrow, pandas and polars, NumPy
        if hasattr(values, convert):
            return list(getattr(values, convert)())
    return [item.item() if isinstance(item, np.generic) else item for item in values]


def labels(values: Any, name: str) -> list[str | int | float | bool]:
    """Return action or class labels as plain Python values, distinct and of one of four types."""
    items = listed(values, name)
    seen: dict[Any, int] = {}
    for position, label in enumerate(items):
        if not isinstance(label, (str, int, float)) or (isinstance(label, float) and not np.isfinite(label)):
            raise InputError(
                f"{name} must be labels of type str, int, float or bool, without NaN or infinity; "
                f"got {type(label).__name__} {str(label)[:40]!r} at position {position}."
            )
        first = seen.setdefault(label, position)
        if first != position:
            raise InputError(f"{name} must be distinct; {label!r} stands at positions {first} and {position}.")
    return items


def probability(value: Any, name: str) -> float:
    """Check a number strictly between 0 and 1."""
    number: Any = value  # compared before it becomes a float: an integer may be too large for one
    if not isinstance(value, Real) or not 0 < number < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def truth(value: Any, name: str) -> bool:
    """Check a flag."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def positive_integer(value: Any, name: str, least: int = 1) -> int:
    """Check a whole number of at least ``least``, and not absurdly large."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= 1_000_000:
        raise InputError(f"{name} must be a whole number of at least {least} and at most a million; got {value!r}.")
    return int(value)


def non_negative(value: Any, name: str) -> float:
    """Check a finite number of at least zero."""
    number = finite_array(value, name)
    if number.ndim or number < 0:
        raise InputError(f"{name} must be a number of at least 0; got {value!r}.")
    return float(number)


def cluster_numbers(groups: Any, n: int) -> IntArray:
    """Number the groups that rows belong to from zero; a row without a group is refused."""
    without = np.flatnonzero(missing_rows(groups, "periods"))
    if without.size:
        raise InputError(f"periods must name a period for every row; {describe_rows(without)} have none.")
    members = listed(groups, "periods")
    if len(members) != n:
        raise InputError(f"periods must have one entry per row, {n}; got {len(members)}.")
    numbers: dict[Any, int] = {}
    try:
        return np.array([numbers.setdefault(member, len(numbers)) for member in members], dtype=np.int64)
    except TypeError as error:
        raise InputError("periods must be names: numbers, strings or other values that can be compared.") from error


def missing_rows(values: Any, name: str) -> BoolArray:
    """Mark the rows in which something is missing: None, NaN or NA."""
    held = values if isinstance(values, (np.ndarray, list, tuple)) else _from_frame(values, name)
    try:
        array = np.asarray(held)
    except ValueError:  # ragged rows, which are refused when they are read
        return np.zeros(len(held), dtype=bool)
    if array.ndim == 0:
        return np.zeros(0, dtype=bool)
    if array.dtype.kind == "O":
        flags = np.array([_missing(item) or item != item for item in array.flat], dtype=bool).reshape(array.shape)
    else:
        flags = np.asarray(array != array)  # as NaN and NaT are
    return _any_in_rows(flags)


def read_context(given: Any) -> dict[str, AnyArray]:
    """Return columns of context by name, from a frame or a mapping; none without either."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) and not hasattr(given, "columns"):
        raise InputError(
            f"context must be a frame or a mapping of column names to columns; got {type(given).__name__}."
        )
    return {str(name): np.asarray(given[name]) for name in (given if isinstance(given, Mapping) else given.columns)}


def require_context(context: Context | None, columns: Sequence[str], n: int) -> Context:
    """Return these columns of context; refuse columns that are not there, or that have other rows."""
    found = {}
    for name in columns:
        if context is None or name not in context:
            raise InputError(
                f"context must have the column {name!r}, by which rows are told apart here; got "
                f"{list(context or ()) or 'no context'}. Pass context={{{name!r}: one value per row}}."
            )
        column = found[name] = context[name]
        if column.shape != (n,):
            raise InputError(
                f"context column {name!r} must have one value per forecast, {n}; got shape {column.shape}."
            )
    return found


def require_values(column: Any, name: str) -> None:
    """Refuse a column of context with missing values."""
    without = np.flatnonzero(missing_rows(column, name))
    if without.size:
        raise InputError(f"context column {name!r} must have no missing values; {describe_rows(without)} have one.")


def context_rows(context: Context | None, which: Any) -> Context | None:
    """Keep some rows of all columns."""
    return context and {name: column[which] for name, column in context.items()}


def describe_rows(where: Sequence[int] | AnyArray) -> str:
    """Say which rows, in words: ``row 3``, ``rows 3, 5`` or ``12 rows (3, 5, 8, 9, 11, ...)``."""
    shown = ", ".join(str(int(row)) for row in where[:_SHOWN])
    if len(where) > _SHOWN:
        return f"{len(where)} rows ({shown}, ...)"
    return f"{'row' if len(where) == 1 else 'rows'} {shown}"


def _numeric(values: Any, name: str) -> FloatArray:
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputError(f"{name} must be dense; got a sparse matrix. Call .toarray() on it first.")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name} must not have masked values; fill or remove them first.")
    if not isinstance(values, (np.ndarray, list, tuple, float, int)):
        values = _from_frame(values, name)
    try:
        array = np.asarray(values)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{name} must be a rectangular array of numbers; its rows have different lengths.") from error
    if array.ndim > _MOST_DIMENSIONS:
        raise InputError(f"{name} must have at most {_MOST_DIMENSIONS} dimensions; got {array.ndim}.")
    if array.dtype.kind == "c":
        raise InputError(f"{name} must be real numbers. Complex data not supported.")
    if array.dtype.kind == "O":
        return _from_objects(array, name)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be numbers; got dtype {array.dtype}. Convert text and dates yourself.")
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype=np.float64)


def _from_objects(array: Any, name: str) -> FloatArray:
    """Convert an array of Python objects; missing values become NaN, anything but numbers is refused."""
    items = [np.nan if _missing(item) else item for item in array.flat]
    for item in items:
        if not isinstance(item, (Real, Decimal)):
            raise InputError(f"{name} must be numbers; got {type(item).__name__} {str(item)[:40]!r}.")
    try:
        filled = np.array(items, dtype=np.float64)
    except OverflowError as error:
        raise InputError(f"{name} must fit into floats; one number is too large.") from error
    return filled.reshape(array.shape)


def _any_in_rows(flags: BoolArray) -> BoolArray:
    return np.asarray(flags.any(axis=tuple(range(1, flags.ndim))))


def _missing(item: Any) -> bool:
    return item is None or type(item).__name__ == "NAType"


def _from_frame(values: Any, name: str) -> Any:
    """Turn a pandas, polars or Arrow column or table into an array; leave all else alone."""
    native = nw.from_native(values, pass_through=True, allow_series=True)
    if isinstance(native, nw.LazyFrame):
        raise InputError(f"{name} must be in memory; got a lazy table ({type(values).__module__}). Collect it first.")
    if isinstance(native, (nw.DataFrame, nw.Series)):
        return native.to_numpy()
    return values


__all__ = ["Expr", "Exprs", "Frame", "nw", "where"]

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    Expr = nw.Expr
    Exprs = list[Expr]
    Frame = nw.LazyFrame[Any]
else:

    class _OnFirstUse:
        def __getattr__(self, name: str) -> Any:
            narwhals = import_module("narwhals.stable.v2")
            vars(self).update(vars(narwhals))
            return getattr(narwhals, name)

    nw, Expr, Exprs, Frame = _OnFirstUse(), Any, Any, Any


def where(condition: Expr, chosen: Any, otherwise: Any) -> Expr:
    """Write one of two numbers or expressions, by a condition; NULL meets none."""
    return nw.when(condition).then(chosen).otherwise(otherwise)


_Floats = NDArray[np.float64]
_NARROW = 16
_VERY_NARROW = 4
_FEW_NUMBERS = 1_000


def _reduce_rows(operation: np.ufunc, table: _Floats) -> _Floats:
    width = table.shape[-1]
    if width > _NARROW or table.size < _FEW_NUMBERS:
        return np.asarray(operation.reduce(table, axis=-1))
    result = table[..., 0].copy()
    for j in range(1, width):
        operation(result, table[..., j], out=result)
    return result


def _reduce_columns(operation: np.ufunc, table: NDArray[np.floating[Any]], initial: float | None = None) -> _Floats:
    if table.shape[1] > _NARROW:
        return np.asarray(operation.reduce(table, axis=0, initial=initial))
    return np.array([operation.reduce(column, initial=initial) for column in table.T])


#: Smallest and largest number along the last axis, which must not be empty.
smallest_in_rows, largest_in_rows = partial(_reduce_rows, np.minimum), partial(_reduce_rows, np.maximum)

#: Smallest and largest number of each column ``(n, k)`` and an initial one.
smallest_in_columns, largest_in_columns = partial(_reduce_columns, np.minimum), partial(_reduce_columns, np.maximum)


def sums_of_rows(table: _Floats) -> _Floats:
    """Sum of each row ``(n, k)``, of which there is at least one column."""
    if table.shape[1] > _VERY_NARROW or table.size < _FEW_NUMBERS:
        return np.asarray(np.einsum("nk->n", table))
    return _reduce_rows(np.add, table)
