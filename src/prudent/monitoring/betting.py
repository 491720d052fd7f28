"""A test martingale: evidence against a bound on a mean that may be looked at after every row.

A bet against ``E[X | past] <= limit`` at fair odds that stakes a share ``lambda``
of its capital multiplies it by ``1 + lambda (X - limit)`` per row. While the
bound is true this wealth is a supermartingale, so (Ville's inequality) it ever
exceeds ``1 / alpha`` with probability at most ``alpha``, however often one looks.
The initial capital is spread over a grid of stakes, since the size of a
violation is unknown, and over all starting times, since its start is unknown.
All bets with one stake are kept as a single sum.
"""

from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.files.records import Document, Record

_STAKES = np.geomspace(0.9, 0.9e-3, 24)
_ROWS_AT_ONCE = 1 << 12
_FIELDS = ("wealth", "n_rows", "excess", "lowest", "lowest_at")


class BettingProcess:
    """Wealth of bets that ``E X`` exceeds a limit, for ``X`` in a known range, in time order.

    Parameters
    ----------
    low, high : float
        Range of ``X``, known beforehand.
    limit : float
        The bound that is doubted.

    Attributes
    ----------
    wealth : array of shape (stakes,)
        Logarithms, one for each stake, of the bets that have started.
    n_rows : int
    excess : float
        Sum of ``X - limit``.
    lowest, lowest_at : float and int
        The smallest value of ``excess`` so far, and after how many rows: the likely start of a violation.
    """

    def __init__(self, low: float, high: float, limit: float) -> None:
        self.low, self.high, self.limit = float(low), float(high), float(limit)
        # With a stake above one over the largest loss wealth could become negative.
        self._stakes: FloatArray = _STAKES / max(self.limit - self.low, 1e-9 * (self.high - self.low), 1e-300)
        self.wealth: FloatArray = np.full(_STAKES.size, -np.inf)  # logarithms; no bet has started
        self.n_rows = self.lowest_at = 0
        self.excess = self.lowest = 0.0

    @property
    def log_value(self) -> float:
        """Logarithm of the wealth now; it starts at zero."""
        return float(_log_values(self.n_rows, self.wealth))

    @property
    def size(self) -> float:
        """Mean of ``X - limit`` since the likely start of a violation: an estimate of its size."""
        rows = self.n_rows - self.lowest_at
        return (self.excess - self.lowest) / rows if rows else 0.0

    def extend(self, values: FloatArray) -> FloatArray:
        """Add rows in time order; return the logarithm of the wealth after each of them."""
        inside = np.clip(values, self.low, self.high)  # but for rounding they are
        starts = range(0, values.size, _ROWS_AT_ONCE)
        return np.concatenate([np.zeros(0), *(self._extend(inside[i : i + _ROWS_AT_ONCE]) for i in starts)])

    def _extend(self, values: FloatArray) -> FloatArray:
        gains = values - self.limit
        growth = np.cumsum(np.log1p(np.maximum(gains[:, None] * self._stakes, -0.9)), axis=0)
        before = np.vstack([np.zeros(_STAKES.size), growth[:-1]])
        rows = self.n_rows + np.arange(values.size)
        starting = np.log(_waiting(rows) - _waiting(rows + 1))
        wealth = growth + np.logaddexp.accumulate(np.vstack([self.wealth, starting[:, None] - before]), axis=0)[1:]
        path = self.excess + np.cumsum(gains)
        if path.min() < self.lowest:
            self.lowest, self.lowest_at = float(path.min()), self.n_rows + int(path.argmin()) + 1
        self.wealth, self.excess = wealth[-1], float(path[-1])
        self.n_rows += values.size
        return _log_values(rows + 1, wealth)

    def to_dict(self) -> Document:
        """Describe the state for a file."""
        wealth = [value if self.n_rows else None for value in self.wealth.tolist()]
        return {name: getattr(self, name) for name in _FIELDS} | {"wealth": wealth}

    def restore(self, content: Any) -> None:
        """Take over the state of a file."""
        record = Record(content, "evidence", *_FIELDS)
        self.n_rows = record.count("n_rows")
        if self.n_rows:  # else no bet has started
            self.wealth = record.array("wealth", _STAKES.size)
        self.lowest_at = record.count("lowest_at", self.n_rows)
        self.excess, self.lowest = record.number("excess"), record.number("lowest")


def _waiting(rows: Any) -> Any:
    """Share of the capital whose bets have not started after so many rows: it falls slowly, from one to zero."""
    return np.log(2.0) / np.log(np.asarray(rows) + 2.0)


def _log_values(rows: Any, wealth: FloatArray) -> FloatArray:
    """Logarithm of the whole wealth after so many rows: what waits, and the mean over stakes."""
    mean = np.logaddexp.reduce(wealth, axis=-1) - np.log(_STAKES.size)
    return np.logaddexp(np.log(_waiting(rows)), mean)
