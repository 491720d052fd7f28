"""A first look at a table, and what its columns probably are; the page shows the guess, and people correct it."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from prudent.studio.answers import ColumnSummary, Guess
from prudent.studio.questions import LARGEST, LONGEST_NAME, Columns, Linear, Payoffs
from prudent.tables import BadCellError, Table, to_numbers, to_values

__all__ = ["guess", "look_at", "unusable_columns"]

_SHOWN = 12
_MOST_CLASSES = 8
_FORECASTS = re.compile(r"forecast|predict|prob|score|yhat|y_hat|estimate|^(p|f|pred)$", re.IGNORECASE)
_OUTCOMES = re.compile(r"outcome|actual|observ|target|label|truth|realis|realiz|^y$|^class$", re.IGNORECASE)
_WEIGHTS = re.compile(r"^(w|weight|weights|sample_weight)$", re.IGNORECASE)
_KEYS = re.compile(r"^(id|key|case|record)$|_id$|^id_", re.IGNORECASE)


def unusable_columns(table: Table) -> dict[int, str]:
    """Find the columns that no question can name, by position, and say why."""
    found = {}
    for position, name in enumerate(table.columns):
        if not name:
            found[position] = f"column {position + 1} has no name"
        elif len(name) > LONGEST_NAME:
            found[position] = f"the name of column {position + 1} has more than {LONGEST_NAME} characters"
    return found


def look_at(table: Table, columns: list[str], most_rows: int) -> tuple[int, list[ColumnSummary]]:
    """Count the rows, stopping once there are too many, and summarise columns."""
    rows = 0
    seen: dict[str, _Seen] = {column: _Seen() for column in columns}
    for first, arrays in table.parts(columns):
        for column, array in arrays.items():
            seen[column].add(array)
            rows = first + len(array)
        if rows > most_rows:
            break
    return rows, [found.summary(column) for column, found in seen.items()]


class _Seen:
    """What is known about a column so far."""

    def __init__(self) -> None:
        self.numeric, self.lower, self.upper = True, math.inf, -math.inf
        self.values: dict[str, None] = {}

    def add(self, array: Any) -> None:
        if len(self.values) <= _SHOWN:
            self.values |= dict.fromkeys(_texts(array.slice(0, 2_000)))
        if not self.numeric:
            return
        try:
            numbers = to_numbers(array, True)
        except BadCellError:
            # One bad cell among numbers is for people to see, and does not make a column text.
            numbers = _most_numbers(array)
            self.numeric = numbers is not None
        if numbers is not None and not np.isnan(numbers).all():
            self.lower = min(self.lower, float(np.nanmin(numbers)))
            self.upper = max(self.upper, float(np.nanmax(numbers)))

    def summary(self, name: str) -> ColumnSummary:
        numeric = self.numeric and self.lower <= self.upper
        return ColumnSummary(
            name=name,
            kind="number" if numeric else "text",
            lower=self.lower if numeric else None,
            upper=self.upper if numeric else None,
            values=[value[:40] for value in self.values][: _SHOWN + 1],
        )


def _texts(array: Any) -> list[str]:
    try:
        values = to_values(array, True).tolist()
    except BadCellError:
        return []
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values if value not in (None, "")]


def _most_numbers(array: Any) -> Any:
    """Read the first rows one by one: numbers, unless fewer than half are."""
    numbers = []
    for position in range(min(len(array), 200)):
        try:
            numbers.append(float(to_numbers(array.slice(position, 1), True)[0]))
        except BadCellError as error:
            if error.row is None:
                return None
    return np.array(numbers) if 2 * len(numbers) >= min(len(array), 200) else None


def guess(columns: list[ColumnSummary]) -> Guess:
    """Say which columns are probably the forecast and the outcome, and start a decision on them."""
    weight = next((column.name for column in columns if _WEIGHTS.search(column.name)), None)
    key = next((column.name for column in columns if _KEYS.search(column.name)), None)
    rest = [column for column in columns if column.name not in (weight, key)]
    for outcome in sorted(rest, key=lambda column: not _OUTCOMES.search(column.name)):
        found = _classes(outcome, rest)
        if found:
            classes, names = found
            chosen = Columns(forecast=names, outcome=[outcome.name], weight=weight, key=key)
            payoffs = [[float(i == j) for j in range(len(classes))] for i in range(len(classes))]
            problem = Payoffs(
                kind="payoffs", actions=[f"treat as {name}" for name in classes], classes=classes, payoffs=payoffs
            )
            sentence = f"{outcome.name!r} looks like a class, and {', '.join(names)} like its probabilities."
            return Guess(columns=chosen, problem=problem, sentence=sentence)
    numbers = [column for column in rest if column.kind == "number"]
    result = next((column for column in numbers if _OUTCOMES.search(column.name)), None)
    forecast = next((column for column in numbers if _FORECASTS.search(column.name) and column is not result), None)
    if forecast is None:
        forecast = next((column for column in numbers if column is not result), None)
    if forecast is None:
        return Guess(columns=None, problem=None, sentence="No column of numbers was found that could be a forecast.")
    if result is None:
        result = next((column for column in reversed(numbers) if column is not forecast), None)
    chosen = Columns(forecast=[forecast.name], outcome=[] if result is None else [result.name], weight=weight, key=key)
    known = "no outcome was found" if result is None else f"{result.name!r} looks like the outcome"
    lower, upper = _bounds([forecast] if result is None else [forecast, result])
    return Guess(
        columns=chosen, problem=_linear(lower, upper), sentence=f"{forecast.name!r} looks like the forecast; {known}."
    )


def _classes(outcome: ColumnSummary, columns: list[ColumnSummary]) -> tuple[list[str], list[str]] | None:
    """Find a column of probabilities for each value of an outcome: named like it, perhaps with something in front."""
    labels = outcome.values
    if not 2 <= len(labels) <= _MOST_CLASSES:
        return None
    shares = [
        column
        for column in columns
        if column is not outcome and column.lower is not None and column.lower >= 0 and (column.upper or 0) <= 1
    ]
    found = []
    for label in labels:
        wanted = re.compile(rf"(^|[^0-9a-z]){re.escape(label)}$", re.IGNORECASE)
        match = [column.name for column in shares if wanted.search(column.name)]
        if len(match) != 1:
            return None
        found.append(match[0])
    order = sorted(range(len(labels)), key=lambda j: [column.name for column in columns].index(found[j]))
    return ([labels[j] for j in order], [found[j] for j in order]) if len(set(found)) == len(found) else None


def _bounds(columns: list[ColumnSummary]) -> tuple[float, float]:
    """Round outwards to two digits, so that all rows lie inside; shares keep 0 and 1."""
    low = min(column.lower for column in columns if column.lower is not None)
    high = max(column.upper for column in columns if column.upper is not None)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if max(abs(low), abs(high)) > LARGEST:
        return low, high  # other units are needed, and squares and differences of these may overflow
    step = 10.0 ** math.floor(math.log10(max(high - low, abs(high), 1e-300)) - 1)
    lower, upper = math.floor(low / step) * step, math.ceil(high / step) * step
    lower, upper = float(f"{lower:.12g}"), float(f"{upper:.12g}")
    return (lower, upper) if lower < upper else (lower - 1, upper + 1)


def _linear(lower: float, upper: float) -> Linear | None:
    """Three actions that best respond in three thirds of the range; a start to be edited. None in odd units."""
    width = upper - lower
    if not (width / 10 >= 1 / LARGEST and max(abs(lower), abs(upper)) <= LARGEST / 10):
        return None
    thresholds = [lower + width / 3, lower + 2 * width / 3]
    costs = [0.0, thresholds[0], thresholds[0] + thresholds[1]]
    return Linear(
        kind="linear",
        actions=["do little", "do some", "do much"],
        rewards=[[0.0], [1.0], [2.0]],
        costs=[float(f"{cost:.4g}") if abs(cost) > 1e-9 * width else 0.0 for cost in costs],
        lower=[lower],
        upper=[upper],
    )
