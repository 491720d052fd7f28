"""A test martingale: evidence that a mean is positive, which may be looked at after every row.

A bet at fair odds that stakes a share ``lambda`` of its capital multiplies it by
``1 + lambda X`` per row. While ``E[X | past] <= 0`` this wealth is a
supermartingale, so (Ville's inequality) it ever exceeds ``1 / alpha`` with
probability at most ``alpha``, however often one looks. A stake may depend on
what is known before the outcome: it is as large as the least possible ``X`` of
that row allows. So evidence grows with the variance that outcomes have and not
with the width of their space.

The initial capital is spread over a grid of stakes, since size and variance of
a violation are unknown, over all starting times, since its start is unknown, and
over columns: quantities watched together, whose wealth is averaged. All bets
with one stake on one column are kept as a single sum.
"""

from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.files.records import Document, Record

_STAKES = 2.0 ** np.arange(-10, 6)
_LARGEST_LOSS = 0.9  # of the capital, in one row
_NUMBERS_AT_ONCE = 1 << 17
_NOTHING = -1e300  # logarithm of the wealth of bets before any has started; files hold no infinity
#: What a file holds.
FIELDS = ("wealth", "n_rows", "excess", "lowest", "lowest_at")


class BettingProcess:
    """Wealth of bets that ``E X > 0`` in some of ``c`` columns, in time order.

    Parameters
    ----------
    scales : array of shape (c,)
        About the largest ``|X|`` of each column: stakes are multiples of one over it.

    Attributes
    ----------
    wealth : array of shape (c, stakes)
        Logarithms, one for each stake, of the bets that have started.
    n_rows : int
    excess : array of shape (c,)
        Sums of ``X``.
    lowest, lowest_at : arrays of shape (c,)
        The smallest ``excess`` so far, and after how many rows: the likely start of a violation.
    """

    def __init__(self, scales: Any) -> None:
        scales = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        self._stakes: FloatArray = _STAKES / np.maximum(scales, 1e-300)[:, None]
        self.wealth: FloatArray = np.full(self._stakes.shape, _NOTHING)
        self.n_rows = 0
        self.excess, self.lowest = np.zeros(scales.size), np.zeros(scales.size)
        self.lowest_at: IntArray = np.zeros(scales.size, dtype=np.int64)

    @property
    def log_value(self) -> float:
        """Logarithm of the wealth now; it starts at zero."""
        return float(_log_values(self.n_rows, self.wealth))

    @property
    def strongest(self) -> int:
        """The column whose bets have won most."""
        return int(np.logaddexp.reduce(self.wealth, axis=1).argmax())

    def size(self, column: int) -> float:
        """Mean of ``X`` since the likely start of a violation: an estimate of its size."""
        rows = self.n_rows - int(self.lowest_at[column])
        return float(self.excess[column] - self.lowest[column]) / rows if rows else 0.0

    def extend(self, values: FloatArray, least: Any) -> FloatArray:
        """Add rows in time order ``(n, c)``, with the least that each value could have been.

        Return the logarithm of the wealth after each of them.
        """
        least = np.broadcast_to(least, values.shape)
        inside = np.maximum(values, least)  # but for rounding they are
        step = max(1, _NUMBERS_AT_ONCE // self.wealth.size)
        parts = (slice(start, start + step) for start in range(0, len(values), step))
        return np.concatenate([np.zeros(0), *(self._extend(inside[part], least[part]) for part in parts)])

    def _extend(self, values: FloatArray, least: FloatArray) -> FloatArray:
        # With a stake of one over the largest loss wealth could become zero.
        allowed = np.divide(-_LARGEST_LOSS, least, out=np.full(least.shape, np.inf), where=least < 0)
        growth = np.cumsum(np.log1p(np.minimum(self._stakes, allowed[..., None]) * values[..., None]), axis=0)
        before = np.concatenate([np.zeros((1, *self.wealth.shape)), growth[:-1]])
        rows = self.n_rows + np.arange(len(values))
        starting = np.log(_waiting(rows) - _waiting(rows + 1))[:, None, None]
        wealth = growth + np.logaddexp.accumulate(np.concatenate([self.wealth[None], starting - before]), axis=0)[1:]
        path = self.excess + np.cumsum(values, axis=0)
        deepest = path.min(axis=0)
        self.lowest_at = np.where(deepest < self.lowest, self.n_rows + path.argmin(axis=0) + 1, self.lowest_at)
        self.lowest = np.minimum(self.lowest, deepest)
        self.wealth, self.excess = wealth[-1], path[-1]
        self.n_rows += len(values)
        return _log_values(rows + 1, wealth)

    def to_dict(self) -> Document:
        """Describe the state for a file."""
        return {name: np.asarray(getattr(self, name)).tolist() for name in FIELDS}

    def restore(self, content: Any) -> None:
        """Take over the state of a file."""
        record = Record(content, "evidence", *FIELDS)
        self.n_rows, self.wealth = record.count("n_rows"), record.array("wealth", *self.wealth.shape)
        self.excess, self.lowest, started = (record.array(name, len(self.excess)) for name in FIELDS[2:])
        self.lowest_at = np.clip(started, 0, self.n_rows).astype(np.int64)


def _waiting(rows: Any) -> Any:
    """Share of the capital whose bets have not started after so many rows: it falls slowly, from one to zero."""
    return np.log(2.0) / np.log(np.asarray(rows) + 2.0)


def _log_values(rows: Any, wealth: FloatArray) -> FloatArray:
    """Logarithm of the whole wealth after so many rows: what waits, and the mean over columns and stakes."""
    mean = np.logaddexp.reduce(wealth, axis=(-2, -1)) - np.log(wealth[..., 0].shape[-1] * _STAKES.size)
    return np.logaddexp(np.log(_waiting(rows)), mean)
