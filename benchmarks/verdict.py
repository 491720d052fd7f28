"""What the measurements say: who won by how much, whether all agree, and how times grow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.cases import Family
from benchmarks.child import Outcome
from benchmarks.competitors import AS_WRITTEN
from benchmarks.results import PRUDENT, Measurement, Results

__all__ = [
    "GROWTH_GOAL",
    "Comparison",
    "compare",
    "disagreements",
    "fastest",
    "growth_exponents",
    "growth_factors",
    "own_failures",
]

#: A value may leave the certificate by this share of the utility range: what interior points leave open.
TOLERANCE = 1e-5

#: Most that ten times the rows may cost.
GROWTH_GOAL = 12.0


@dataclass(frozen=True)
class Comparison:
    """Prudent against the fastest of some competitors.

    ``ratio`` is None if Prudent has no time; ``at_least`` is True if no competitor finished, so that the ratio is
    that of the time after which they were stopped.
    """

    winner: Measurement | None
    ratio: float | None
    at_least: bool
    goal: float | None

    @property
    def met(self) -> bool | None:
        """Whether the goal was met; None without a goal."""
        if self.goal is None:
            return None
        return self.ratio is not None and self.ratio >= self.goal


def compare(results: Results, family: Family, n: int, as_written: bool) -> Comparison:
    """Compare with all competitors, or only with those as a user writes them."""
    here = results.of(family.number, n)
    own = next((item for item in here if item.contestant == PRUDENT), None)
    goal = family.goal_as_written if as_written else family.goal
    winner = fastest(results, family.number, n, as_written)
    if own is None or own.seconds is None:
        return Comparison(winner, None, at_least=False, goal=goal)
    if winner is not None and winner.seconds is not None:
        return Comparison(winner, winner.seconds / own.seconds, at_least=False, goal=goal)
    stopped = [item.stopped for item in here if item.stopped and (item.kind == AS_WRITTEN or not as_written)]
    return Comparison(None, min(stopped) / own.seconds if stopped else None, at_least=True, goal=goal)


def fastest(results: Results, family: int, n: int, as_written: bool) -> Measurement | None:
    """Find the fastest competitor with the right value."""
    wrong = {item for item, _ in _disagreeing(results, family, n)}
    finished = [
        item
        for item in results.of(family, n)
        if item.done
        and item.contestant != PRUDENT
        and item.contestant not in wrong
        and (item.kind == AS_WRITTEN or not as_written)
    ]
    return min(finished, key=lambda item: item.seconds or 0.0, default=None)


def disagreements(results: Results) -> list[str]:
    """Describe every value outside Prudent's certificate, and competitors that differ among themselves."""
    sentences = []
    for family, n in sorted({(item.family, item.n) for item in results.measurements}):
        sentences += [f"case {family}, n={n:,}: {text}" for _, text in _disagreeing(results, family, n)]
    return sentences


def own_failures(results: Results) -> list[str]:
    """Describe every measurement in which Prudent itself failed."""
    races = [
        f"case {item.family}, n={item.n:,}: Prudent {item.note}"
        for item in results.measurements
        if item.contestant == PRUDENT and item.outcome == Outcome.FAILED
    ]
    rows = [f"row {row.number}, {row.what}: {row.note}" for row in results.rows if row.outcome == Outcome.FAILED]
    return races + rows


def growth_exponents(results: Results, family: int) -> dict[str, float]:
    """Fit ``log time = exponent log n + constant`` for each contestant with at least two sizes."""
    times: dict[str, list[tuple[float, float]]] = {}
    for item in results.of(family):
        if item.done and item.seconds:
            times.setdefault(item.contestant, []).append((np.log(item.n), np.log(item.seconds)))
    return {name: float(np.polyfit(*np.array(points).T, 1)[0]) for name, points in times.items() if len(points) > 1}


def growth_factors(results: Results, family: int) -> list[tuple[int, int, float]]:
    """List how Prudent's time grew from n to 10 n, from 10,000 rows on (with ``--quick`` from any size)."""
    times = {item.n: item.seconds for item in results.of(family) if item.contestant == PRUDENT and item.seconds}
    least = 0 if results.quick else 10_000
    return [(n, 10 * n, times[10 * n] / times[n]) for n in sorted(times) if n >= least and 10 * n in times]


def _disagreeing(results: Results, family: int, n: int) -> list[tuple[str, str]]:
    """Pair each contestant whose value is off with a sentence."""
    here = [item for item in results.of(family, n) if item.done and item.lower is not None and item.upper is not None]
    own = next((item for item in here if item.contestant == PRUDENT), None)
    others = [item for item in here if item.contestant != PRUDENT]
    if own is not None:
        # Two values within tolerance of one narrow certificate are within twice the tolerance of each other.
        low, high, source = own.lower, own.upper, "Prudent's certificate"
    elif others:
        middle = float(np.median([item.lower for item in others if item.lower is not None]))
        low, high, source = middle, middle, "the competitors' median"
    else:
        return []
    found = []
    for item in others:
        value = item.lower
        if value is None or low is None or high is None:
            continue
        excess = max(low - value, value - high) / item.utility_range
        if not excess <= TOLERANCE:  # not a number is not agreement either
            text = f"{item.contestant} says {value:.9g}, {source} [{low:.9g}, {high:.9g}]"
            found.append((item.contestant, f"{text}: off by {excess:.1e} of the utility range"))
    # A wide certificate would let competitors differ inside it.
    inside = sorted((item for item in others if item.contestant not in dict(found)), key=lambda item: item.lower or 0.0)
    if inside and (inside[-1].upper - inside[0].lower) / inside[0].utility_range > 2 * TOLERANCE:
        found.append((inside[-1].contestant, f"{inside[-1].contestant} and {inside[0].contestant} differ"))
    return found
