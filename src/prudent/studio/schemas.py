"""Schemas of the HTTP interface: what the page asks, checked strictly, and what it gets."""

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SkipValidation

from prudent.problem import DecisionProblem, problem_from_table

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
    key: Annotated[Name | None, Field(description="For draws in SQL: a column that identifies the record.")] = None


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
        space = {"lower": self.lower, "upper": self.upper}
        return {"actions": self.actions, "rewards": self.rewards, "costs": self.costs, "space": space}


class Payoffs(Checked):
    """The outcome is a class; one payoff per action and class."""

    kind: Literal["payoffs"]
    actions: Actions
    classes: Annotated[list[Name], Field(min_length=2, max_length=MOST_COLUMNS)]
    payoffs: Table

    def table(self) -> dict[str, Any]:
        """Return the keys of a problem file."""
        return {"actions": self.actions, "classes": self.classes, "payoffs": self.payoffs}


Problem = Annotated[Linear | Payoffs, Field(discriminator="kind")]


class Question(Checked):
    """Everything that an answer depends on."""

    data: Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="The id that an upload returned.")]
    columns: Columns
    problem: Problem
    guarantee: Annotated[
        Literal["auto"] | Annotated[list[RungName], Field(min_length=1, max_length=6)],
        Field(description="Rungs of the ladder that hold together; auto stands on the best one."),
    ] = "auto"
    slack: Annotated[
        Literal["audit"] | Annotated[Number, Field(ge=0)],
        Field(description="How far the guarantee may be off; audit measures it on the outcomes."),
    ] = "audit"
    confidence: Annotated[float, Field(ge=0.5, le=0.999999, allow_inf_nan=False)] = 0.95
    skip_broken_rows: Annotated[bool, Field(description="Go on without rows that break a rule, and say so.")] = False
    pure: Annotated[bool, Field(description="The best rule without randomness.")] = False

    @cached_property
    def decision(self) -> DecisionProblem:
        """The library's problem."""
        return problem_from_table(self.problem.table())

    @property
    def rungs(self) -> tuple[str, ...]:
        """Names of the rungs that were picked, each once; none under "auto"."""
        return () if self.guarantee == "auto" else tuple(dict.fromkeys(self.guarantee))


class Case(Checked):
    """One forecast to be explained."""

    question: Question
    forecast: Row


class Download(Checked):
    """A file to take away."""

    question: Question
    name: Annotated[str, Field(max_length=200, description="Of the data, for the reader of the file.")] = "data.csv"
    dialect: Literal["duckdb", "postgres", "spark"] = "duckdb"


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

    inputs: Annotated[str, Field(description="SHA-256 of the request's body: the page shows no other question's.")] = ""
    seconds: Annotated[float, Field(description="Spent on computing the answer.")] = 0.0


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


class DensityBin(BaseModel):
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
    crowds: Annotated[list[DensityBin], Field(description="Where forecasts are.")]
    examples: list[PlayedAt]


class PolicyAnswer(Answer):
    """What to do, and what it guarantees."""

    rows: int
    left_out: Annotated[str | None, Field(description="How many rows break a rule and why, if they were left out.")]
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
