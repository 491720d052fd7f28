"""Columns of files as forecasts, outcomes, weights and periods in memory, checked against an outcome space."""

from contextlib import AbstractContextManager

import numpy as np

from prudent.arrays import AnyArray, BoolArray, FloatArray, IntArray, frozen
from prudent.cases.file_sets import Names
from prudent.cases.file_table import FileTable, Wanted, class_number
from prudent.cases.row_diagnostics import naming_rows, require_usable, rules_of
from prudent.errors import InputError
from prudent.spaces import Space


@frozen
class Sample:
    """Rows of files in memory.

    Attributes
    ----------
    forecasts : array of shape (n, d)
    outcomes : array of shape (n, d) or None
        Rows of NaN where the outcome is missing.
    weights : array of shape (n,) or None
    periods : array of shape (n,) or None
    table : FileTable
        Where they come from.
    columns : tuple of str
        Of the forecasts.
    rows : array of shape (n,)
        Their numbers in the files; the first is 0.
    """

    forecasts: FloatArray
    outcomes: FloatArray | None
    weights: FloatArray | None
    periods: AnyArray | None
    table: FileTable
    columns: tuple[str, ...]
    rows: IntArray

    def naming_rows(self) -> AbstractContextManager[None]:
        """Let errors about forecasts inside the block name file, row and column."""
        return naming_rows(self.table, self.columns, self.forecasts, self.rows)


def read_sample(
    table: FileTable,
    space: Space,
    forecasts: Names,
    outcomes: Names = (),
    weight: str | None = None,
    period: str | None = None,
    *,
    missing: str = "refuse",
    leave_out: BoolArray | None = None,
) -> Sample:
    """Read all rows of the columns named; the first row that breaks a rule is named with what is wrong.

    Parameters
    ----------
    table : FileTable
    space : Space
    forecasts : sequence of str
        One column per coordinate or class, in their order.
    outcomes : sequence of str
        The same, or one column of class labels.
    weight, period : str, optional
    missing : {"refuse", "drop"}
        Whether outcomes may be missing.
    leave_out : array of shape (n,), optional
        True for rows that are left out, as in :class:`prudent.cases.row_diagnostics.UnusableRows`.
    """
    matrix, periods = read_matrix(table, space, forecasts, outcomes, weight, period)
    rows = np.arange(len(matrix)) if leave_out is None else np.flatnonzero(~leave_out)
    if leave_out is not None:
        matrix, periods = matrix[rows], None if periods is None else periods[rows]
    may_be_missing = outcomes if missing == "drop" else ()
    rules = rules_of(table, space, forecasts, outcomes, weight, matrix, rows, may_be_missing)
    require_usable(table, rules, rows)
    if period is not None and periods is not None:
        empty = np.array([value is None for value in periods])
        if empty.any():
            raise InputError(f"{table.at(int(rows[empty.argmax()]), period)}: the cell is empty.")
    d = space.dimension
    placed, _ = space.place(np.ascontiguousarray(matrix[:, :d]), "forecasts")
    results = None
    if outcomes:
        points = matrix[:, d : d + len(outcomes)]
        known = ~np.isnan(points).any(axis=1)
        results = np.full((len(matrix), d), np.nan)
        if space.reads_labels(len(outcomes)):
            results[known] = np.eye(d)[points[known, 0].astype(np.int64)]
        elif known.any():
            results[known] = space.place_outcomes(np.ascontiguousarray(points[known]))
    weights = matrix[:, -1].copy() if weight is not None else None
    return Sample(placed, results, weights, periods, table, tuple(forecasts), rows)


def read_matrix(
    table: FileTable,
    space: Space,
    forecasts: Names,
    outcomes: Names = (),
    weight: str | None = None,
    period: str | None = None,
) -> tuple[FloatArray, AnyArray | None]:
    """Read forecasts, outcomes (or the number of the class) and weights as columns of one array, and the periods.

    Cells that are empty are NaN, cells that are no numbers infinite; a label that is no class is -1.
    """
    require_forecast_columns(forecasts, space)
    labelled = require_outcome_columns(outcomes, space)
    numbers = [*forecasts, *(() if labelled else outcomes), *([weight] if weight else ())]
    wanted = Wanted(numbers, outcomes if labelled else (), [period] if period else [])
    expressions = [table.number(column) for column in numbers]
    if labelled:
        expressions.insert(len(forecasts), class_number(table.cell(outcomes[0]), space))
    width = len(expressions)
    found = table.table([*expressions, *([table.cell(period)] if period else [])], wanted)
    matrix = np.empty((found.num_rows, width))
    for j in range(width):
        matrix[:, j] = found.column(j).to_numpy()
    if not period:
        return matrix, None
    periods = found.column(width)
    if periods.null_count == 0:
        return matrix, periods.to_numpy()
    held = np.empty(found.num_rows, dtype=object)
    held[:] = periods.to_pylist()
    return matrix, held


def require_forecast_columns(columns: Names, space: Space) -> tuple[str, ...]:
    """Check that there is one column per coordinate, and that columns named like classes are in their order."""
    if len(columns) != space.dimension:
        raise InputError(f"the forecast needs {space.columns_needed}; got {len(columns)}.")
    space.require_order(columns, "forecasts")
    return tuple(columns)


def require_outcome_columns(columns: Names, space: Space) -> bool:
    """Check that there is one column per coordinate, or one of class labels; say whether it is one of labels."""
    labelled = space.reads_labels(len(columns))
    if columns and not labelled and len(columns) != space.dimension:
        raise InputError(f"the outcome needs {space.columns_needed}; got {len(columns)}.")
    return labelled
