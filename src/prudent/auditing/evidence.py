"""Forecasts with their outcomes, in memory or in a lazy table: what audits and ladders ask of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prudent.ambiguity import Slack, SlackSet
from prudent.arrays import FloatArray
from prudent.guarantees.base import Guarantee
from prudent.moments import MomentEstimates
from prudent.policies import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate
from prudent.spaces import Space

__all__ = ["Evidence", "Measurement", "Stakes", "Utilities"]


@dataclass(frozen=True, eq=False)
class Measurement:
    """Measured moments, and how many rows took part or were left out because their outcome is missing."""

    estimates: MomentEstimates
    n_rows: int
    n_dropped: int


@dataclass(frozen=True)
class Utilities:
    """Mean utilities: of a policy if forecasts are right and on the outcomes, and of best responding if right."""

    nominal: float
    realised: float
    best: float


class Stakes(Protocol):
    """One decision in the worlds that a guarantee allows with some slack."""

    @property
    def slack(self) -> SlackSet:
        """The allowed moments."""
        ...

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which scalar tests are not zero everywhere, ``(k,)``."""
        ...

    def best_responding(self) -> Certificate:
        """What best responding guarantees."""
        ...

    def best(self, slack: Slack) -> Certificate:
        """What the best policy guarantees, with other slack."""
        ...


class Evidence(Protocol):
    """Rows with outcomes, wherever they are."""

    @property
    def space(self) -> Space:
        """Where outcomes lie."""
        ...

    @property
    def some_forecasts(self) -> FloatArray:
        """A forecast or more, for what depends on their number of coordinates only."""
        ...

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        ...

    def measure(self, guarantee: Guarantee, confidence: float, method: str) -> Measurement:
        """Measure the moments of a resolved guarantee."""
        ...

    def fit(self, policy: RobustPolicy) -> RobustPolicy:
        """Fit a policy whose slack is given in numbers."""
        ...

    def utilities(self, policy: RobustPolicy) -> Utilities:
        """Add up what a policy gets."""
        ...

    def stakes(self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack) -> Stakes:
        """Look at one decision under a resolved guarantee."""
        ...
