"""What a source gives: a forecaster's past in eras, and decisions that somebody could take with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import prudent

Array = NDArray[Any]


@dataclass(frozen=True)
class Setting:
    """A decision.

    Attributes
    ----------
    problem : DecisionProblem
    cost : float
        What acting fully costs where it was not needed: the unit of all gains.
    """

    problem: prudent.DecisionProblem
    cost: float


@dataclass(frozen=True)
class Rows:
    """Some rows of a forecaster.

    Attributes
    ----------
    forecasts : array of shape (n,) or (n, d)
    outcomes : array of shape (n,)
    eras : array of shape (n,)
        Numbers, dates or names; sorted they are in order.
    context : mapping of names to arrays of shape (n,)
        What else is known when it is decided.
    decided, known : arrays of dates of shape (n,), or None
        When it is decided, and when the outcome is known; None if only the order of eras is known.
    """

    forecasts: Array
    outcomes: Array
    eras: Array
    context: Mapping[str, Array] = field(default_factory=dict)
    decided: Array | None = None
    known: Array | None = None

    def where(self, part: Array) -> Self:
        """Take some of the rows."""
        dates = {name: None if (held := getattr(self, name)) is None else held[part] for name in ("decided", "known")}
        columns = {name: column[part] for name, column in self.context.items()}
        return replace(
            self,
            forecasts=self.forecasts[part],
            outcomes=self.outcomes[part],
            eras=self.eras[part],
            context=columns,
            **dates,
        )

    @cached_property
    def by_eras(self) -> prudent.Cases:
        """As cases whose periods are the eras; what is fitted to them is remembered for the next decision."""
        return prudent.Cases(self.forecasts, self.outcomes, periods=self.eras)

    @cached_property
    def by_rows(self) -> prudent.Cases:
        """As cases without periods."""
        return prudent.Cases(self.forecasts, self.outcomes)

    def utilities(self, problem: prudent.DecisionProblem) -> Array:
        """Of every action at every outcome, ``(n, m)``."""
        return problem.utilities_of_rows(self.by_rows.on(problem.space).known_outcomes)

    @property
    def two_valued(self) -> bool:
        """Whether forecasts are probabilities of an event."""
        return self.forecasts.ndim == 1 and bool(np.isin(self.outcomes, (0, 1)).all())


@dataclass(frozen=True)
class Forecaster:
    """A forecaster, and decisions by name; ``ordered`` is False for tasks or sites, of which each is left out once."""

    source: str
    name: str
    rows: Rows
    settings: Mapping[str, Setting]
    ordered: bool = True


def protection(prices: Iterable[float], *, half: bool = False, actions: tuple[str, ...]) -> dict[str, Setting]:
    """Decisions to prevent a loss of 1 at a price; ``half`` of it can be prevented for 45% of the price."""
    settings = {}
    for price in prices:
        kept, paid = ([-1.0, -0.5, 0.0], [0.0, 0.45 * price, price]) if half else ([-1.0, 0.0], [0.0, price])
        settings[f"price {price:g}"] = Setting(prudent.DecisionProblem(kept, paid, actions=list(actions)), price)
    return settings
