"""Recalibration to any finite guarantee: shifts along its own tests until the moments vanish."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from prudent.arrays import FloatArray, finite_array
from prudent.errors import InputError
from prudent.guarantees import Unbiased
from prudent.guarantees.base import Guarantee, guarantee_from_dict, positive_integer
from prudent.moments import MomentEstimates, estimate_moments
from prudent.recalibration.base import Pairs, Recalibrator, read_pairs
from prudent.spaces import Box, Simplex, Space

__all__ = ["GuaranteeCalibrator", "MeanCalibrator"]

_VANISHING = 1e-10


class GuaranteeCalibrator(Recalibrator):
    """Make forecasts satisfy a guarantee, by least squares on its tests, round by round.

    Each round adds the combination of the tests that lowers squared error most,
    returns to the outcome space, and evaluates the tests at the forecasts as
    they are then. Squared error on the fitting rows never rises.

    Parameters
    ----------
    guarantee : Guarantee
        Any finite one; what depends on a sample is fixed on the first forecasts.
    space : Box or Simplex, optional
        [0, 1] by default, per column.
    max_rounds : int

    Attributes
    ----------
    guarantee_ : Guarantee
        Resolved; what the output satisfies.
    residuals_ : MomentEstimates
        Moments that are left on the fitting rows, with their uncertainty.
    n_rounds_ : int
    converged_ : bool
        Every moment on the fitting rows is below 1e-10 of its largest possible size.
    squared_error_before_, squared_error_after_ : float

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < 0.3 + 0.4 * forecasts).astype(float)
    >>> guarantee = prudent.guarantees.SelfOrthogonal(intercept=True)
    >>> calibrator = prudent.GuaranteeCalibrator(guarantee).fit(forecasts, outcomes)
    >>> prudent.audit(calibrator.transform(forecasts), outcomes, guarantee).rejected
    ()
    """

    _kind = "guarantee"

    def __init__(self, guarantee: Guarantee, *, space: Space | None = None, max_rounds: int = 100) -> None:
        self.guarantee = guarantee
        self.space = space
        self.max_rounds = max_rounds

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Find the rounds' coefficients."""
        if not isinstance(self.guarantee, Guarantee) or self.guarantee.full:
            raise InputError(f"guarantee must be a finite one from prudent.guarantees; got {self.guarantee!r}.")
        rounds = positive_integer(self.max_rounds, "max_rounds")
        space = _space(self.space, X)
        pairs = read_pairs(X, y, sample_weight, space)
        resolved = self.guarantee.resolve(pairs.forecasts, pairs.weights, space)
        current, error = pairs.forecasts, pairs.squared_error(pairs.forecasts)
        self.squared_error_before_ = error
        found: list[FloatArray] = []
        converged = False
        while not converged and len(found) < rounds:
            coefficients, size = _least_squares(resolved, space, pairs, current)
            if size <= _VANISHING:
                converged = True
                break
            step = _accepted(resolved, space, pairs, current, coefficients, error)
            if step is None:
                break  # no step along the tests lowers the error: what is left is due to the bounds of the space
            coefficients, current, error = step
            found.append(coefficients)
        self._set(space, resolved, found)
        self.converged_ = converged or _least_squares(resolved, space, pairs, current)[1] <= _VANISHING
        self.squared_error_after_ = error
        self.residuals_: MomentEstimates = estimate_moments(
            resolved, space, current, pairs.outcomes, pairs.weights, confidence=0.95
        )
        return self

    @property
    def n_rounds_(self) -> int:
        """Rounds that were taken."""
        return len(self.coefficients_)

    def _set(self, space: Space, guarantee: Guarantee, coefficients: list[FloatArray]) -> None:
        self.space_, self.guarantee_, self.coefficients_ = space, guarantee, coefficients
        self.n_features_in_ = space.dimension

    def _moved(self, forecasts: FloatArray) -> FloatArray:
        current = forecasts
        for coefficients in self.coefficients_:
            current = _shifted(self.guarantee_, self.space_, current, coefficients)
        return current

    def _describe(self) -> dict[str, Any]:
        if not self.guarantee_.savable:
            raise InputError("this guarantee contains Python functions, which a file cannot hold.")
        return {
            "guarantee": self.guarantee_.to_dict(),
            "coefficients": [values.tolist() for values in self.coefficients_],
        }

    @classmethod
    def _rebuild(cls, content: dict[str, Any], space: Space) -> Self:
        guarantee = guarantee_from_dict(content["guarantee"])
        calibrator = cls._for(guarantee)
        found = [finite_array(values, "coefficients") for values in content["coefficients"]]
        if any(values.ndim != 1 for values in found):
            raise ValueError("coefficients must be lists of numbers.")
        calibrator._set(space, guarantee, found)
        return calibrator

    @classmethod
    def _for(cls, guarantee: Guarantee) -> Self:
        return cls(guarantee)


class MeanCalibrator(GuaranteeCalibrator):
    """Shift forecasts so that they are right on average.

    Parameters
    ----------
    space : Box or Simplex, optional
        [0, 1] by default, per column.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> forecasts, outcomes = np.array([0.2, 0.4, 0.6]), np.array([0.0, 1.0, 1.0])
    >>> prudent.MeanCalibrator().fit(forecasts, outcomes).transform(forecasts).mean().round(3)
    np.float64(0.667)
    """

    _kind = "mean"

    def __init__(self, *, space: Space | None = None) -> None:
        super().__init__(Unbiased(), space=space)

    @classmethod
    def _for(cls, guarantee: Guarantee) -> Self:  # noqa: ARG003  # it is always the same one
        return cls()


def _shifted(guarantee: Guarantee, space: Space, current: FloatArray, coefficients: FloatArray) -> FloatArray:
    return space.project(current + guarantee.evaluate(current, space).tilts(coefficients))


def _least_squares(guarantee: Guarantee, space: Space, pairs: Pairs, current: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients that lower squared error most, and the size of the largest moment."""
    tests = guarantee.evaluate(current, space)
    moments = tests.moments(pairs.outcomes - current, pairs.weights)
    if tests.scalar:
        gram = np.kron(tests.values.T @ (pairs.weights[:, None] * tests.values), np.eye(tests.dimension))
    else:
        flat = tests.values.transpose(0, 2, 1).reshape(-1, tests.n_moments)
        gram = flat.T @ (np.repeat(pairs.weights, tests.dimension)[:, None] * flat)
    largest = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    low, high = space.bounds
    size = np.divide(np.abs(moments), largest * (high - low).max(), out=np.zeros_like(moments), where=largest > 0)
    coefficients = np.linalg.lstsq(gram, moments, rcond=1e-10)[0]
    return coefficients, float(size.max(initial=0.0))


def _accepted(
    guarantee: Guarantee, space: Space, pairs: Pairs, current: FloatArray, coefficients: FloatArray, error: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Shorten a step until squared error falls; None if it does not, however short."""
    for halvings in range(30):
        shorter = coefficients * 0.5**halvings
        moved = _shifted(guarantee, space, current, shorter)
        reached = pairs.squared_error(moved)
        if reached < error:
            return shorter, moved, reached
    return None


def _space(space: Any, forecasts: Any) -> Space:
    if space is None:
        shape = np.shape(forecasts)
        return Box(0.0, 1.0).with_dimension(shape[1] if len(shape) == 2 and shape[1] else 1)
    if not isinstance(space, (Box, Simplex)):
        raise InputError(f"space must be a Box or a Simplex; got {type(space).__name__}.")
    return space
