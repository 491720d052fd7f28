"""Columns of a table as forecasts, outcomes, weights and groups, checked against an outcome space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray
from prudent.errors import InputError, OutsideSpaceError
from prudent.spaces import Box, Simplex, Space
from prudent.tables.table import Chunk, Table

__all__ = [
    "Sample",
    "outside_error",
    "place_forecasts",
    "read_sample",
    "require_forecast_columns",
    "require_outcome_columns",
]


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a table in memory.

    Attributes
    ----------
    forecasts : array of shape (n, d)
    outcomes : array of shape (n, d) or None
        Rows of NaN where the outcome is missing.
    weights : array of shape (n,) or None
    groups : array of shape (n,) or None
    table : Table
        Where they come from.
    columns : tuple of str
        Of the forecasts.
    space : Space
    """

    forecasts: FloatArray
    outcomes: FloatArray | None
    weights: FloatArray | None
    groups: NDArray[Any] | None
    table: Table
    columns: tuple[str, ...]
    space: Space

    @contextmanager
    def naming_rows(self) -> Iterator[None]:
        """Let errors about forecasts inside the block name file, row and column."""
        try:
            yield
        except OutsideSpaceError as error:
            raise outside_error(self.table, self.columns, self.space, self.forecasts, error, 0) from error


def read_sample(
    table: Table,
    space: Space,
    forecasts: Sequence[str],
    outcomes: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    *,
    missing: str = "refuse",
) -> Sample:
    """Read all rows of the columns named.

    Parameters
    ----------
    table : Table
    space : Space
    forecasts : sequence of str
        One column per coordinate or class, in their order.
    outcomes : sequence of str
        The same, or one column of class labels.
    weight, group : str, optional
    missing : {"refuse", "drop"}
        Whether outcomes may be missing.
    """
    columns = require_forecast_columns(forecasts, space)
    labelled = require_outcome_columns(outcomes, space)
    numbers = [*columns, *(() if labelled else outcomes), *([weight] if weight else ())]
    values = [*(outcomes if labelled else ()), *([group] if group else ())]
    parts: dict[str, list[Any]] = {"forecasts": [], "outcomes": [], "weights": [], "groups": []}
    d = space.dimension
    for chunk in table.chunks(numbers, values, missing=outcomes if missing == "drop" else ()):
        parts["forecasts"].append(place_forecasts(table, columns, space, chunk)[0])
        if labelled and isinstance(space, Simplex):
            parts["outcomes"].append(_classes(table, space, outcomes[0], chunk))
        elif outcomes:
            parts["outcomes"].append(_points(table, space, outcomes, chunk.numbers[:, d : 2 * d], chunk.first))
        if weight:
            parts["weights"].append(_weights(table, weight, chunk))
        if group:
            parts["groups"].append(chunk.values[-1])
    held = {name: np.concatenate(pieces) if pieces else None for name, pieces in parts.items()}
    placed = held["forecasts"]
    if placed is None:
        raise AssertionError("a table without rows is refused where it is read")
    return Sample(placed, held["outcomes"], held["weights"], held["groups"], table, columns, space)


def require_forecast_columns(columns: Sequence[str], space: Space) -> tuple[str, ...]:
    """Check that there is one column per coordinate, and that columns named like classes are in their order."""
    if len(columns) != space.dimension:
        raise InputError(f"the forecast needs {_wanted_columns(space)}; got {len(columns)}.")
    if isinstance(space, Simplex) and space.classes is not None:
        classes = [str(label) for label in space.classes]
        if list(columns) != classes and set(columns) == set(classes):
            raise InputError(f"forecast columns must be in the order of the classes {classes}; got {list(columns)}.")
    return tuple(columns)


def require_outcome_columns(columns: Sequence[str], space: Space) -> bool:
    """Check that there is one column per coordinate, or one of class labels; say whether it is one of labels."""
    labelled = isinstance(space, Simplex) and len(columns) == 1
    if columns and not labelled and len(columns) != space.dimension:
        raise InputError(f"the outcome needs {_wanted_columns(space)}; got {len(columns)}.")
    return labelled


def place_forecasts(table: Table, columns: Sequence[str], space: Space, chunk: Chunk) -> tuple[FloatArray, int]:
    """Check the first numbers of a chunk as forecasts; return them and how many rows were snapped onto the space."""
    forecasts = np.ascontiguousarray(chunk.numbers[:, : space.dimension])
    try:
        return space.place(forecasts, "forecasts")
    except OutsideSpaceError as error:
        raise outside_error(table, columns, space, forecasts, error, chunk.first) from error


def _points(table: Table, space: Space, columns: Sequence[str], values: FloatArray, first: int) -> FloatArray:
    known = ~np.isnan(values).any(axis=1)
    points = np.full(values.shape, np.nan)
    if known.any():
        try:
            points[known] = space.place_outcomes(np.ascontiguousarray(values[known]))
        except OutsideSpaceError as error:
            moved = OutsideSpaceError(str(error), np.flatnonzero(known)[list(error.rows)].tolist())
            raise outside_error(table, columns, space, values, moved, first) from error
    return points


def _classes(table: Table, space: Simplex, column: str, chunk: Chunk) -> FloatArray:
    """One-hot rows from class labels: files write every label as text or as a number."""
    index = class_index(space)
    labels = chunk.values[0].tolist()
    positions = class_positions(index, labels)
    unknown = np.flatnonzero(positions == -1)
    if unknown.size:
        row = int(unknown[0])
        raise InputError(
            f"{table.at(chunk.first + row, column)}: {labels[row]!r} is not one of the classes "
            f"{', '.join(repr(label) for label in known_classes(space))}."
        )
    rows = np.eye(space.n_classes)[np.maximum(positions, 0)]
    rows[positions == -2] = np.nan
    return rows


def known_classes(space: Simplex) -> tuple[Any, ...]:
    """Return the names of the classes; without names they are numbered."""
    return space.classes if space.classes is not None else tuple(range(space.n_classes))


def class_index(space: Simplex) -> dict[str, int]:
    """Map every way in which a file may write a class to its position."""
    index: dict[str, int] = {}
    known = known_classes(space)
    for j, label in enumerate(known):
        for text in {str(label), _text(label)}:
            if index.setdefault(text, j) != j:
                raise InputError(f"the classes {known[index[text]]!r} and {label!r} look the same in a file.")
    return index


def class_positions(index: dict[str, int], labels: Any) -> NDArray[np.int64]:
    """Find each label's class; -1 where it is none, -2 where it is missing."""
    return np.array([-2 if _missing(label) else index.get(_text(label), -1) for label in labels], dtype=np.int64)


def _missing(label: Any) -> bool:
    return label is None or label != label


def _text(label: Any) -> str:
    """Whole numbers are often stored as floats where a value is missing."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).strip()


def _weights(table: Table, column: str, chunk: Chunk) -> FloatArray:
    weights: FloatArray = chunk.numbers[:, -1]
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        row = int(negative[0])
        raise InputError(f"{table.at(chunk.first + row, column)}: a weight must not be negative; got {weights[row]:g}.")
    return weights


def _wanted_columns(space: Space) -> str:
    if isinstance(space, Simplex):
        named = "" if space.classes is None else f" ({', '.join(str(label) for label in space.classes)})"
        return f"one column for each of the {space.n_classes} classes{named}, in their order"
    return "one column" if space.dimension == 1 else f"one column for each of the {space.dimension} coordinates"


def outside_error(
    table: Table, columns: Sequence[str], space: Space, values: FloatArray, error: OutsideSpaceError, first: int
) -> InputError:
    """Say of rows that a space or guarantee refuses where the first is and what is wrong with it."""
    row = error.rows[0]
    more = f" (and {len(error.rows) - 1:,} more of the rows read so far)" if len(error.rows) > 1 else ""
    if isinstance(space, Simplex):
        where = table.at(first + row, *columns)
        shown = ", ".join(f"{value:.10g}" for value in values[row])
        if np.abs(values[row].sum() - 1) > 1e-6 or values[row].min() < 0:
            return InputError(
                f"{where}: probabilities must not be negative and sum to 1; {shown} sum to "
                f"{values[row].sum():.10g}{more}."
            )
    else:
        low, high = space.bounds
        j = int(np.argmax(np.maximum(low - values[row], values[row] - high) / (high - low)))
        where, shown = table.at(first + row, columns[j]), f"{values[row, j]:.10g}"
        if not low[j] <= values[row, j] <= high[j]:
            return InputError(
                f"{where}: {shown} lies outside the outcome space, {_interval(space, j)}{more}. Fix the forecaster or "
                f"the space."
            )
    return InputError(
        f"{where}: {shown} lies on the edge of the outcome space, and the guarantee takes logarithms{more}."
    )


def _interval(space: Box, j: int) -> str:
    return f"[{space.lower[j]:g}, {space.upper[j]:g}]"
