"""What a repair did for every decision maker, as one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from prudent.arrays import Backend, FloatArray, data_frame
from prudent.moments import MomentEstimates
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Pairs
from prudent.writing import written

__all__ = ["DecisionMakers", "decision_makers"]

_TOLERATED = 0.05  # share of a problem's utility range


@dataclass(frozen=True, eq=False)
class DecisionMakers:
    """What a repair did for every decision maker, on held-out rows.

    Attributes
    ----------
    before, after : arrays of shape (p,)
        Realised utility of best responding to the forecasts as they were, and as they are.
    margin : array of shape (p,)
        Half the width of a 95% interval of the difference, for each decision maker alone.
    shortfall : array of shape (p,)
        Best responding earns what it promises up to this: measured slack of utility calibration, for all decision
        makers at once with 95% confidence. In the worst world with that slack no policy earns more than its promise, so
        none beats its worst case by more than this. What a policy would have realised on these rows is another matter.
    tolerance : array of shape (p,)
        5% of each problem's utility range.
    """

    before: FloatArray
    after: FloatArray
    margin: FloatArray
    shortfall: FloatArray
    tolerance: FloatArray

    @property
    def justified(self) -> Any:
        """Where to just best respond is justified: nothing that matters can be lost."""
        return self.shortfall <= self.tolerance

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column."""
        return {
            "decision maker": list(range(len(self.before))),
            "before": self.before,
            "after": self.after,
            "margin": self.margin,
            "shortfall": self.shortfall,
            "just best respond": self.justified,
        }

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return one row per decision maker as a data frame ("pandas", "polars" or "pyarrow")."""
        return data_frame(self.columns, backend)

    def __str__(self) -> str:
        gain = self.after - self.before
        return (
            f"{int(self.justified.sum())} of {gain.size} decision makers may just best respond. Realised utility "
            f"changed by {written(gain.min(), 3, '+')} to {written(gain.max(), 3, '+')}, on average by "
            f"{written(gain.mean(), 3, '+')} (95% margins up to "
            f"{written(self.margin.max(), 2)}); best responding can fall short of its promise by at most "
            f"{written(self.shortfall.max(), 3)}."
        )


def decision_makers(
    problems: tuple[DecisionProblem, ...],
    rows: Pairs,
    baseline: FloatArray,
    moved: FloatArray,
    promise: MomentEstimates,
) -> DecisionMakers:
    """Measure utility before and after on rows that had no part in the repair."""
    table = np.empty((3, len(problems)))
    for number, problem in enumerate(problems):
        utilities = problem.linear_utility(rows.outcomes)
        each = np.arange(len(utilities))
        old, new = (utilities[each, problem.best_actions(forecasts)] for forecasts in (baseline, moved))
        gain = new - old
        spread = np.sqrt((rows.weights**2 * (gain - rows.weights @ gain) ** 2).sum())
        table[:, number] = rows.weights @ old, rows.weights @ new, -ndtri(0.025) * spread
    shortfall = np.abs(promise.estimates) + promise.radii
    tolerance = np.array([_TOLERATED * problem.utility_range for problem in problems])
    return DecisionMakers(table[0], table[1], table[2], shortfall, tolerance)
