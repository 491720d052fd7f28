"""Recalibration to any finite guarantee: Newton steps along its own tests until the moments vanish."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from prudent.arrays import Context, FloatArray, positive_integer
from prudent.cases.memory_rows import MemoryRows
from prudent.files.records import Record
from prudent.guarantees.base import Guarantee, count_moments, guarantee_from_dict
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.names import read_guarantee
from prudent.recalibration.base import Recalibrator, squared_error
from prudent.spaces import Space

_VANISHING = 1e-8  # where rounding hides whether squared error falls
_PINNINGS = 3  # of forecasts at a bound, until the step agrees with them


class GuaranteeCalibrator(Recalibrator):
    """Make forecasts satisfy a guarantee, by least squares on its tests, round by round.

    Each round adds the combination of the tests that makes all moments vanish
    if nothing else changes, returns to the outcome space, and evaluates the
    tests at the forecasts as they are then. Squared error on the fitting rows
    never rises. Where tests jump (bins, decision regions) some moments may stay
    a little off.

    Parameters
    ----------
    guarantee : Guarantee or str
        Any finite one: ``"unbiased"`` shifts forecasts until they are right on average, ``"bins:10"`` within each
        bin. What depends on a sample is fixed on the first forecasts.
    space : Box or Simplex, optional
        [0, 1] by default, per column.
    max_rounds : int

    Attributes
    ----------
    guarantee_ : Guarantee
        Resolved; what the output satisfies.
    residuals_ : MomentEstimates
        What is left on rows held out in turn: each fold is moved by rounds found on the others. With simultaneous 95%
        intervals; None with fewer than ten rows.
    n_rounds_ : int
    converged_ : bool
        Every moment on the fitting rows is below 1e-8 of its largest possible size; else a warning says what is left.
    squared_error_before_, squared_error_after_ : float

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < 0.3 + 0.4 * forecasts).astype(float)
    >>> guarantee = prudent.guarantees.SelfOrthogonal(intercept=True)
    >>> calibrator = prudent.recalibration.GuaranteeCalibrator(guarantee).fit(forecasts, outcomes)
    >>> prudent.audit(None, calibrator.transform(forecasts), outcomes, guarantee=guarantee).rejected
    ()
    """

    _kind = "guarantee"
    _fields = ("guarantee", "coefficients")

    def __init__(self, guarantee: Guarantee | str, *, space: Space | None = None, max_rounds: int = 100) -> None:
        self.guarantee = guarantee
        self.space = space
        self.max_rounds = max_rounds

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, context: Any = None) -> Self:
        """Find the rounds' coefficients."""
        read_guarantee(self.guarantee, finite=True)
        super().fit(X, y, sample_weight=sample_weight, context=context)
        if not self.converged_:
            warnings.warn(
                f"after {self.n_rounds_} round(s) a moment of {self._left:.2g} of its largest possible size is left on "
                f"the fitting rows: the guarantee holds up to that. More rounds (max_rounds) help where the tests are "
                f"continuous.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @property
    def n_rounds_(self) -> int:
        """Rounds that were taken."""
        return len(self.coefficients_)

    @property
    def converged_(self) -> bool:
        """Whether every moment on the fitting rows vanishes."""
        return self._left <= _VANISHING

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the guarantee."""
        return self.guarantee_.context_columns

    def _fit(self, rows: MemoryRows) -> None:
        """Take Newton steps with a line search."""
        most, space, current = positive_integer(self.max_rounds, "max_rounds"), self.space_, rows.forecasts
        known = getattr(self, "guarantee_", self.guarantee)  # folds use what all rows have resolved
        self.guarantee_ = rows.resolve(read_guarantee(known))
        self.coefficients_: list[FloatArray] = []
        self.squared_error_before_ = self.squared_error_after_ = squared_error(rows, current)
        while True:
            tests = self.guarantee_.evaluate(current, space, rows.context)
            step, self._left = _newton_step(tests, rows, current)
            if self.converged_ or self.n_rounds_ == most:
                return
            for _ in range(30):
                moved = space.project(current + tests.tilts(step))
                error = squared_error(rows, moved)
                if error < self.squared_error_after_:
                    break
                step = step * 0.5
            else:
                return  # no step along the tests lowers the error: what is left is due to the bounds of the space
            current, self.squared_error_after_ = moved, error
            self.coefficients_.append(step)

    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        for step in self.coefficients_:
            tests = self.guarantee_.evaluate(forecasts, self.space_, context)
            forecasts = self.space_.project(forecasts + tests.tilts(step))
        return forecasts

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        guarantee = guarantee_from_dict(record["guarantee"])
        found = list(record.array("coefficients", None, count_moments(guarantee, space)))
        calibrator = cls(guarantee)
        calibrator.space_, calibrator.guarantee_, calibrator.coefficients_ = space, guarantee, found
        return calibrator


def _newton_step(tests: EvaluatedTests, rows: MemoryRows, current: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients whose shift makes all moments vanish, were nothing else to change; and the largest moment.

    Forecasts at a bound that the shift would push further out do not move, so the others have to make up for them.
    Their errors have the other sign, so squared error falls all the same.
    """
    moments = tests.moments(rows.known_outcomes - current, rows.weights)
    d, space = tests.dimension, rows.space
    low, high = space.bounds
    if tests.scalar:  # the coordinates are separate problems with one table
        table, weights, right = tests.values, rows.weights, moments.reshape(-1, d).T
    else:
        table = tests.values.transpose(0, 2, 1).reshape(-1, tests.n_moments)
        weights, right = np.repeat(rows.weights, d), moments[None]
    free = np.ones_like(current, dtype=bool)
    for _ in range(_PINNINGS + 1):
        masks = free.reshape(len(weights), -1).T
        grams = [table.T @ ((weights * mask)[:, None] * table) for mask in masks]
        # Tests may add up to one another, so a Gram matrix need not have full rank.
        solved = [np.linalg.lstsq(gram, side, rcond=1e-10)[0] for gram, side in zip(grams, right, strict=True)]
        step = np.stack(solved, axis=1).reshape(-1)
        shifted = current + tests.tilts(step)
        moving = (space.project(shifted) != current) | (shifted == current) | ((current > low) & (current < high))
        if (free == moving).all():
            break
        free = moving
    reach = np.sqrt(np.repeat(weights @ table**2, len(right))) * space.widths.max()
    return step, float(np.max(np.abs(moments[reach > 0]) / reach[reach > 0], initial=0.0))
