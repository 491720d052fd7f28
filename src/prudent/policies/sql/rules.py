"""What is played, in SQL: one of finitely many mixtures, or the two neighbours of a band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prudent.arrays import FloatArray
from prudent.policies.floats import first_at_least
from prudent.policies.sql.dialects import Dialect
from prudent.policies.sql.pipeline import case
from prudent.solvers.envelope import Envelope

__all__ = ["Bands", "Finite", "Rule", "band_rule", "splits"]


class Rule(Protocol):
    """Writes probabilities, and the action that a uniform number draws."""

    @property
    def mixed(self) -> bool:
        """True if somewhere two actions have positive probability."""
        ...

    def probabilities(self) -> list[str]:
        """Write one expression per action."""
        ...

    def action(self, labels: list[str], uniform: str) -> str:
        """Write the label that is drawn; rules that are not mixed do not look at the number."""
        ...


@dataclass(frozen=True)
class Finite:
    """One of finitely many mixtures ``(cells, m)``; ``pick`` writes the outcome of a row's cell."""

    dialect: Dialect
    pick: Callable[[list[str]], str]
    mixtures: FloatArray

    @property
    def mixed(self) -> bool:
        """True if some cell's mixture has two actions."""
        return bool((np.count_nonzero(self.mixtures, axis=1) > 1).any())

    def probabilities(self) -> list[str]:
        """Write one expression per action."""
        return [self.pick([self.dialect.number(value) for value in column]) for column in self.mixtures.T]

    def action(self, labels: list[str], uniform: str) -> str:
        """Write the action of a row's cell."""
        return self.pick([self._drawn(mixture, labels, uniform) for mixture in self.mixtures])

    def _drawn(self, mixture: FloatArray, labels: list[str], uniform: str) -> str:
        possible = np.flatnonzero(mixture)
        cumulative = np.cumsum(mixture)  # as in draws: what rounding leaves goes to the last possible action
        return case(
            [f"{self.dialect.number(cumulative[a])} > {uniform}" for a in possible[:-1]], [labels[a] for a in possible]
        )


@dataclass(frozen=True)
class _Band:
    lower: int  # action
    upper: int
    share: str | None  # probability of upper; None: it is certain


@dataclass(frozen=True)
class Bands:
    """Neighbouring envelope actions in bands of the forecast or of the tilt (one coordinate)."""

    dialect: Dialect
    n_actions: int
    edges: list[str]
    bands: list[_Band]

    @property
    def mixed(self) -> bool:
        """True if some band mixes."""
        return any(band.share is not None for band in self.bands)

    def probabilities(self) -> list[str]:
        """Write one expression per action."""
        return [case(self.edges, [self._probability(band, a) for band in self.bands]) for a in range(self.n_actions)]

    def action(self, labels: list[str], uniform: str) -> str:
        """Write the action drawn: of two neighbours the one declared first takes the small numbers."""
        return case(self.edges, [self._drawn(band, labels, uniform) for band in self.bands])

    def _probability(self, band: _Band, action: int) -> str:
        one, zero = self.dialect.number(1.0), self.dialect.number(0.0)
        if band.share is None:
            return one if action == band.upper else zero
        if action == band.upper:
            return band.share
        return f"{one} - {band.share}" if action == band.lower else zero

    def _drawn(self, band: _Band, labels: list[str], uniform: str) -> str:
        if band.share is None:
            return labels[band.upper]
        first, second = sorted((band.lower, band.upper))
        return case([f"{self._probability(band, first)} > {uniform}"], [labels[first], labels[second]])


def band_rule(
    envelope: Envelope,
    dialect: Dialect,
    tilt: str,
    forecast: str,
    tilts: Callable[[float], float] | None,
    ends: FloatArray,
) -> Bands:
    """Write :meth:`Envelope.mixtures`: of the forecast itself where the tilt never turns, else of the tilt.

    ``tilts`` computes the tilt of a forecast; None if it may turn.
    """
    slopes, actions = envelope.slopes, envelope.actions
    target = f"(-({tilt}))"
    last = len(slopes) - 1
    bands = [_Band(actions[0], actions[0], None)]
    for k in range(1, len(slopes)):
        number = dialect.number
        share = f"({target} - {number(slopes[k - 1])}) / {number(slopes[k] - slopes[k - 1])}"
        bands.append(_Band(actions[k - 1], actions[k], share))
    if last > 0:
        bands.append(_Band(actions[last], actions[last], None))

    def band_of(value: float) -> int:
        # Band 0 up to the first slope, k up to slope k, the last from the last slope on.
        if last == 0:  # one action is best whatever the tilt
            return 0
        return len(bands) - 1 if value >= slopes[-1] else int(np.searchsorted(slopes, value))

    if tilts is not None:
        pieces, edges = splits(lambda v: band_of(-tilts(v)), float(ends[0]), float(ends[1]))
        return Bands(
            dialect,
            envelope.n_actions,
            [f"{forecast} < {dialect.number(edge)}" for edge in edges],
            [bands[piece] for piece in pieces],
        )
    edges_of_tilt = [f"{target} <= {dialect.number(slope)}" for slope in slopes[:-1]]
    if last:
        edges_of_tilt.append(f"{target} < {dialect.number(slopes[-1])}")
    return Bands(dialect, envelope.n_actions, edges_of_tilt, bands)


def splits(level: Callable[[float], int], low: float, high: float) -> tuple[list[int], list[float]]:
    """Cut ``[low, high]`` where a monotone whole-numbered function changes: its values, and the first double of each.

    The function is the library's own, rounding included; so are the cuts.
    """
    pieces = [level(low)]
    edges: list[float] = []
    end = level(high)
    while pieces[-1] != end:
        current = pieces[-1]

        def left(v: float, now: int = current) -> bool:
            return level(v) != now

        edge = first_at_least(left, edges[-1] if edges else low, high)
        pieces.append(level(edge))
        edges.append(edge)
    return pieces, edges
