"""What the columns of a table probably are; the page shows the guess, and people correct it."""

from __future__ import annotations

import math
import re

from prudent.studio.answers import ColumnSummary, Guess
from prudent.studio.questions import LARGEST, Columns, Linear, Payoffs

__all__ = ["guess"]

_MOST_CLASSES = 8
_LONGEST_LABEL = 40
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]*,[0-9]+\s*|[-+]?[0-9]+")
_IN_WORDS = re.compile(r"[0-9a-z]")
_FORECASTS = re.compile(r"forecast|predict|prob|score|yhat|y_hat|estimate|^(p|f|pred)$", re.IGNORECASE)
_OUTCOMES = re.compile(r"outcome|actual|observ|target|label|truth|realis|realiz|^y$|^class$", re.IGNORECASE)
_WEIGHTS = re.compile(r"^(w|weight|weights|sample_weight)$", re.IGNORECASE)
_KEYS = re.compile(r"^(id|key|case|record)$|_id$|^id_", re.IGNORECASE)


def guess(columns: list[ColumnSummary]) -> Guess:
    """Say which columns are probably the forecast and the outcome, and start a decision on them."""
    start = _start(columns)
    for column in columns:
        if column.kind == "text" and any("," in value for value in column.values):
            if not all(_DECIMAL_COMMA.fullmatch(value) for value in column.values):
                continue
            hint = f"{column.name!r} has numbers with a decimal comma ({column.values[0]}): save them with a point."
            return start.model_copy(update={"sentence": f"{start.sentence} {hint}"})
    return start


def _start(columns: list[ColumnSummary]) -> Guess:
    weight = next((column.name for column in columns if _WEIGHTS.search(column.name)), None)
    key = next((column.name for column in columns if _KEYS.search(column.name)), None)
    rest = [column for column in columns if column.name not in (weight, key)]
    endings = _shares_by_ending(rest)
    for outcome in sorted(rest, key=lambda column: not _OUTCOMES.search(column.name)):
        found = _classes(outcome, endings)
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


def _shares_by_ending(columns: list[ColumnSummary]) -> dict[str, list[tuple[int, str]]]:
    """Look columns that may be probabilities up by how their names end, from the start of a word on."""
    found: dict[str, list[tuple[int, str]]] = {}
    for position, column in enumerate(columns):
        if column.lower is not None and column.lower >= 0 and (column.upper or 0) <= 1:
            name = column.name.lower()
            for start in range(max(0, len(name) - _LONGEST_LABEL), len(name)):
                if start == 0 or not _IN_WORDS.match(name[start - 1]):
                    found.setdefault(name[start:], []).append((position, column.name))
    return found


def _classes(outcome: ColumnSummary, endings: dict[str, list[tuple[int, str]]]) -> tuple[list[str], list[str]] | None:
    """Find a column of probabilities for each value of an outcome: named like it, perhaps with something in front."""
    labels = outcome.values
    if not 2 <= len(labels) <= _MOST_CLASSES:
        return None
    found = []
    for label in labels:
        match = endings.get(label.lower(), [])
        if len(match) <= 2:
            match = [one for one in match if one[1] != outcome.name]
        if len(match) != 1:
            return None
        found.append((match[0], label))
    if len({share for share, _ in found}) < len(found):
        return None
    found.sort()
    return [label for _, label in found], [name for (_, name), _ in found]


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
