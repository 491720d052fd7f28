"""Situations in which the truth is known: forecasts that err in known ways, decisions, and what becomes of advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import prudent

__all__ = ["CALIBRATED", "CONFIDENCE", "ERRORS", "WORLDS", "Judged", "Row", "World", "judge", "rows_of", "simulate"]

Array = NDArray[np.float64]

CONFIDENCE = 0.95
_GRID = (np.arange(20_000) + 0.5) / 20_000  # uniforms at which means over all forecasts are computed


@dataclass(frozen=True)
class World:
    """Where forecasts come from, as a function of uniforms, and decisions that follow them."""

    forecasts: Callable[[Array], Array]
    problems: dict[str, prudent.DecisionProblem]


WORLDS = (
    World(
        lambda u: u,
        {
            "staffing": prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10]),
            "act at 0.4": prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4]),
        },
    ),
    # Rare damage, 0.15 on average: protect for a tenth of the loss, or not.
    World(lambda u: 0.6 * u**3, {"cost-loss at 0.1": prudent.DecisionProblem([-1.0, 0.0], [0.0, 0.1])}),
)

CALIBRATED = "none"

#: What happens on average where the forecast is ``v``.
ERRORS: dict[str, Callable[[Array], Array]] = {
    CALIBRATED: lambda v: v,
    "log-odds +0.25": lambda v: expit(logit(v) + 0.25),
    "log-odds +1": lambda v: expit(logit(v) + 1),
    "log-odds -1": lambda v: expit(logit(v) - 1),
    "over-confident, slope 0.8": lambda v: expit(0.8 * logit(v)),
    "over-confident, slope 0.4": lambda v: expit(0.4 * logit(v)),
    "under-confident, slope 2": lambda v: expit(2 * logit(v)),
    "squared": lambda v: v**2,
    "wave of 0.1": lambda v: np.clip(v + 0.1 * np.sin(4 * np.pi * v), 0, 1),
}


@dataclass(frozen=True)
class Judged:
    """What came of one piece of advice: true numbers, and whether what was claimed is true."""

    kind: str
    gain: float
    stakes: float
    tolerance: float
    certificate_holds: bool
    gain_holds: bool


def judge(advice: prudent.Advice, forecasts: Array, means: Array) -> Judged:
    """Compare with the exact means over all forecasts."""
    problem = advice.problem
    utilities = problem.utility(means)
    earned, before = (
        float((utilities * policy.predict_proba(forecasts)).sum(axis=1).mean())
        for policy in (advice.policy, prudent.PlugInPolicy(problem))
    )
    gain = earned - before
    return Judged(
        advice.verdict.kind.value,
        gain,
        advice.stakes,
        advice.tolerance,
        earned >= advice.certificate.lower - 1e-12,
        gain >= advice.gain.lower - 1e-12,
    )


def simulate(number: int, error: str, n: int, repeats: int) -> dict[str, list[Judged]]:
    """Ask for advice on many samples; decisions on the same forecasts share samples and recalibrations."""
    world, rng = WORLDS[number], np.random.default_rng([n, crc32(error.encode()), number])
    grid = world.forecasts(_GRID)
    truth = ERRORS[error](grid)
    found: dict[str, list[Judged]] = {name: [] for name in world.problems}
    for _ in range(repeats):
        forecasts = world.forecasts(rng.random(n))
        outcomes = (rng.random(n) < ERRORS[error](forecasts)).astype(np.float64)
        cases = prudent.Cases(forecasts, outcomes)
        for name, problem in world.problems.items():
            found[name].append(judge(prudent.advise(problem, cases, confidence=CONFIDENCE), grid, truth))
    return found


@dataclass(frozen=True)
class Row:
    """Shares over the samples of one situation.

    ``trusted`` leaves out samples in which the forecast never changes the action, so that it is followed without
    evidence; ``possible`` is what best responding to the truth would gain.
    """

    problem: str
    error: str
    n: int
    repeats: int
    kinds: dict[str, float]
    trusted: float
    worse: float
    much_worse: float
    certificate_holds: float
    gain_holds: float
    gain: float
    possible: float

    @classmethod
    def of(cls, world: World, name: str, error: str, n: int, judged: list[Judged]) -> Row:
        """Count."""
        problem, forecasts = world.problems[name], world.forecasts(_GRID)
        utilities = problem.utility(ERRORS[error](forecasts))
        followed = (utilities * prudent.PlugInPolicy(problem).predict_proba(forecasts)).sum(axis=1)

        def share(found: Iterable[bool]) -> float:
            return float(np.mean(list(found)))

        return cls(
            name,
            error,
            n,
            len(judged),
            {kind: share(each.kind == kind for each in judged) for kind in ("follow", "repair", "not_enough_data")},
            share(each.kind == "follow" and each.stakes > 0 for each in judged),
            share(each.gain < -1e-12 for each in judged),
            share(each.gain < -each.tolerance for each in judged),
            share(each.certificate_holds for each in judged),
            share(each.gain_holds for each in judged),
            float(np.mean([each.gain for each in judged])),
            float((utilities.max(axis=1) - followed).mean()),
        )

    def __str__(self) -> str:
        shares = *self.kinds.values(), self.worse, self.much_worse, self.certificate_holds, self.gain_holds
        cells = " | ".join(f"{100 * each:.1f}%" for each in shares)
        return f"| {self.problem} | {self.error} | {self.n:,} | {cells} | {self.gain:.4f} | {self.possible:.4f} |"


def rows_of(number: int, error: str, n: int, repeats: int) -> list[Row]:
    """The rows of a table: one for each decision in a world, given by its number."""
    found = simulate(number, error, n, repeats)
    return [Row.of(WORLDS[number], name, error, n, judged) for name, judged in found.items()]
