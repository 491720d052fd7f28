"""What the columns of a table probably are; the page shows the guess, and people correct it."""

import math
import re

from prudent.studio.schemas import LARGEST, Columns, ColumnSummary, Guess, Linear, Payoffs

_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]*,[0-9]+\s*|[-+]?[0-9]+")
_FORECASTS = re.compile(r"forecast|predict|prob|score|yhat|y_hat|estimate|^(p|f|pred)$", re.IGNORECASE)
_OUTCOMES = re.compile(r"outcome|actual|observ|target|label|truth|realis|realiz|^y$|^class$", re.IGNORECASE)
_WEIGHTS = re.compile(r"^(w|weight|weights|sample_weight)$", re.IGNORECASE)
_KEYS = re.compile(r"^(id|key|case|record)$|_id$|^id_", re.IGNORECASE)


def guess(columns: list[ColumnSummary]) -> Guess:
    """Say which columns are probably the forecast and the outcome, and start a decision on them."""
    start = _start(columns)
    for column in columns:
        numbers = all(_DECIMAL_COMMA.fullmatch(value) for value in column.values)
        if column.kind == "text" and numbers and any("," in value for value in column.values):
            start.sentence += (
                f" {column.name!r} has numbers with a decimal comma ({column.values[0]}): save them with a point."
            )
            break
    return start


def _start(columns: list[ColumnSummary]) -> Guess:
    weight = next((column.name for column in columns if _WEIGHTS.search(column.name)), None)
    key = next((column.name for column in columns if _KEYS.search(column.name)), None)
    rest = [column for column in columns if column.name not in (weight, key)]
    shares = {
        column.name.lower(): (position, column.name)
        for position, column in enumerate(rest)
        if column.lower is not None and column.lower >= 0 and (column.upper or 0) <= 1
    }
    for outcome in sorted(rest, key=lambda column: not _OUTCOMES.search(column.name)):
        found = _classes(outcome, shares)
        if found:
            names, classes = (list(part) for part in zip(*found, strict=True))
            chosen = Columns(forecast=names, outcome=[outcome.name], weight=weight, key=key)
            payoffs = [[float(i == j) for j in range(len(classes))] for i in range(len(classes))]
            problem = Payoffs(
                kind="payoffs", actions=[f"treat as {name}" for name in classes], classes=classes, payoffs=payoffs
            )
            sentence = f"{outcome.name!r} looks like a class, and {', '.join(names)} like its probabilities."
            return Guess(columns=chosen, problem=problem, sentence=sentence)
    numbers = [column for column in rest if column.kind == "number"]
    result = next((column for column in numbers if _OUTCOMES.search(column.name)), None)
    others = [column for column in numbers if column is not result]
    if not others:
        return Guess(columns=None, problem=None, sentence="No column of numbers was found that could be a forecast.")
    forecast = next((column for column in others if _FORECASTS.search(column.name)), others[0])
    if result is None:
        result = next((column for column in reversed(others) if column is not forecast), None)
    outcomes = [] if result is None else [result]
    chosen = Columns(forecast=[forecast.name], outcome=[one.name for one in outcomes], weight=weight, key=key)
    known = "no outcome was found" if result is None else f"{result.name!r} looks like the outcome"
    sentence = f"{forecast.name!r} looks like the forecast; {known}."
    return Guess(columns=chosen, problem=_linear(*_bounds([forecast, *outcomes])), sentence=sentence)


def _classes(outcome: ColumnSummary, shares: dict[str, tuple[int, str]]) -> list[tuple[str, str]] | None:
    """Find the column of probabilities of each value of an outcome: its name is the value, after one prefix for all.

    ``shares`` are columns by their names in lower case. Returns names and values, in the order of the columns.
    """
    labels = outcome.values
    if not 2 <= len(labels) <= 8:
        return None
    endings = [label.lower() for label in labels]
    starts = [name.removesuffix(endings[0]) for name in shares if name.endswith(endings[0])]
    prefixes = [
        start
        for start in starts
        if not start[-1:].isalnum()
        and all(start + ending in shares and start + ending != outcome.name.lower() for ending in endings)
    ]
    if len(prefixes) != 1 or len(set(endings)) < len(endings):
        return None
    found = sorted((shares[prefixes[0] + ending], label) for ending, label in zip(endings, labels, strict=True))
    return [(name, label) for (_, name), label in found]


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
