"""Which forecasts a monitor has seen, by id: outcomes come late, early, or twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, finite_array

__all__ = ["Ledger", "News", "Outcomes"]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of a batch, of which some may be missing."""

    known: FloatArray
    present: NDArray[np.bool_]

    @cached_property
    def _position(self) -> NDArray[np.int64]:
        return np.cumsum(self.present) - 1

    def outcome(self, row: int) -> tuple[float, ...] | None:
        """The outcome of a row of the batch, if it is known."""
        return tuple(self.known[self._position[row]].tolist()) if self.present[row] else None


@dataclass
class News:
    """What a batch changes, worked out before anything is changed."""

    fresh: list[int]
    forecasts: Any
    outcomes: Any
    names: list[Any] = field(default_factory=list)
    pending: dict[Any, tuple[float, ...]] = field(default_factory=dict)
    arrived: set[Any] = field(default_factory=set)
    early: dict[Any, tuple[float, ...]] = field(default_factory=dict)
    no_longer_early: list[Any] = field(default_factory=list)
    duplicates: int = 0

    def settle(self, name: Any, forecast: Any, outcome: Any) -> None:
        """Pair an awaited forecast with its outcome."""
        self.arrived.add(name)
        self.forecasts.append(forecast)
        self.outcomes.append(outcome)


@dataclass
class Ledger:
    """Ids seen so far, forecasts whose outcome is awaited, and outcomes whose forecast is."""

    seen: set[Any] = field(default_factory=set)
    pending: dict[Any, tuple[float, ...]] = field(default_factory=dict)
    early: dict[Any, tuple[float, ...]] = field(default_factory=dict)
    n_duplicates: int = 0

    def sort(self, names: list[Any], forecasts: FloatArray, outcomes: Outcomes) -> News:
        """Tell new rows from old ones, and find those whose outcome is now known; nothing is changed."""
        news = News([], [], [])
        added: set[Any] = set()
        for row, name in enumerate(names):
            outcome = outcomes.outcome(row)
            if name in self.seen or name in added:
                awaited = news.pending.get(name, self.pending.get(name))
                if outcome is not None and awaited is not None and name not in news.arrived:
                    news.settle(name, awaited, outcome)  # of a forecast that came before
                else:
                    news.duplicates += 1
                continue
            added.add(name)
            news.fresh.append(row)
            news.names.append(name)
            if name in self.early:
                news.duplicates += outcome is not None
                news.no_longer_early.append(name)
                outcome = self.early[name] if outcome is None else outcome
            if outcome is None:
                news.pending[name] = tuple(forecasts[row].tolist())
            else:
                news.forecasts.append(forecasts[row])
                news.outcomes.append(outcome)
        return news

    def remember(self, news: News) -> None:
        """Take in what a batch changes."""
        self.seen.update(news.names)
        self.pending.update(news.pending)
        for name in news.arrived:
            self.pending.pop(name, None)
        self.early.update(news.early)
        for name in news.no_longer_early:
            self.early.pop(name, None)
        self.n_duplicates += news.duplicates

    def sort_late(self, names: list[Any], outcomes: FloatArray) -> News:
        """Find the forecasts of outcomes that come by themselves; nothing is changed."""
        news = News([], [], [])
        for name, outcome in zip(names, outcomes, strict=True):
            if name in self.pending and name not in news.arrived:
                news.settle(name, self.pending[name], outcome)
            elif name in self.seen or name in self.early or name in news.early:
                news.duplicates += 1
            else:
                news.early[name] = tuple(outcome.tolist())
        return news

    def to_dict(self) -> dict[str, Any]:
        """Describe the ledger for a file."""
        return {
            "seen": list(self.seen),
            "pending": [[name, list(row)] for name, row in self.pending.items()],
            "early": [[name, list(row)] for name, row in self.early.items()],
            "n_duplicates": self.n_duplicates,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any], dimension: int) -> Ledger:
        """Read a ledger from a file."""
        pending = {name: _row(row, dimension) for name, row in content["pending"]}
        early = {name: _row(row, dimension) for name, row in content["early"]}
        return cls(set(content["seen"]), pending, early, int(content["n_duplicates"]))


def _row(values: Any, dimension: int) -> tuple[float, ...]:
    row = finite_array(values, "a row")
    if row.shape != (dimension,):
        raise ValueError(f"a row must have {dimension} numbers; got shape {row.shape}.")
    return tuple(row.tolist())
