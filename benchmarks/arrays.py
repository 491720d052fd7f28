"""What every contestant sees: one adversary's program as plain arrays, passed between processes in a file.

Minimise ``(1/n) sum_i max_a (r_a . q_i - c_a)`` over ``q_i`` in a box or simplex such that the moments
``(1/n) sum_i h_j(v_i) (q_i - v_i)`` vanish, or stay within a radius per test.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays"]


@dataclass(frozen=True, eq=False)
class Arrays:
    """One instance of the program.

    Attributes
    ----------
    rewards : array of shape (m, d)
    costs : array of shape (m,)
    low, high : arrays of shape (d,)
        Bounds of the box; zeros and ones for the simplex.
    simplex : bool
    forecasts : array of shape (n, d)
    tests : array of shape (n, k)
    norm : str
        "exact", "linf" (an interval per moment) or "l2" (a ball per test).
    radius : array of shape (k,)
    """

    rewards: NDArray[np.float64]
    costs: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    simplex: bool
    forecasts: NDArray[np.float64]
    tests: NDArray[np.float64]
    norm: str
    radius: NDArray[np.float64]

    @property
    def n_rows(self) -> int:
        """Number of forecasts."""
        return int(self.forecasts.shape[0])

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates."""
        return int(self.forecasts.shape[1])

    @property
    def utility_range(self) -> float:
        """Highest minus lowest utility over actions and outcomes."""
        if self.simplex:
            utilities = self.rewards - self.costs[:, None]
            return float(utilities.max() - utilities.min())
        center, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        middle, reach = self.rewards @ center - self.costs, np.abs(self.rewards) @ half
        return float((middle + reach).max() - (middle - reach).min())

    def first_rows(self, count: int) -> Arrays:
        """Keep the first rows; the forecasts remain a world that the guarantee allows, so there is a solution."""
        kept: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        return Arrays(**kept | {"forecasts": self.forecasts[:count], "tests": self.tests[:count]})

    def save(self, path: Path) -> None:
        """Write the arrays to one uncompressed file."""
        np.savez(path, **{item.name: np.asarray(getattr(self, item.name)) for item in fields(self)})

    @classmethod
    def load(cls, path: Path) -> Arrays:
        """Read what :meth:`save` wrote."""
        with np.load(path) as file:
            content: dict[str, Any] = dict(file)
        return cls(**content | {"simplex": bool(content["simplex"]), "norm": str(content["norm"])})
