"""What the columns of a table probably are; the page shows the guess, and people correct it."""

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from prudent.studio.schemas import LARGEST, Columns, ColumnSummary, Guess, Linear, Payoffs

_WITH_COMMA = re.compile(r"[-+]?[0-9]*(,[0-9]+)?")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3},[0-9]{3}")
_FORECASTS = re.compile(r"forecast|predict|prob|score|yhat|y_hat|estimate|^(p|f|pred)$", re.IGNORECASE)
_OUTCOMES = re.compile(r"outcome|actual|observ|target|label|truth|realis|realiz|^y$|^class$", re.IGNORECASE)
_WEIGHTS = re.compile(r"^(w|weight|weights|sample_weight)$", re.IGNORECASE)
_KEYS = re.compile(r"^(id|key|case|record)$|_id$|^id_", re.IGNORECASE)


def guess(columns: list[ColumnSummary]) -> Guess:
    """Say which columns are probably the forecast and the outcome, and start a decision on them."""
    names = [column.name for column in columns]
    given = {"weight": _first(_WEIGHTS, names), "key": _first(_KEYS, names)}
    rest = [column for column in columns if column.name not in given.values()]
    return _class_start(rest, given) or _number_start(rest, given)


def has_decimal_commas(columns: list[ColumnSummary]) -> bool:
    """True if a column has numbers with a comma that cannot stand before thousands."""
    for column in columns:
        values = [value.strip() for value in column.values if column.kind == "text"]
        written = [value for value in values if "," in value]
        if all(map(_WITH_COMMA.fullmatch, values)) and not all(map(_THOUSANDS.fullmatch, written)):
            return True
    return False


def _class_start(columns: list[ColumnSummary], given: dict[str, Any]) -> Guess | None:
    """Start with an outcome that is a class, and the probabilities of its values."""
    shares = {
        column.name.lower(): column.name
        for column in columns
        if column.lower is not None and column.lower >= 0 and (column.upper or 0) <= 1
    }
    for outcome in sorted(columns, key=lambda column: not _OUTCOMES.search(column.name)):
        found = _classes(outcome, shares)
        if found:
            names, classes = list(found), list(found.values())
            problem = Payoffs(
                kind="payoffs",
                actions=[f"treat as {name}" for name in classes],
                classes=classes,
                payoffs=np.eye(len(classes)).tolist(),
            )
            sentence = f"{outcome.name!r} looks like a class, and {', '.join(names)} like its probabilities."
            chosen = Columns(forecast=names, outcome=[outcome.name], **given)
            return Guess(columns=chosen, problem=problem, sentence=sentence)
    return None


def _number_start(columns: list[ColumnSummary], given: dict[str, Any]) -> Guess:
    """Start with one column of forecasts, and one of outcomes if there is one."""
    numbers = {column.name: column for column in columns if column.kind == "number"}
    outcome = _first(_OUTCOMES, numbers)
    others = [name for name in numbers if name != outcome]
    if not others:
        return Guess(columns=None, problem=None, sentence="No column of numbers was found that could be a forecast.")
    forecast = _first(_FORECASTS, others) or others[0]
    outcomes = [outcome] if outcome else [name for name in others if name != forecast][-1:]
    known = f"{outcomes[0]!r} looks like the outcome" if outcomes else "no outcome was found"
    sentence = f"{forecast!r} looks like the forecast; {known}."
    decision = _decision([numbers[name] for name in (forecast, *outcomes)])
    return Guess(columns=Columns(forecast=[forecast], outcome=outcomes, **given), problem=decision, sentence=sentence)


def _first(pattern: re.Pattern[str], names: Iterable[str]) -> str | None:
    return next(filter(pattern.search, names), None)


def _classes(outcome: ColumnSummary, shares: dict[str, str]) -> dict[str, str] | None:
    """Find the column of probabilities of each value of an outcome: its name is the value, after one prefix for all.

    ``shares`` are names of columns by the same in lower case. Returns values by columns, in the order of the columns.
    """
    labels = outcome.values
    if not 2 <= len(labels) <= 8:
        return None
    ending, found = labels[0].lower(), []
    for prefix in (name.removesuffix(ending) for name in shares if name.endswith(ending)):
        wanted = {prefix + label.lower(): label for label in labels}
        match = {name: wanted[lower] for lower, name in shares.items() if lower in wanted}
        if len(match) == len(labels) and outcome.name not in match and not prefix[-1:].isalnum():
            found.append(match)
    return found[0] if len(found) == 1 else None


def _decision(columns: list[ColumnSummary]) -> Linear | None:
    """Three actions, each best in one third of the range; a start to be edited. None in odd units.

    The range is rounded outwards to two digits, so that all rows lie inside; shares keep 0 and 1.
    """
    ends = [end for column in columns for end in (column.lower, column.upper) if end is not None]
    low, high = min(ends), max(ends)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    else:
        if low == high:
            low, high = low - 1, high + 1
        if max(abs(low), abs(high)) > LARGEST / 10 or high - low < 10 / LARGEST:
            return None
        step = 10.0 ** (math.floor(math.log10(max(high - low, abs(high)))) - 1)
        low, high = (float(f"{end * step:.12g}") for end in (math.floor(low / step), math.ceil(high / step)))
    third = (high - low) / 3
    costs = [0.0, low + third, 2 * low + 3 * third]
    return Linear(
        kind="linear",
        actions=["do little", "do some", "do much"],
        rewards=[[0.0], [1.0], [2.0]],
        costs=[float(f"{cost:.4g}") if abs(cost) > 1e-9 * third else 0.0 for cost in costs],
        lower=[low],
        upper=[high],
    )
