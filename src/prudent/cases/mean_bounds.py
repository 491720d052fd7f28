"""Confidence bounds of means of independent bounded values (docs/theory.md, section 7).

Where few values carry a mean, its bound is that of a betting test: a bet that values exceed ``m`` multiplies its wealth
by ``1 + stake (x - m)``. If their mean is at most ``m``, wealth has a mean of at most one whatever their distribution,
so it exceeds ``1 / error`` with a probability of at most ``error``. The bound is the least mean that such wealth does
not refute. Capital is spread over stakes that are fixed before values are seen, and the product does not depend on the
order of values. Where many values carry the mean, Student's t is taken, which is shorter and an approximation: a value
that occurs so rarely that it was not seen can change the mean by ``log(1 / error) / n`` of the range, which is added.

Where rows come in periods, periods are the units: Student's t over them, from four on, with a standard error that is
never below that of what rows vary within periods. What past outcomes say about other cases, on average, in the next
period or realised, follows from the same spread (section 13).
"""

from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtrit

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen, probability
from prudent.errors import InputError
from prudent.files import Document, Record

# Student's t is taken where its radius at this error is so many times what an unseen value can add. The error that is
# asked for does not matter, so that bounds only grow with confidence.
_CARRIED, _USUAL_ERROR = 2.0, 0.05
_STAKES_APART = 3.0
_SMALLEST_STAKE = 10.0  # over the root of the number of values, in units of one over their range
_LARGEST_STAKE = 0.99  # of the one that can lose everything
_MOST_VALUES = 500_000  # of units, for all means that few of them carry
_FEWEST = 10  # rows for Student's t
#: Periods from which something can be said about others.
FEWEST_PERIODS = 4


@frozen
class PeriodSpread:
    """How values vary within periods of rows, and means of periods among each other.

    Attributes
    ----------
    row_errors : array of shape (K,)
        Standard errors of the means by what rows vary within periods alone.
    between, within : arrays of shape (K,)
        Variances of the means of periods, and of rows around the mean of their period.
    inverse_size : float
        Mean of one over the number of rows of a period.
    largest_row : float
        Largest weight of a row; all sum to one.
    """

    row_errors: FloatArray
    between: FloatArray
    within: FloatArray
    inverse_size: float
    largest_row: float


@frozen
class PeriodSums:
    """Sums over the rows of every period; the first axis is that of ``T`` periods.

    Attributes
    ----------
    weights, sizes, squared_weights, largest : arrays of shape (T,)
        Sum of the rows' weights ``w``, number of rows, sum of ``w^2``, largest ``w``.
    totals, spreads : arrays of shape (T, K)
        Sums of ``w Z`` and ``w Z^2``.
    """

    weights: FloatArray
    sizes: FloatArray
    squared_weights: FloatArray
    largest: FloatArray
    totals: FloatArray
    spreads: FloatArray

    @staticmethod
    def terms(total: Any, weight: Any) -> dict[str, Any]:
        """What is added up over rows, from ``w Z`` and ``w``, None for one: of arrays or expressions of an engine."""
        squares = total * total
        return {"totals": total, "spreads": squares if weight is None else squares / weight}

    @classmethod
    def of_rows(cls, totals: FloatArray, weights: FloatArray, periods: IntArray) -> "PeriodSums":
        """Add up rows in memory: ``w Z (K, n)``, ``w (n,)`` and the number of every row's period."""

        def add(values: FloatArray) -> FloatArray:
            return np.bincount(periods, weights=values).astype(np.float64, copy=False)

        largest = np.zeros(int(periods.max()) + 1)
        np.maximum.at(largest, periods, weights)
        terms, count = cls.terms(totals, weights), len(totals)
        found = {
            name: np.array([add(row) for row in term]).reshape(count, largest.size).T for name, term in terms.items()
        }
        return cls(add(weights), add(np.ones(weights.size)), add(weights**2), largest, **found)

    def means(self, low: FloatArray, high: FloatArray) -> "Means":
        """Describe the means, with periods as units."""
        whole, count, n = float(self.weights.sum()), self.weights.size, float(self.sizes.sum())
        weights, totals = self.weights / whole, self.totals / whole
        found, between = totals.sum(axis=0), (totals**2 / weights[:, None]).sum(axis=0)
        within = n / max(n - count, 1.0) * np.maximum(self.spreads.sum(axis=0) / whole - between, 0.0)
        spread = PeriodSpread(
            np.sqrt(within * float(self.squared_weights.sum())) / whole,
            count / max(count - 1, 1) * np.maximum(between - found**2, 0.0),
            within,
            float((1 / self.sizes).mean()),
            float(self.largest.max()) / whole,
        )
        return Means.of_units(totals.T, weights, low, high, spread)


@frozen
class Means:
    """Weighted means of ``K`` bounded quantities over independent units (rows, or periods).

    Attributes
    ----------
    means : array of shape (K,)
        Sums of ``U``, a unit's weighted total; all weights ``W`` of units sum to one.
    second, cross : arrays of shape (K,)
        Sums of ``U^2`` and ``W U``.
    squared_weights : float
        Sum of ``W^2``.
    n_units : int
    largest_unit : float
        Largest ``W``.
    low, high : arrays of shape (K,)
        Range of one row's values, known beforehand.
    totals : callable or None
        Returns ``U`` and ``W`` of the units for one mean, where they are at hand: bounds of means that few units carry
        are then shorter.
    periods : PeriodSpread or None
        Where units are periods of rows.
    """

    means: FloatArray
    second: FloatArray
    cross: FloatArray
    squared_weights: float
    n_units: int
    largest_unit: float
    low: FloatArray
    high: FloatArray
    totals: Callable[[int], tuple[FloatArray, FloatArray]] | None = field(default=None, repr=False)
    periods: PeriodSpread | None = field(default=None, repr=False)

    @classmethod
    def of_units(
        cls,
        totals: FloatArray,
        weights: FloatArray,
        low: FloatArray,
        high: FloatArray,
        periods: PeriodSpread | None = None,
    ) -> "Means":
        """Describe means by what all units have: ``U (K, n)`` and ``W (n,)``."""
        second, squared = np.array([row @ row for row in totals]), float(weights @ weights)
        sums = totals.sum(axis=1), second, totals @ weights, squared, weights.size, float(weights.max())
        return cls(*sums, low, high, lambda k: (totals[k], weights), periods)

    @classmethod
    def of_rows(
        cls, values: FloatArray, weights: FloatArray, low: float, high: float, units: IntArray | None = None
    ) -> "Means":
        """Describe the mean of one quantity ``(n,)``; ``units`` are numbers from zero, one per row."""
        totals, ends = (weights * values)[None], (np.array([low]), np.array([high]))
        if units is not None:
            return PeriodSums.of_rows(totals, weights, units).means(*ends)
        return cls.of_units(totals, weights, *ends)

    @cached_property
    def deviations(self) -> FloatArray:
        """Standard errors of the means."""
        centred = self.second - 2 * self.means * self.cross + self.means**2 * self.squared_weights
        rounding = 1e-14 * (self.second + self.means**2 * self.squared_weights)
        squares = np.where(centred > rounding, centred, 0.0)
        if self.periods is None:
            return np.sqrt(squares * self.n_units / max(self.n_units - 1, 1))
        # Of T periods of one size the factor is T / (T - 1); it is larger where some have most of the rows.
        factor = 1 / max(1 - self.squared_weights, 1e-3)
        return np.maximum(np.sqrt(squares * factor), self.periods.row_errors)

    def quantile(self, error: Any) -> Any:
        """Student's t that is exceeded with a probability ``error``."""
        return -stdtrit(max(self.n_units - 1, 1), error)

    def radii(self, error: float, *, below: bool = True) -> FloatArray:
        """How far the true means may lie below (or above) the measured ones, each but for a probability ``error``."""
        unseen = self._unseen * np.log(1 / error)
        found = self.quantile(error) * self.deviations + unseen
        for k in np.flatnonzero(~self.carried):
            found[k] = self._height(int(k), below) - self._betting_bound(int(k), error, below)
        reach = self.means - self.low if below else self.high - self.means
        return np.minimum(found, np.maximum(reach, 0.0))

    def p_values(self) -> FloatArray:
        """Two-sided p-values for means of zero, by the methods that intervals have."""
        size = np.abs(self.means)
        # Where the radius at some error is just the size of the mean: it falls as the error grows.
        low, high = np.full(size.size, -700.0), np.full(size.size, np.log(0.5))
        for _ in range(60):
            middle = (low + high) / 2
            inside = self.quantile(np.exp(middle)) * self.deviations - self._unseen * middle > size
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        found = 2 * np.exp(high)
        for k in np.flatnonzero(~self.carried):
            below = bool(self.means[k] > 0)
            zero = float(-self.low[k] if below else self.high[k])
            found[k] = 2 * np.exp(-max(self._log_wealth(int(k), below)(zero), 0.0))
        return np.minimum(found, 1.0)

    @cached_property
    def carried(self) -> BoolArray:
        """Whether so many units carry each mean that Student's t is right."""
        if self.periods is not None:  # bets on a few periods would say nothing
            return np.full(self.means.size, self.n_units >= FEWEST_PERIODS)
        student = self.quantile(_USUAL_ERROR) * self.deviations
        return (self.n_units >= _FEWEST) & (student >= _CARRIED * self._unseen * np.log(1 / _USUAL_ERROR))

    @property
    def _unseen(self) -> FloatArray:
        """What one value that was not seen can change: a row; all rows of a period where these are always alike."""
        share: Any = self.largest_unit
        if self.periods is not None:
            alone = self.periods.within / np.maximum(self.periods.within + self.periods.between, 1e-300)
            share = np.minimum(self.periods.largest_row / np.maximum(alone, 1e-12), self.largest_unit)
        found: FloatArray = (self.high - self.low) * share
        return found

    def _height(self, k: int, below: bool) -> float:
        """The mean measured from the end of the range."""
        return float(self.means[k] - self.low[k] if below else self.high[k] - self.means[k])

    def _betting_bound(self, k: int, error: float, below: bool) -> float:
        """Lower bound of the height above the end of the range."""
        mean = self._height(k, below)
        least = 1e-9 * float(self.high[k] - self.low[k])
        wealth = self._log_wealth(k, below)
        if mean <= least or wealth(least) + np.log(error) <= 0:
            return 0.0
        return float(brentq(lambda m: wealth(m) + np.log(error), least, mean, rtol=1e-6))

    def _log_wealth(self, k: int, below: bool) -> Callable[[float], float]:
        """Logarithm of what bets come to that the height of the mean above the end of the range exceeds a number."""
        n, end = self.n_units, float(self.low[k] if below else self.high[k])
        span = float(self.high[k] - self.low[k]) * self.largest_unit
        # From where the spread is largest to where one value in n is all there is. As many for every ``m``, so that
        # wealth falls as ``m`` grows, and all means below a refuted one are refuted.
        smallest, most = _SMALLEST_STAKE / np.sqrt(n), float(n)
        steps = np.ceil(max(np.log(most / smallest), 0.0) / np.log(_STAKES_APART))
        fixed = smallest * _STAKES_APART ** np.arange(steps + 1) / (n * span)
        counted = None
        # Bets are placed on the values of units where they are at hand, and not too many for all means.
        if self.totals is not None and int((~self.carried).sum()) * n <= _MOST_VALUES:
            totals, weights = self.totals(k)
            counted = np.unique(n * np.abs(totals - weights * end), return_counts=True)

        def log_wealth(m: float) -> float:
            if m <= 0.0:
                return np.inf
            stakes = np.minimum(fixed, _LARGEST_STAKE / m)
            if counted is not None:
                values, counts = counted
                grown = np.log1p(stakes[:, None] * (values - m)) @ counts
            else:
                # log(1 + x) >= x + x^2 (log(1 - a) + a) / a^2 for x >= -a, here with a = stake * m (Fan et al., 2015).
                first = n * self._height(k, below)
                second = n**2 * float(self.second[k] - 2 * end * self.cross[k] + end**2 * self.squared_weights)
                loss = stakes * m
                curved = (np.log1p(-loss) + loss) / m**2
                grown = stakes * (first - n * m) + curved * (second - 2 * m * first + n * m**2)
            return float(np.logaddexp.reduce(grown) - np.log(stakes.size))

        return log_wealth


#: What a statement may be about: the long run, or the one period that comes next.
HORIZONS = ("average", "next period")


@frozen
class PastErrors:
    """How far outcomes were from forecasts, in ``K`` moments or in utility, and how much that varies over time.

    Attributes
    ----------
    estimates : array of shape (K,)
        Means over the past.
    radii : array of shape (K,)
        The long-run means lie at most so far away (in utility: below), all at once with ``confidence``.
    quantile : float
        Student's t behind the radii.
    within : array of shape (K,)
        Variance of rows around the mean of their period.
    between : array of shape (K,) or None
        Variance of the means of periods; None where rows have no periods.
    inverse_size : float
        Mean of one over the number of rows of a period.
    n_units : int
        Periods, or rows.
    confidence : float
    """

    estimates: FloatArray
    radii: FloatArray
    quantile: float
    within: FloatArray
    between: FloatArray | None
    inverse_size: float
    n_units: int
    confidence: float

    @classmethod
    def of_means(cls, means: Means, radii: FloatArray, error: float, confidence: float) -> "PastErrors":
        """Keep what statements about other cases need; ``error`` is that of one radius."""
        quantile, periods = float(means.quantile(error)), means.periods
        if periods is None:
            within, between, size = means.deviations**2 * means.n_units, None, 1.0
        else:
            within, between, size = periods.within, periods.between, periods.inverse_size
        return cls(means.means, radii, quantile, within, between, size, means.n_units, confidence)

    def radii_for(self, horizon: str, n_cases: float | None = None) -> FloatArray:
        """How far the means of other cases may lie from the estimates, ``(K,)``.

        ``n_cases`` is for their realised mean, which varies by chance even if nothing changes; None for the expected
        one.
        """
        if horizon not in HORIZONS:
            raise InputError(f"horizon must be one of {', '.join(map(repr, HORIZONS))}; got {horizon!r}.")
        chance = np.zeros_like(self.within) if n_cases is None else self.within / n_cases
        if horizon == "next period":
            if self.between is None:
                raise InputError("horizon 'next period' needs outcomes with periods (periods=).")
            if self.n_units < FEWEST_PERIODS:
                raise InputError(
                    f"horizon 'next period' needs outcomes of at least {FEWEST_PERIODS} periods; there are "
                    f"{self.n_units}."
                )
            # Means of past periods vary by chance, too; what a smaller one varies more is added.
            smaller = np.maximum(chance - self.within * self.inverse_size, 0.0)
            chance = np.maximum(self.between + smaller, chance)
        return np.sqrt(self.radii**2 + self.quantile**2 * chance)

    def to_dict(self) -> Document:
        """Describe it for a file."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, content: Any, count: int) -> "PastErrors":
        """Read it from a file, for so many moments."""
        record = Record(content, "past", *cls.__dataclass_fields__)
        confidence = probability(record["confidence"], "past.confidence")
        between = None if record["between"] is None else record.array("between", count)
        arrays = {name: record.array(name, count) for name in ("estimates", "radii", "within")}
        found = cls(
            quantile=record.number("quantile", least=0.0),
            between=between,
            inverse_size=record.number("inverse_size", least=0.0),
            n_units=record.count("n_units"),
            confidence=confidence,
            **arrays,
        )
        if any((each < 0).any() for each in (found.radii, found.within, found.between) if each is not None):
            raise InputError("past.radii, past.within and past.between must not be negative.")
        return found
