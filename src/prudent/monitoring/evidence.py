"""Evidence against a bound on a mean that may be looked at after every row.

Someone who bets against ``E[X | past] <= limit`` at fair odds and stakes a share
``lambda`` of their capital multiplies it by ``1 + lambda (X - limit)`` per row.
While the bound is true their wealth has no upward drift, so (Ville) it ever
exceeds ``1 / alpha`` with probability at most ``alpha``, however often one
looks. Many bettors share the initial capital: one per stake, since nobody knows
the size of a violation, and one per starting time, since nobody knows when it
begins. The bettors of one stake are added up in a single number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.arrays import FloatArray, finite_array

__all__ = ["Evidence"]

_STAKES = np.geomspace(0.9, 0.9e-3, 24)
_ROWS_AT_ONCE = 1 << 12


class Evidence:
    """Growing evidence that ``E X`` exceeds a limit, for ``X`` in a known range, in time order.

    Parameters
    ----------
    low, high : float
        Range of ``X``, known beforehand.
    limit : float
        The bound that is doubted.
    """

    def __init__(self, low: float, high: float, limit: float) -> None:
        self.low, self.high, self.limit = float(low), float(high), float(limit)
        # A stake above one over the largest loss could ruin a bettor, and wealth must stay positive.
        worst = max(self.limit - self.low, 1e-9 * (self.high - self.low), 1e-300)
        self._stakes: FloatArray = _STAKES / worst
        self._wealth: FloatArray = np.full(_STAKES.size, -np.inf)  # logarithms, without those yet to start
        self.n_rows = 0
        self.total = 0.0
        self._excess = 0.0  # sum of X - limit
        self._lowest, self._lowest_at = 0.0, 0  # its smallest value so far: since then it has gone up

    @property
    def log_value(self) -> float:
        """Logarithm of the wealth now; it starts at zero."""
        return float(np.logaddexp(np.log(_waiting(self.n_rows)), _log_mean(self._wealth[None])[0]))

    @property
    def mean(self) -> float:
        """Mean of all rows so far."""
        return self.total / self.n_rows if self.n_rows else float("nan")

    @property
    def since(self) -> int:
        """Rows before the likely begin of a violation."""
        return self._lowest_at

    @property
    def excess(self) -> float:
        """Mean of ``X - limit`` since then: an estimate of the size of a violation."""
        rows = self.n_rows - self._lowest_at
        return (self._excess - self._lowest) / rows if rows else 0.0

    def extend(self, values: FloatArray) -> FloatArray:
        """Add rows in time order; return the logarithm of the wealth after each of them."""
        slack = 1e-9 * (self.high - self.low) + 1e-12 * max(abs(self.low), abs(self.high))
        if values.size and (values.min() < self.low - slack or values.max() > self.high + slack):
            raise AssertionError("values must lie in the range that was announced")
        parts = [self._extend(values[i : i + _ROWS_AT_ONCE]) for i in range(0, values.size, _ROWS_AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _extend(self, values: FloatArray) -> FloatArray:
        gains = np.clip(values, self.low, self.high) - self.limit
        growth = np.cumsum(np.log1p(np.maximum(gains[:, None] * self._stakes, -0.9)), axis=0)
        before = np.vstack([np.zeros(_STAKES.size), growth[:-1]])
        rows = self.n_rows + np.arange(values.size)
        starting = np.log(_waiting(rows) - _waiting(rows + 1))
        invested = np.logaddexp.accumulate(np.vstack([self._wealth, starting[:, None] - before]), axis=0)[1:]
        wealth = growth + invested
        self._wealth = wealth[-1]
        self._note(values, gains)
        self.n_rows += values.size
        log_values: FloatArray = np.logaddexp(np.log(_waiting(rows + 1)), _log_mean(wealth))
        return log_values

    def _note(self, values: FloatArray, gains: FloatArray) -> None:
        """Keep what estimates the size and the begin of a violation."""
        path = self._excess + np.cumsum(gains)
        lowest = int(path.argmin())
        if path[lowest] < self._lowest:
            self._lowest, self._lowest_at = float(path[lowest]), self.n_rows + lowest + 1
        self._excess = float(path[-1])
        self.total += float(values.sum())

    def to_dict(self) -> dict[str, Any]:
        """Describe the state for a file."""
        wealth = [None if np.isneginf(value) else float(value) for value in self._wealth]
        return {
            "low": self.low,
            "high": self.high,
            "limit": self.limit,
            "wealth": wealth,
            "n_rows": self.n_rows,
            "total": self.total,
            "excess": self._excess,
            "lowest": self._lowest,
            "lowest_at": self._lowest_at,
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Evidence:
        """Rebuild the state from its description."""
        evidence = cls(document["low"], document["high"], document["limit"])
        wealth = finite_array([-1e300 if value is None else value for value in document["wealth"]], "wealth")
        if wealth.shape != _STAKES.shape:
            raise ValueError(f"wealth must have {_STAKES.size} entries; got {wealth.size}.")
        evidence._wealth = np.where(wealth == -1e300, -np.inf, wealth)
        evidence.n_rows, evidence._lowest_at = int(document["n_rows"]), int(document["lowest_at"])
        if not 0 <= evidence._lowest_at <= evidence.n_rows:
            raise ValueError("lowest_at must be a row number.")
        evidence.total, evidence._excess = float(document["total"]), float(document["excess"])
        evidence._lowest = float(document["lowest"])
        return evidence


def _waiting(rows: Any) -> Any:
    """Share of the capital whose bettors have not started after so many rows: it falls slowly, from one to zero."""
    return np.log(2.0) / np.log(np.asarray(rows) + 2.0)


def _log_mean(logarithms: FloatArray) -> FloatArray:
    mean: FloatArray = np.logaddexp.reduce(logarithms, axis=1) - np.log(logarithms.shape[1])
    return mean
