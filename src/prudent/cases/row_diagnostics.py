"""Which rows of files cannot be used, and why, by row and cell."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen
from prudent.cases.file_sets import Names
from prudent.cases.file_table import FileTable
from prudent.errors import InputError, OutsideSpaceError
from prudent.spaces import SNAP_TOLERANCE, Space

_Fault = tuple[tuple[str, ...], str]  # columns, and what is wrong there


@frozen
class Rule:
    """Rows that break a rule.

    Attributes
    ----------
    reason : str
        What is wrong with all of them.
    broken : array of shape (n,)
        True for rows that break it.
    explain : callable
        From a row to the columns at fault and what is wrong there.
    advice : str
        What to do, as a sentence of its own.
    """

    reason: str
    broken: BoolArray
    explain: Callable[[int], _Fault]
    advice: str = ""


@dataclass(frozen=True)
class BrokenCell:
    """A cell, or several of one row together, that break a rule; the first row is 1."""

    row: int
    columns: tuple[str, ...]
    message: str


@frozen
class UnusableRows:
    """Rows that break a rule of :func:`prudent.cases.file_rows.read_sample`.

    Attributes
    ----------
    rows : array of shape (n,)
        True for those.
    reasons : dict of str to int
        What is wrong, and for how many rows; each counts once, by the first rule that it breaks.
    """

    rows: BoolArray
    reasons: dict[str, int]

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.rows.sum())

    def __str__(self) -> str:
        why = "; ".join(f"{reason} ({count:,})" for reason, count in self.reasons.items())
        return f"{self.count:,} of {self.rows.size:,} rows left out because {why}"


def rules_of(
    table: FileTable,
    space: Space,
    forecasts: Names,
    outcomes: Names,
    weight: str | None,
    matrix: FloatArray,
    rows: IntArray,
    missing: Names = (),
) -> list[Rule]:
    """Apply all rules to what :func:`prudent.cases.file_rows.read_matrix` read; ``rows`` are numbers in the files.

    TableCases in ``missing`` may have empty cells.
    """
    labelled = space.is_simplex and len(outcomes) == 1
    rules = []
    for start, group in ((0, forecasts), (len(forecasts), () if labelled else outcomes)):
        points = matrix[:, start : start + len(group)]
        rules += [_number_rule(table, column, points[:, j], rows, missing) for j, column in enumerate(group)]
        if group:
            rules.append(_space_rule(space, tuple(group), points))
    if labelled:
        rules.append(_class_rule(table, space, outcomes[0], matrix[:, len(forecasts)], rows, missing))
    if weight is not None:
        rules.append(_number_rule(table, weight, matrix[:, -1], rows, ()))
        rules.append(_negative_rule(weight, matrix[:, -1]))
    return rules


def require_usable(table: FileTable, rules: Sequence[Rule], rows: IntArray) -> None:
    """Refuse rows that break a rule: name the first, and what is wrong with it."""
    first = min(rules, key=lambda rule: int(rule.broken.argmax()) if rule.broken.any() else len(rows))
    if not first.broken.any():
        return
    row = int(first.broken.argmax())
    columns, message = first.explain(row)
    more = _and_more(int(first.broken.sum()))
    raise InputError(f"{table.at(int(rows[row]), *columns)}: {message}{more}.{first.advice}")


@contextmanager
def naming_rows(table: FileTable, columns: Names, forecasts: FloatArray, rows: IntArray) -> Iterator[None]:
    """Let errors about forecasts on the edge of the space, which a guarantee refuses, name file, row and column."""
    try:
        yield
    except OutsideSpaceError as error:
        row = error.rows[0]
        shown = ", ".join(f"{value:.10g}" for value in forecasts[row])
        raise InputError(
            f"{table.at(int(rows[row]), *columns)}: {shown} lies on the edge of the outcome space, and the guarantee "
            f"takes logarithms{_and_more(len(error.rows))}."
        ) from error


def _and_more(count: int) -> str:
    return f" (and {count - 1:,} more rows)" if count > 1 else ""


def find_broken_rows(
    table: FileTable,
    space: Space,
    forecasts: Names,
    outcomes: Names = (),
    weight: str | None = None,
    *,
    limit: int = 100,
) -> list[BrokenCell]:
    r"""List, in row order, what breaks the rules of :func:`~prudent.cases.file_rows.read_sample`; a few at most.

    Examples
    --------
    >>> import prudent
    >>> from prudent.cases.file_table import open_bytes
    >>> from prudent.cases.row_diagnostics import find_broken_rows
    >>> space = prudent.Box(0, 1).with_dimension(1)
    >>> with open_bytes(b"f,y\n0.5,1\nlow,0\n1.5,1\n", "rows.csv") as table:
    ...     [(cell.row, cell.message) for cell in find_broken_rows(table, space, ["f"], ["y"])]
    [(2, "'low' is not a number"), (3, '1.5 lies outside the outcome space, [0, 1]')]
    """
    rules = _rules_of_table(table, space, forecasts, outcomes, weight)
    broken = sorted(
        (int(row), place) for place, rule in enumerate(rules) for row in np.flatnonzero(rule.broken)[:limit]
    )
    return [BrokenCell(row + 1, *rules[place].explain(row)) for row, place in broken[:limit]]


def find_unusable_rows(
    table: FileTable, space: Space, forecasts: Names, outcomes: Names = (), weight: str | None = None
) -> UnusableRows:
    r"""Find all rows that break a rule, and count them by what is wrong.

    Examples
    --------
    >>> import prudent
    >>> from prudent.cases.file_table import open_bytes
    >>> from prudent.cases.row_diagnostics import find_unusable_rows
    >>> with open_bytes(b"f,y\n0.5,1\nlow,0\n1.5,1\n", "rows.csv") as table:
    ...     print(find_unusable_rows(table, prudent.Box(0, 1).with_dimension(1), ["f"], ["y"]))
    2 of 3 rows left out because 'f' is empty or not a finite number (1); 'f' lies outside the outcome space (1)
    """
    rules = _rules_of_table(table, space, forecasts, outcomes, weight)
    found, reasons = np.zeros_like(rules[0].broken), {}
    for rule in rules:
        fresh = int((rule.broken & ~found).sum())
        if fresh:
            reasons[rule.reason] = fresh
        found |= rule.broken
    return UnusableRows(found, reasons)


def _rules_of_table(
    table: FileTable, space: Space, forecasts: Names, outcomes: Names, weight: str | None
) -> list[Rule]:
    from prudent.cases.file_rows import read_matrix

    matrix, _ = read_matrix(table, space, forecasts, outcomes, weight)
    return rules_of(table, space, forecasts, outcomes, weight, matrix, np.arange(len(matrix)))


def _number_rule(table: FileTable, column: str, numbers: FloatArray, rows: IntArray, missing: Names) -> Rule:
    def explain(row: int) -> _Fault:
        cell = table.written(int(rows[row]), column)
        if cell is None or not str(cell).strip():
            return (column,), "the cell is empty, and a number is needed"
        try:
            return (column,), f"the number must be finite, and it is {float(cell)}"
        except ValueError:
            return (column,), f"{str(cell)[:40]!r} is not a number"

    broken = np.isinf(numbers) if column in missing else ~np.isfinite(numbers)
    return Rule(f"{column!r} is empty or not a finite number", broken, explain)


def _negative_rule(column: str, weights: FloatArray) -> Rule:
    def explain(row: int) -> _Fault:
        return (column,), f"a weight must not be negative; got {weights[row]:g}"

    return Rule(f"{column!r} is negative", weights < 0, explain)


def _space_rule(space: Space, columns: tuple[str, ...], points: FloatArray) -> Rule:
    def explain(row: int) -> _Fault:
        point = points[row]
        if space.is_simplex:
            shown = ", ".join(f"{value:.10g}" for value in point)
            message = f"probabilities must not be negative and sum to 1; {shown} sum to {point.sum():.10g}"
            return columns, message
        low, high = space.bounds
        j = int(np.argmax(np.maximum(low - point, point - high) / (high - low)))
        return (columns[j],), f"{point[j]:.10g} lies outside the outcome space, [{low[j]:g}, {high[j]:g}]"

    broken: BoolArray = np.asarray(np.isfinite(points).all(axis=1))
    broken[broken] = space.distance(points[broken]) > SNAP_TOLERANCE
    reason = f"{' and '.join(map(repr, columns))} lies outside the outcome space"
    return Rule(reason, broken, explain, " Fix the forecaster or the space.")


def _class_rule(
    table: FileTable, space: Space, column: str, numbers: FloatArray, rows: IntArray, missing: Names
) -> Rule:
    def explain(row: int) -> _Fault:
        cell = table.written(int(rows[row]), column)
        if np.isnan(numbers[row]):
            return (column,), "the cell is empty"
        classes = getattr(space, "classes", None) or range(space.dimension)
        return (column,), f"{cell!r} is not one of the classes {', '.join(map(repr, classes))}"

    broken = numbers < 0 if column in missing else ~(numbers >= 0)
    return Rule(f"{column!r} is empty or not one of the classes", broken, explain)
