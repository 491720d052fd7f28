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

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from prudent.arrays import AnyArray, BoolArray, FloatArray, IntArray, frozen
from prudent.cases.cases import require_forecast_columns, require_outcome_columns
from prudent.cases.file_sets import Names, Roles
from prudent.cases.file_table import FileTable, class_number
from prudent.errors import InputError, OutsideSpaceError
from prudent.spaces import SNAP_TOLERANCE, Space

_ADVICE = " Fix the forecaster or the space."


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
    """

    table: FileTable
    space: Space
    forecasts: Names
    outcomes: Names
    weight: str | None
    matrix: FloatArray
    rows: IntArray

    def require_usable(self, missing: Names = ()) -> None:
        """Refuse rows that break a rule: name the first, and what is wrong with it; some columns may be empty."""
        rules = self.rules(missing)
        first = min(rules, key=lambda rule: int(rule.broken.argmax()) if rule.broken.any() else len(self.rows))
        if first.broken.any():
            row = int(first.broken.argmax())
            raise self._error(row, first.columns, first.explain(row), int(first.broken.sum()), first.advice)

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
        for group in (self.forecasts, () if labelled else self.outcomes):
            points = self.matrix[:, start : start + len(group)]
            start += len(group)
            rules += [self._number_rule(column, points[:, j], missing) for j, column in enumerate(group)]
            if group and self.space.is_simplex:
                rules.append(_simplex_rule(self.space, tuple(group), points))
            elif group:
                rules += map(_box_rule, group, points.T, *self.space.bounds)
        if labelled:
            rules.append(self._class_rule(self.outcomes[0], self.matrix[:, start], missing))
        if self.weight is not None:
            weights = self.matrix[:, -1]
            rules.append(self._number_rule(self.weight, weights, ()))
            rules.append(
                _Rule(
                    (self.weight,),
                    weights < 0,
                    f"{self.weight!r} is negative",
                    lambda row: f"a weight must not be negative; got {weights[row]:g}",
                )
            )
        return rules

    def _error(self, row: int, columns: Names, message: str, count: int, advice: str = "") -> InputError:
        more = f" (and {count - 1:,} more rows)" if count > 1 else ""
        return InputError(f"{self.table.at(int(self.rows[row]), *columns)}: {message}{more}.{advice}")

    def _number_rule(self, column: str, numbers: FloatArray, missing: Names) -> _Rule:
        def explain(row: int) -> str:
            cell = self.table.written(int(self.rows[row]), column)
            if cell is None or not str(cell).strip():
                return "the cell is empty, and a number is needed"
            try:
                return f"the number must be finite, and it is {float(cell)}"
            except ValueError:
                return f"{str(cell)[:40]!r} is not a number"

        broken = np.isinf(numbers) if column in missing else ~np.isfinite(numbers)
        return _Rule((column,), broken, f"{column!r} is empty or not a finite number", explain)

    def _class_rule(self, column: str, numbers: FloatArray, missing: Names) -> _Rule:
        def explain(row: int) -> str:
            if np.isnan(numbers[row]):
                return "the cell is empty"
            classes = getattr(self.space, "classes", None) or range(self.space.dimension)
            cell = self.table.written(int(self.rows[row]), column)
            return f"{cell!r} is not one of the classes {', '.join(map(repr, classes))}"

        broken = numbers < 0 if column in missing else ~(numbers >= 0)
        return _Rule((column,), broken, f"{column!r} is empty or not one of the classes", explain)


def _box_rule(column: str, numbers: FloatArray, low: float, high: float) -> _Rule:
    outside = np.isfinite(numbers) & (np.maximum(low - numbers, numbers - high) > SNAP_TOLERANCE * (high - low))
    return _Rule(
        (column,),
        outside,
        f"{column!r} lies outside the outcome space",
        lambda row: f"{numbers[row]:.10g} lies outside the outcome space, [{low:g}, {high:g}]",
        _ADVICE,
    )


def _simplex_rule(space: Space, columns: tuple[str, ...], points: FloatArray) -> _Rule:
    outside: BoolArray = np.asarray(np.isfinite(points).all(axis=1))
    outside[outside] = space.distance(points[outside]) > SNAP_TOLERANCE

    def explain(row: int) -> str:
        rule = "probabilities must not be negative and sum to 1"
        return f"{rule}; {_shown(points[row])} sum to {points[row].sum():.10g}"

    reason = f"{' and '.join(map(repr, columns))} lie outside the outcome space"
    return _Rule(columns, outside, reason, explain, _ADVICE)


def _shown(point: FloatArray) -> str:
    return ", ".join(f"{value:.10g}" for value in point)


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
    context : dict of arrays of shape (n,)
    numbers : FileNumbers
        Where they come from.
    left_out : str or None
        How many rows were skipped because they break a rule, and why.
    """

    forecasts: FloatArray
    outcomes: FloatArray | None
    weights: FloatArray | None
    periods: AnyArray | None
    context: dict[str, AnyArray]
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
    context: Names = (),
    missing: str = "refuse",
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
        The same, or one column of class labels.
    weight, period : str, optional
    context : sequence of str
        Columns of text or whole numbers that are known at decision time.
    missing : {"refuse", "drop"}
        Whether outcomes may be missing.
    skip_broken : bool
        Leave rows out that break a rule.
    """
    cells = [*([period] if period else []), *context]
    numbers, held = _read(table, space, forecasts, outcomes, weight, cells)
    left_out = None
    if skip_broken:
        numbers, left_out = _without_broken(numbers)
    numbers.require_usable(outcomes if missing == "drop" else ())
    named = {name: column[numbers.rows] for name, column in held.items()}
    for name, column in named.items():
        empty = np.array([value is None for value in column])
        if empty.any():
            raise InputError(f"{table.at(int(numbers.rows[empty.argmax()]), name)}: the cell is empty.")
    periods, beside = named.get(str(period)), {name: named[name] for name in context}
    matrix, d = numbers.matrix, space.dimension
    results = None
    if outcomes:
        results = matrix[:, d : d + len(outcomes)]
        if space.reads_labels(len(outcomes)):
            known = results[:, 0] >= 0
            classes = results[known, 0].astype(np.int64)
            results = np.full((len(matrix), d), np.nan)
            results[known] = np.eye(d)[classes]
    weights = matrix[:, -1].copy() if weight is not None else None
    return Sample(np.ascontiguousarray(matrix[:, :d]), results, weights, periods, beside, numbers, left_out)


def find_broken_rows(
    table: FileTable, space: Space, forecasts: Names, outcomes: Names = (), weight: str | None = None, limit: int = 100
) -> list[BrokenCell]:
    """List, in row order, what breaks the rules of :func:`read_sample`; a few at most."""
    rules = _read(table, space, forecasts, outcomes, weight)[0].rules()
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


def _read(
    table: FileTable,
    space: Space,
    forecasts: Names,
    outcomes: Names,
    weight: str | None,
    cells: Names = (),
) -> tuple[FileNumbers, dict[str, AnyArray]]:
    """Read numbers, and other cells as they are."""
    require_forecast_columns(forecasts, space)
    labelled = require_outcome_columns(outcomes, space)
    named = [*forecasts, *(() if labelled else outcomes), *([weight] if weight else ())]
    roles: Roles = dict.fromkeys(cells, "name") | dict.fromkeys(named, "number")
    expressions = [table.number(column) for column in named]
    if labelled:
        expressions.insert(len(forecasts), class_number(table.cell(outcomes[0]), space))
        roles |= {outcomes[0]: "label"}
    found = table.table([*expressions, *map(table.cell, cells)], roles)
    matrix = np.empty((found.num_rows, len(expressions)))
    for j in range(len(expressions)):
        matrix[:, j] = found.column(j).to_numpy()
    numbers = FileNumbers(table, space, forecasts, outcomes, weight, matrix, np.arange(len(matrix)))
    held = {name: np.empty(len(matrix), dtype=object) for name in cells}
    for place, column in enumerate(held.values(), start=len(expressions)):
        column[:] = found.column(place).to_pylist()
    return numbers, held
