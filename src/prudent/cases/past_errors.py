"""What past outcomes say about other cases: on average, in the next period, realised (docs/theory.md, section 13)."""

from typing import Any

import numpy as np

from prudent.arrays import FloatArray, frozen, probability
from prudent.cases.mean_bounds import FEWEST_PERIODS, Means
from prudent.errors import InputError
from prudent.files.records import Document, Record

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
