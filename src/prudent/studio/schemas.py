"""Schemas of the HTTP interface: what the page asks, checked strictly, and where it starts.

What the columns of a table probably are is guessed; the page shows the guess, and people correct it.
"""

import math
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_ACTIONS, MOST_COLUMNS = 50, 20
LONGEST_NAME = 200

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
LARGEST = 1e12


def _of_usual_size(value: float) -> float:
    """Refuse units in which squares overflow or vanish."""
    if value and not 1 / LARGEST <= abs(value) <= LARGEST:
        raise ValueError(f"numbers must be 0 or between 1e-12 and 1e12 in size, and this is {value:g}; use other units")
    return value


Number = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_of_usual_size)]
Row = Annotated[list[Number], Field(min_length=1, max_length=MOST_COLUMNS)]
Table = Annotated[list[Row], Field(min_length=1, max_length=MOST_ACTIONS)]
Actions = Annotated[list[Name], Field(min_length=1, max_length=MOST_ACTIONS)]
RungName = Literal["nothing", "unbiased", "self-orthogonal", "bins", "utility-calibrated", "decision-calibrated"]


class Checked(BaseModel):
    """A part of a request: unknown fields are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Columns(Checked):
    """Which columns of the data play which part."""

    forecast: Annotated[list[Name], Field(min_length=1, max_length=MOST_COLUMNS)]
    outcome: Annotated[list[Name], Field(max_length=MOST_COLUMNS)] = []
    weight: Name | None = None
    key: Name | None = None  # identifies the record, for draws in SQL
    period: Name | None = None  # rows of one period depend on each other
    context: Annotated[list[Name], Field(max_length=MOST_COLUMNS)] = []  # what else is known at decision time
    every: Literal["day", "week", "month", "quarter", "year"] | None = None  # where periods are dates


class Linear(Checked):
    """Utility is reward times outcome minus cost; one reward per action and column of the outcome."""

    kind: Literal["linear"]
    actions: Actions
    rewards: Table
    costs: Annotated[list[Number], Field(min_length=1, max_length=MOST_ACTIONS)]
    lower: Row
    upper: Row

    def table(self) -> dict[str, Any]:
        """Return the keys of a problem file."""
        ends = {"lower", "upper"}
        return {**self.model_dump(exclude={"kind", *ends}), "space": self.model_dump(include=ends)}


class Payoffs(Checked):
    """The outcome is a class; one payoff per action and class."""

    kind: Literal["payoffs"]
    actions: Actions
    classes: Annotated[list[Name], Field(min_length=2, max_length=MOST_COLUMNS)]
    payoffs: Table

    def table(self) -> dict[str, Any]:
        """Return the keys of a problem file."""
        return self.model_dump(exclude={"kind"})


Problem = Annotated[Linear | Payoffs, Field(discriminator="kind")]


class Question(Checked):
    """Everything that an answer depends on."""

    data: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]  # the id that an upload returned
    columns: Columns
    problem: Problem
    # Guarantees of the ladder that hold together; auto takes the best one.
    guarantee: Literal["auto"] | Annotated[list[RungName], Field(min_length=1, max_length=6)] = "auto"
    # How far the guarantee may be off; audit measures it on the outcomes.
    slack: Literal["audit"] | Annotated[Number, Field(ge=0)] = "audit"
    confidence: Annotated[float, Field(ge=0.5, le=0.999999, allow_inf_nan=False)] = 0.95
    skip_broken_rows: bool = False  # go on without rows that break a rule, and say so
    # At most so many rows get an action, or such a share of them: treat=100 or treat=20%.
    capacity: Annotated[list[Name], Field(max_length=MOST_ACTIONS)] = []

    @property
    def reading(self) -> dict[str, Any]:
        """How rows are read, besides their columns of numbers."""
        every = self.columns.every if self.columns.period else None
        return {"every": every, "context": self.columns.context, "skip_broken": self.skip_broken_rows}

    @property
    def rungs(self) -> tuple[str, ...]:
        """Names of the rungs that were picked, each once; none under "auto"."""
        return () if self.guarantee == "auto" else tuple(dict.fromkeys(self.guarantee))


class Case(Checked):
    """One forecast to be explained."""

    question: Question
    forecast: Row
    context: dict[Name, str | int] = {}  # where the rule looks at more


class Download(Checked):
    """A file to take away."""

    question: Question
    name: Annotated[str, Field(max_length=LONGEST_NAME)] = "data.csv"  # of the data, for the reader of the file
    dialect: Literal["duckdb", "spark"] = "duckdb"


class ColumnSummary(BaseModel):
    """What a first look at a column shows."""

    name: str
    kind: Literal["number", "text"]
    lower: float | None = None
    upper: float | None = None
    values: list[str]  # the first few different ones


class Guess(BaseModel):
    """Columns and decision to start from."""

    columns: Columns | None
    problem: Problem | None
    sentence: str


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
