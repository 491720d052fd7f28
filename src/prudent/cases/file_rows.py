r"""Columns of files as forecasts, outcomes, weights and periods in memory, checked against an outcome space.

Examples
--------
>>> import prudent
>>> from prudent.cases.file_rows import find_broken_rows, read_sample
>>> from prudent.cases.file_table import open_table
>>> space = prudent.Box(0, 1).with_dimension(1)
>>> with open_table(b"f,y\n0.5,1\nlow,0\n1.5,1\n", "rows.csv") as table:
...     print(find_broken_rows(table, space, ["f"], ["y"])[0].message)
...     print(read_sample(table, space, ["f"], ["y"], skip_broken=True).left_out)
'low' is not a number
2 of 3 rows left out because 'f' is empty or not a finite number (1); 'f' lies outside the outcome space (1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen
from prudent.cases.cases import Cases, require_forecast_columns, require_outcome_columns
from prudent.cases.csv_files import why_no_number
from prudent.cases.file_sets import Names, Roles
from prudent.cases.file_table import FileTable, class_number
from prudent.errors import InputError, OutsideSpaceError
from prudent.spaces import SNAP_TOLERANCE, Grid, Space

_ADVICE = " Fix the forecaster or the space."
_CLIP = " Fix the forecaster or the space, or say --outside clip."
_DROP = " Rows without outcome are left out by --missing drop."


@dataclass(frozen=True)
class BrokenCell:
    """A cell, or several of one row together, that break a rule; the first row is 1."""

    row: int
    columns: tuple[str, ...]
    message: str


@frozen
class _Rule:
    """Which rows break a rule in some columns, what is wrong with all of them and with one, and what to do."""

    columns: tuple[str, ...]
    broken: BoolArray
    reason: str
    explain: Callable[[int], str]
    advice: str = ""


@frozen
class FileNumbers:
    """Numbers in some rows of files, before they are checked.

    Attributes
    ----------
    table : FileTable
    space : Box or Simplex
    forecasts, outcomes : sequence of str
        Columns; on the simplex outcomes may be one column of class labels.
    weight : str or None
    matrix : array of shape (n, columns)
        Forecasts, outcomes (or the number of the class) and weights. Cells that are empty are NaN, cells that are no
        numbers infinite; a label that is no class is -1.
    rows : array of shape (n,)
        Their numbers in the files; the first is 0.
    expressions : sequence of str
        Where the columns of the matrix come from, in SQL.
    whole : bool
        False for a batch: bad rows are not counted.
    clip : bool
        Whether forecasts outside the space are moved to its nearest point.
    n_clipped : int
        How many were.
    """

    table: FileTable
    space: Space
    forecasts: Names
    outcomes: Names
    weight: str | None
    matrix: FloatArray
    rows: IntArray
    expressions: Names = ()
    whole: bool = True
    clip: bool = False
    n_clipped: int = 0

    def of(self, found: Any, first: int | None = None) -> FileNumbers:
        """Take the numbers of an Arrow table of the expressions, or of a batch whose first row has a number."""
        columns = [found.column(j).to_numpy(zero_copy_only=False) for j in range(len(self.expressions))]
        matrix = np.column_stack(columns)
        points, moved = matrix[:, : self.space.dimension], 0
        if self.clip:
            off: BoolArray = np.asarray(np.isfinite(points).all(axis=1))
            off[off] = self.space.distance(points[off]) > SNAP_TOLERANCE
            points[off], moved = self.space.project(points[off]), int(off.sum())
        rows = np.arange(found.num_rows) + (first or 0)
        return replace(self, matrix=matrix, rows=rows, whole=first is None, n_clipped=moved)

    def require_usable(self, missing: Names = ()) -> None:
        """Refuse rows that break a rule: name the first, and what is wrong with it; some columns may be empty."""
        rules = self.rules(missing)
        first = min(rules, key=lambda rule: int(rule.broken.argmax()) if rule.broken.any() else len(self.rows))
        if first.broken.any():
            row = int(first.broken.argmax())
            unknown = first.columns[0] in self.outcomes and np.isnan(self.matrix[row]).any()
            advice = _DROP if unknown else first.advice
            raise self._error(row, first.columns, first.explain(row), int(first.broken.sum()), advice)

    @contextmanager
    def naming_rows(self) -> Iterator[None]:
        """Let errors about forecasts on the edge of the space, which a guarantee refuses, name file, row and column."""
        try:
            yield
        except OutsideSpaceError as error:
            row = error.rows[0]
            shown = _shown(self.matrix[row, : self.space.dimension])
            message = f"{shown} lies on the edge of the outcome space, and the guarantee takes logarithms"
            raise self._error(row, self.forecasts, message, len(error.rows)) from error

    def rules(self, missing: Names = ()) -> list[_Rule]:
        """Apply all rules; cells of some columns may be empty."""
        labelled, rules, start = self.space.reads_labels(len(self.outcomes)), [], 0
        for group, advice in ((self.forecasts, _CLIP), (() if labelled else self.outcomes, _ADVICE)):
            points = self.matrix[:, start : start + len(group)]
            start += len(group)
            rules += [self._cell_rule(column, points[:, j], missing) for j, column in enumerate(group)]
            if group and self.space.is_simplex and not (isinstance(self.space, Grid) and len(group) == 1):
                rules.append(_simplex_rule(self.space, tuple(group), points, advice))
            else:
                bounds = self.space.points[[[0], [-1]]] if isinstance(self.space, Grid) else self.space.bounds
                rules += map(_box_rule, group, points.T, *bounds, [advice] * len(group))
        if labelled:
            rules.append(self._cell_rule(self.outcomes[0], self.matrix[:, start], missing, labelled=True))
        if self.weight is not None:
            weights, wrong = self.matrix[:, -1], "a weight must not be negative; got"
            rules.append(self._cell_rule(self.weight, weights, ()))
            reason = f"{self.weight!r} is negative"
            rules.append(_Rule((self.weight,), weights < 0, reason, lambda row: f"{wrong} {weights[row]:g}"))
        return rules

    def _error(self, row: int, columns: Names, message: str, count: int, advice: str = "") -> InputError:
        more = f" (and {count - 1:,} more rows)" if count > 1 and self.whole else ""
        return InputError(f"{self.table.at(int(self.rows[row]), *columns)}: {message}{more}.{advice}")

    def _cell_rule(self, column: str, numbers: FloatArray, missing: Names, *, labelled: bool = False) -> _Rule:
        """Refuse cells that are no numbers, or no classes, and those that are empty unless they may be."""
        wanted = "class" if labelled else "number"

        def explain(row: int) -> str:
            cell = self.table.written(int(self.rows[row]), column)
            if np.isnan(numbers[row]):
                held = f"{cell!r} stands for a missing value" if str(cell or "").strip() else "the cell is empty"
                return f"{held}, and a {wanted} is needed"
            if labelled:
                classes = getattr(self.space, "classes", None) or range(self.space.dimension)
                return f"{cell!r} is not one of the classes {', '.join(map(repr, classes))}"
            if str(cell).strip(" +-").lower() in ("inf", "infinity"):
                return f"the number must be finite, and it is {cell}"
            return why_no_number(str(cell), self.table.reading, percent=column in self.table.percent)

        allowed = numbers >= 0 if labelled else np.isfinite(numbers)
        broken = ~(allowed | np.isnan(numbers)) if column in missing else ~allowed
        named = "one of the classes" if labelled else "a finite number"
        return _Rule((column,), broken, f"{column!r} is empty or not {named}", explain)


def _box_rule(column: str, numbers: FloatArray, low: float, high: float, advice: str) -> _Rule:
    outside = np.isfinite(numbers) & (np.maximum(low - numbers, numbers - high) > SNAP_TOLERANCE * (high - low))
    reason = "lies outside the outcome space"
    shown = f"{reason}, [{low:g}, {high:g}]"
    return _Rule((column,), outside, f"{column!r} {reason}", lambda row: f"{numbers[row]:.10g} {shown}", advice)


def _simplex_rule(space: Space, columns: tuple[str, ...], points: FloatArray, advice: str) -> _Rule:
    outside: BoolArray = np.asarray(np.isfinite(points).all(axis=1))
    outside[outside] = space.distance(points[outside]) > SNAP_TOLERANCE

    def explain(row: int) -> str:
        sums = f"{_shown(points[row])} sum to {points[row].sum():.10g}"
        return f"probabilities must not be negative and sum to 1; {sums}"

    reason = f"{' and '.join(map(repr, columns))} lie outside the outcome space"
    return _Rule(columns, outside, reason, explain, advice)


def _shown(point: FloatArray) -> str:
    return ", ".join(f"{value:.10g}" for value in point)


@frozen
class Sample:
    """Rows of files in memory.

    Attributes
    ----------
    cases : Cases
    numbers : FileNumbers
        Where they come from.
    left_out : str or None
        How many rows were skipped because they break a rule, and why.
    """

    cases: Cases
    numbers: FileNumbers
    left_out: str | None


def read_sample(
    table: FileTable,
    space: Space,
    forecasts: Names,
    outcomes: Names = (),
    weight: str | None = None,
    period: str | None = None,
    *,
    every: str | None = None,
    context: Names = (),
    missing: str = "refuse",
    outside: str = "refuse",
    skip_broken: bool = False,
) -> Sample:
    """Read all rows of the columns named; the first row that breaks a rule is named with what is wrong.

    Parameters
    ----------
    table : FileTable
    space : Space
    forecasts : sequence of str
        One column per coordinate or class, in their order.
    outcomes : sequence of str
        The same, or one column of class labels. Where they are missing they become rows of NaN.
    weight, period : str, optional
    every, missing : str, optional
        As for :class:`~prudent.Cases`.
    context : sequence of str
        Columns of text or whole numbers that are known at decision time.
    outside : {"refuse", "clip"}
        Whether forecasts outside the space are moved to its nearest point.
    skip_broken : bool
        Leave rows out that break a rule.
    """
    cells = [*([period] if period else []), *context]
    numbers = use_columns(table, space, forecasts, outcomes, weight, dict.fromkeys(cells, "name"), outside)
    found = table.table([*numbers.expressions, *map(table.cell, cells)])
    numbers, left_out, held = numbers.of(found), None, {}
    if skip_broken:
        numbers, left_out = _without_broken(numbers)
    numbers.require_usable(outcomes if missing == "drop" else ())
    for place, name in enumerate(cells, start=len(numbers.expressions)):
        held[name] = np.array(found.column(place).to_pylist(), dtype=object)[numbers.rows]
        if None in held[name]:
            table.refuse_empty(name)
    matrix, d = numbers.matrix, space.dimension
    results = matrix[:, d : d + len(outcomes)] if outcomes else None
    if results is not None and space.reads_labels(len(outcomes)):
        unknown = np.full((1, d), np.nan)
        results = np.vstack([np.eye(d), unknown])[np.nan_to_num(results[:, 0], nan=d).astype(np.int64)]
    weights = matrix[:, -1].copy() if weight is not None else None
    points, periods = np.ascontiguousarray(matrix[:, :d]), held.get(str(period))
    beside = {name: held[name] for name in context}
    cases = Cases(points, results, weights=weights, periods=periods, every=every, context=beside, missing=missing)
    return Sample(cases, numbers, left_out)


def refuse_broken_row(table: FileTable, cases: Any, space: Space, outcomes: Names) -> None:
    """Name the first row that breaks a rule of :func:`read_sample`, some rows at a time; return if none does."""
    numbers, start = use_columns(table, space, cases.forecasts, outcomes, cases.weights), 0
    for batch in table.batches(numbers.expressions):
        numbers.of(batch, start).require_usable(outcomes if cases.missing == "drop" else ())
        start += batch.num_rows
    if cases.periods in table.columns:
        table.refuse_empty(cases.periods)


def find_broken_rows(
    table: FileTable, space: Space, forecasts: Names, outcomes: Names = (), weight: str | None = None, limit: int = 100
) -> list[BrokenCell]:
    """List, in row order, what breaks the rules of :func:`read_sample`; a few at most."""
    numbers = use_columns(table, space, forecasts, outcomes, weight)
    rules = numbers.of(table.table(numbers.expressions)).rules()
    broken = sorted(
        (int(row), place) for place, rule in enumerate(rules) for row in np.flatnonzero(rule.broken)[:limit]
    )
    return [BrokenCell(row + 1, rules[place].columns, rules[place].explain(row)) for row, place in broken[:limit]]


def _without_broken(numbers: FileNumbers) -> tuple[FileNumbers, str | None]:
    """Leave rows out that break a rule, and say how many; each counts by the first rule that it breaks."""
    broken, reasons = np.zeros(len(numbers.rows), dtype=bool), []
    for rule in numbers.rules():
        fresh = int((rule.broken & ~broken).sum())
        reasons += [f"{rule.reason} ({fresh:,})"] if fresh else []
        broken |= rule.broken
    if not reasons:
        return numbers, None
    left_out = f"{broken.sum():,} of {broken.size:,} rows left out because {'; '.join(reasons)}"
    if broken.all():
        raise InputError(f"no row is left: {left_out}.")
    return replace(numbers, matrix=numbers.matrix[~broken], rows=numbers.rows[~broken]), left_out


def use_columns(
    table: FileTable,
    space: Space,
    forecasts: Names,
    outcomes: Names = (),
    weight: str | None = None,
    others: Roles | None = None,
    outside: str = "refuse",
) -> FileNumbers:
    """Say what is read of a table, with the roles of columns that are no numbers; forecasts may be clipped."""
    require_forecast_columns(forecasts, space)
    labelled, weights = require_outcome_columns(outcomes, space), [weight] if weight else []
    roles = dict(others or {}) | dict.fromkeys(outcomes, "label" if labelled else "outcome")
    roles |= dict.fromkeys([*forecasts, *weights], "number")
    table.use(roles)
    results = [class_number(table.cell(column), space) if labelled else table.number(column) for column in outcomes]
    expressions = [*map(table.number, forecasts), *results, *map(table.number, weights)]
    no_rows = np.empty((0, 0)), np.empty(0, np.int64)
    return FileNumbers(table, space, forecasts, outcomes, weight, *no_rows, expressions, clip=outside == "clip")
