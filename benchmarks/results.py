"""What a run leaves behind: measurements, rows, and the machine they were taken on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.child import Outcome

__all__ = ["PRUDENT", "Measurement", "Results", "Row"]

PRUDENT = "Prudent"


@dataclass(frozen=True)
class Measurement:
    """One contestant on one instance.

    Attributes
    ----------
    family, n : int
    contestant : str
    kind : str
        "prudent", "as written" or "expert".
    outcome : str
        "done", "time-out", "behind" (stopped, since others were much faster), "failed" or "not tried"; ``note`` says
        more.
    stopped : float or None
        Seconds after which the run was ended.
    seconds : float or None
        Total: building the model and solving it.
    solver_seconds : float or None
        Of these, inside the solver, where CVXPY tells.
    extra_bytes : int or None
        Peak memory above imports and arrays.
    lower, upper : float or None
        Prudent's certified bounds; for a competitor both are its value.
    """

    family: int
    n: int
    contestant: str
    kind: str
    utility_range: float
    outcome: str
    note: str = ""
    stopped: float | None = None
    seconds: float | None = None
    solver_seconds: float | None = None
    extra_bytes: int | None = None
    lower: float | None = None
    upper: float | None = None
    status: str | None = None
    method: str | None = None
    actions_used: int | None = None

    @property
    def done(self) -> bool:
        """True if there is a time and a value."""
        return self.outcome == Outcome.DONE

    @property
    def relative_gap(self) -> float:
        """Certified gap as a share of the utility range."""
        if self.lower is None or self.upper is None:
            return float("nan")
        return (self.upper - self.lower) / self.utility_range


@dataclass(frozen=True)
class Row:
    """One quantity with a goal, taken apart from the races; ``details`` are what it was computed from."""

    number: int
    what: str
    n: int | None
    unit: str
    at_most: bool
    outcome: str
    note: str = ""
    value: float | None = None
    goal: float | None = None
    details: dict[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the goal was met; None without a goal."""
        if self.goal is None:
            return None
        if self.value is None:
            return False
        return self.value <= self.goal if self.at_most else self.value >= self.goal


@dataclass
class Results:
    """Everything measured so far."""

    quick: bool
    limit: float
    environment: dict[str, Any]
    state: str = "running"
    measurements: list[Measurement] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def of(self, family: int, n: int | None = None) -> list[Measurement]:
        """List the measurements of a family, at one size or at all."""
        return [item for item in self.measurements if item.family == family and n in (None, item.n)]

    def to_dict(self) -> dict[str, Any]:
        """Describe the run for a file."""
        return {"schema": 1, **asdict(self)}
