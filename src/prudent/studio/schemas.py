"""Schemas of the HTTP interface: what the page asks, checked strictly, and where it starts."""

from typing import Annotated, Any, Literal

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
