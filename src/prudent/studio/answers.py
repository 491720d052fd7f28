"""What the page gets: plain numbers, and the hash of the question that they belong to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, SkipValidation

from prudent.studio.questions import Columns, Problem

__all__ = [
    "Bars",
    "Crowd",
    "Curve",
    "DataSummary",
    "DecisionBand",
    "Example",
    "ExplanationAnswer",
    "Failure",
    "LadderAnswer",
    "PlayedAt",
    "PolicyAnswer",
    "RegionMap",
    "StressAnswer",
    "VerdictAnswer",
]


class BrokenRow(BaseModel):
    """A row of the data that breaks a rule."""

    row: int
    columns: list[str]
    message: str


class Failure(BaseModel):
    """What is wrong with a request, and where."""

    message: str
    where: str
    rows: list[BrokenRow] = []


class ColumnSummary(BaseModel):
    """What a first look at a column shows."""

    name: str
    kind: Literal["number", "text"]
    lower: float | None
    upper: float | None
    values: Annotated[list[str], Field(description="The first few different ones.")]


class Guess(BaseModel):
    """Columns and decision to start from."""

    columns: Columns | None
    problem: Problem | None
    sentence: str


class DataSummary(BaseModel):
    """Data that the server holds."""

    id: str
    name: str
    rows: int
    columns: list[ColumnSummary]
    guess: Guess


class Example(BaseModel):
    """Data that come with the library."""

    name: str
    title: str
    sentence: str


class Answer(BaseModel):
    """Every answer names its question."""

    inputs: Annotated[str, Field(description="SHA-256 of the request's body: the page shows no other question's.")]
    seconds: Annotated[float, Field(description="Spent on computing when it was asked for first.")]


class Curve(BaseModel):
    """The policy on forecasts of one coordinate."""

    forecast: list[float]
    shares: Annotated[list[list[float]], Field(description="One list per action.")]
    belief: list[float]


class DecisionBand(BaseModel):
    """A range of forecasts in which the same actions are played."""

    first: float
    last: float
    played: str


class Bars(BaseModel):
    """How often forecasts fall between edges."""

    edges: list[float]
    counts: list[float]


class Crowd(BaseModel):
    """Forecasts that lie close together."""

    at: list[float]
    share: float


class PlayedAt(BaseModel):
    """What is played at one forecast, in words."""

    forecast: list[float]
    played: str


class RegionMap(BaseModel):
    """The policy on forecasts of two coordinates or three classes, in the middles of small cells.

    With two coordinates cells are rectangles, along the second coordinate first. With three classes they are triangles:
    those that point up, with ``i`` steps of the first class and ``j`` of the second at least, then those that point
    down, again along ``j`` first.
    """

    kind: Literal["plane", "triangle"]
    steps: Annotated[int, Field(description="Cells along an edge.")]
    likeliest: Annotated[list[int], SkipValidation, Field(description="The action played most often in each cell.")]
    hundredths: Annotated[list[int], SkipValidation, Field(description="How often that is.")]
    crowds: Annotated[list[Crowd], Field(description="Where forecasts are.")]
    examples: list[PlayedAt]


class PolicyAnswer(Answer):
    """What to do, and what it guarantees."""

    rows: int
    left_out: Annotated[str | None, Field(description="How many rows break a rule and why, if they were left out.")]
    snapped: int
    rungs: Annotated[list[str], Field(description="Those that the policy stands on.")]
    slack: Annotated[float, Field(description="The largest radius, in the guarantee's units.")]
    guaranteed: float
    best_possible: float
    proven: bool
    certificate: str
    nominal: float
    best_respond: Annotated[float, Field(description="What believing earns if the forecasts are right.")]
    cost_of_caution: float
    play_safe: Annotated[float, Field(description="What the best action without information guarantees.")]
    actions: list[str]
    shares: Annotated[list[float], Field(description="How often the policy plays each action on these rows.")]
    shares_best_respond: list[float]
    fit_seconds: float
    curve: Curve | None
    bands: list[DecisionBand]
    histogram: Bars | None
    regions: RegionMap | None


class Moment(BaseModel):
    """One test of the guarantee."""

    name: str
    estimate: float
    lower: float
    upper: float
    p_value: float


class VerdictAnswer(Answer):
    """Whether to believe the forecasts in this decision."""

    kind: Literal["trust", "hedge", "repair", "not_enough_data"]
    sentence: str
    confidence: float
    moments: list[Moment]


class StressRow(BaseModel):
    """One policy in all worlds."""

    policy: str
    nominal: float
    realised: float | None
    worst: float
    under: list[float]


class StressAnswer(Answer):
    """Three policies in each other's worst worlds."""

    policies: list[StressRow]
    lower: float
    upper: float


class RungAnswer(BaseModel):
    """One guarantee on the ladder."""

    name: str
    holds: bool
    p_value: float
    slack: float
    guaranteed: float
    nominal: float
    given_up: float
    realised: float


class LadderAnswer(Answer):
    """What each guarantee is worth on these data."""

    rungs: list[RungAnswer]
    best: str
    confidence: float


class ExplanationAnswer(Answer):
    """Why this action at this forecast."""

    story: str
    actions: list[str]
    probabilities: list[float]
    belief: list[float]
    utility_at_forecast: list[float]
    utility_at_belief: list[float]
