"""The race itself: every contestant of every family at every size, one after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cases import Family
from benchmarks.child import Outcome, run_in_child
from benchmarks.competitors import Competitor, competitors_for
from benchmarks.contestants import run_competitor, run_prudent
from benchmarks.results import PRUDENT, Measurement

__all__ = ["Entry", "Settings", "plan", "race"]

#: Sizes beside that of the race, for growth and for the plot.
_COMPETITORS_GROW = (1_000, 10_000)
_PRUDENT_GROWS = (1_000, 10_000, 100_000, 1_000_000)

#: A run ends once it took so many times the fastest before it on the same arrays, but not before so many seconds: who
#: is that far behind decides no ratio. Programs as written come first, so each of the two ratios has its winner.
_FAR_BEHIND = 3.0
_LEAST_LIMIT = 10.0

#: A competitor that takes so many times what its goal allows cannot change the verdict.
_BEYOND_GOAL = 2.0

#: At the size of a race Prudent has the limit of all; larger sizes measure growth, and a million rows may take long.
_PATIENCE_FOR_GROWTH = 8.0


@dataclass(frozen=True)
class Settings:
    """How long things may take, the limit of a run and the budget of its repeats, in seconds; and who races.

    Competitors are those whose name contains ``against``.
    """

    quick: bool
    limit: float
    budget: float
    against: str = ""


@dataclass(frozen=True)
class Entry:
    """One family at one size; ``headline`` if it has goals."""

    family: Family
    n: int
    headline: bool
    against_competitors: bool

    @property
    def competitors(self) -> list[Competitor]:
        """Those who race here."""
        return competitors_for(self.family.problem().dimension) if self.against_competitors else []


def plan(families: Iterable[Family], quick: bool, headline: bool, growth: bool) -> list[Entry]:
    """List the instances by family and size; growing size lets a time-out spare the larger ones."""
    entries = []
    for family in families:
        main = family.quick_size if quick else family.size
        against = {main} if headline else set()
        alone = set(against)
        if growth:
            against |= {main // 4, main} if quick else {main, *_COMPETITORS_GROW}
            alone |= {main, 10 * main} if quick else set(_PRUDENT_GROWS)
        entries += [Entry(family, n, headline and n == main, n in against) for n in sorted(against | alone)]
    return entries


def race(entries: Iterable[Entry], settings: Settings) -> Iterator[Measurement]:
    """Measure one contestant after the other; nothing else of the suite runs at the same time."""
    history: dict[tuple[int, str], Measurement] = {}
    with tempfile.TemporaryDirectory(prefix="prudent-bench-") as directory:
        for entry in entries:
            for measurement in _race_one(entry, settings, history, Path(directory)):
                if measurement.outcome != Outcome.NOT_TRIED:
                    history[measurement.family, measurement.contestant] = measurement
                yield measurement


def _race_one(
    entry: Entry, settings: Settings, history: dict[tuple[int, str], Measurement], directory: Path
) -> Iterator[Measurement]:
    family, n = entry.family, entry.n
    few = family.arrays(1)  # enough to know the utility range, which is that of the problem
    utility_range = few.utility_range

    def finish(contestant: str, kind: str, outcome: str, note: str = "", **answer: object) -> Measurement:
        return Measurement(family.number, n, contestant, kind, utility_range, outcome, note, **answer)

    forecasts_file, arrays_file = directory / "forecasts.npy", directory / "arrays.npz"
    before = history.get((family.number, PRUDENT))
    reason = _hopeless(before)
    if reason:
        yield finish(PRUDENT, "prudent", Outcome.NOT_TRIED, f"not tried: {reason}")
    else:
        np.save(forecasts_file, family.forecasts(n))
        limit = settings.limit if n <= family.size or settings.quick else _PATIENCE_FOR_GROWTH * settings.limit
        reply = run_in_child(run_prudent, (family.number, forecasts_file, settings.budget), limit)
        yield finish(PRUDENT, "prudent", reply.outcome, reply.note, **reply.answer)
    if not entry.competitors:
        return
    arrays = family.arrays(n)
    arrays.save(arrays_file)
    limit = settings.limit
    if not reason and reply.outcome == Outcome.DONE and not settings.quick:
        enough = _BEYOND_GOAL * max(family.goal, family.goal_as_written or 0.0) * reply.answer["seconds"]
        limit = min(limit, max(_LEAST_LIMIT, enough))
    for competitor in entry.competitors:
        if settings.against.lower() not in competitor.name.lower():
            continue
        before = history.get((family.number, competitor.name))
        reason = competitor.obstacle(arrays) or _hopeless(before)
        if not reason and not settings.quick:
            reason = _too_long(before, n, settings.limit, beyond=n > family.size)
        if reason:
            yield finish(competitor.name, competitor.kind, Outcome.NOT_TRIED, f"not tried: {reason}")
            continue
        reply = run_in_child(run_competitor, (competitor.name, arrays_file, settings.budget), limit)
        outcome, note = reply.outcome, reply.note
        if outcome == Outcome.TIME_OUT and limit < settings.limit:
            outcome, note = Outcome.BEHIND, f"stopped after {limit:.3g} s, far behind"
        stopped = limit if outcome in (Outcome.TIME_OUT, Outcome.BEHIND) else None
        yield finish(competitor.name, competitor.kind, outcome, note, stopped=stopped, **reply.answer)
        if outcome == Outcome.DONE:
            limit = min(limit, max(_LEAST_LIMIT, _FAR_BEHIND * reply.answer["seconds"]))


def _hopeless(before: Measurement | None) -> str | None:
    """Spare those who timed out at fewer rows."""
    return f"timed out at n={before.n:,}" if before is not None and before.outcome == Outcome.TIME_OUT else None


def _too_long(before: Measurement | None, n: int, limit: float, beyond: bool) -> str | None:
    """Spare those whose last run says that even linear growth breaks the limit.

    At the size of the race that holds for runs that were stopped; who had a time may surprise. ``beyond`` that size it
    holds for all.
    """
    if before is None:
        return None
    least = before.stopped or (before.seconds if beyond else None)
    if least is None or least * n / before.n < limit:
        return None
    took = f"was stopped after {least:.3g} s" if before.stopped else f"took {least:.3g} s"
    return f"{took} at n={before.n:,}, so more than {limit:g} s here"
