"""Recalibration to any finite guarantee: shifts along its own tests until the moments vanish."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from prudent.arrays import FloatArray, IntArray, finite_array
from prudent.errors import InputError
from prudent.guarantees import Unbiased
from prudent.guarantees.base import Guarantee, guarantee_from_dict, positive_integer
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments import MomentEstimates
from prudent.recalibration.base import Pairs, Recalibrator, held_out_residuals, read_pairs
from prudent.spaces import Box, Simplex, Space

__all__ = ["GuaranteeCalibrator", "MeanCalibrator"]

_VANISHING = 1e-8  # where rounding hides whether squared error falls
_PINNINGS = 3  # of forecasts at a bound, until the shift agrees with them
_RANK = 1e-10


class GuaranteeCalibrator(Recalibrator):
    """Make forecasts satisfy a guarantee, by least squares on its tests, round by round.

    Each round adds the combination of the tests that makes all moments vanish
    if nothing else changes, returns to the outcome space, and evaluates the
    tests at the forecasts as they are then. Squared error on the fitting rows
    never rises. Where tests jump (bins, decision regions) some moments may stay
    a little off.

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
        shape: tuple[int, ...] = np.shape(X) if self.space is None else ()
        space = self.intended_space(shape[1] if len(shape) == 2 and shape[1] else 1)
        pairs = read_pairs(X, y, sample_weight, space)
        resolved = self.guarantee.resolve(pairs.forecasts, pairs.weights, space)
        found = _Rounds(resolved, space, pairs, rounds)
        self._set(space, resolved, found.coefficients)
        self.converged_ = found.left <= _VANISHING
        self.squared_error_before_, self.squared_error_after_ = found.errors
        self.residuals_: MomentEstimates | None = held_out_residuals(
            resolved,
            space,
            pairs,
            lambda fitting, rows: _moved(resolved, space, _Rounds(resolved, space, fitting, rounds).coefficients, rows),
        )
        if not self.converged_:
            warnings.warn(
                f"after {self.n_rounds_} round(s) a moment of {found.left:.2g} of its largest possible size is left on "
                f"the fitting rows: the guarantee holds up to that. More rounds (max_rounds) help where the tests are "
                f"continuous.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def intended_space(self, columns: int) -> Space:
        """The space given, or [0, 1] per column."""
        if self.space is None:
            return Box(0.0, 1.0).with_dimension(columns)
        if not isinstance(self.space, (Box, Simplex)):
            raise InputError(f"space must be a Box or a Simplex; got {type(self.space).__name__}.")
        return self.space

    @property
    def n_rounds_(self) -> int:
        """Rounds that were taken."""
        return len(self.coefficients_)

    def _set(self, space: Space, guarantee: Guarantee, coefficients: list[FloatArray]) -> None:
        self.space_, self.guarantee_, self.coefficients_ = space, guarantee, coefficients
        self.n_features_in_ = space.dimension

    def _moved(self, forecasts: FloatArray) -> FloatArray:
        return _moved(self.guarantee_, self.space_, self.coefficients_, forecasts)

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


class _Rounds:
    """The rounds on some rows: coefficients, squared error before and after, the largest moment that is left."""

    def __init__(self, guarantee: Guarantee, space: Space, pairs: Pairs, rounds: int) -> None:
        self.coefficients: list[FloatArray] = []
        current, before = pairs.forecasts, pairs.squared_error(pairs.forecasts)
        error = before
        coefficients, self.left = _newton(guarantee, space, pairs, current)
        while self.left > _VANISHING and len(self.coefficients) < rounds:
            step = _accepted(guarantee, space, pairs, current, coefficients, error)
            if step is None:
                break  # no step along the tests lowers the error: what is left is due to the bounds of the space
            taken, current, error = step
            self.coefficients.append(taken)
            coefficients, self.left = _newton(guarantee, space, pairs, current)
        self.errors = before, error


def _moved(guarantee: Guarantee, space: Space, rounds: list[FloatArray], forecasts: FloatArray) -> FloatArray:
    for coefficients in rounds:
        forecasts = _shifted(guarantee, space, forecasts, coefficients)
    return forecasts


def _shifted(guarantee: Guarantee, space: Space, current: FloatArray, coefficients: FloatArray) -> FloatArray:
    return space.project(current + guarantee.evaluate(current, space).tilts(coefficients))


def _newton(guarantee: Guarantee, space: Space, pairs: Pairs, current: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients whose shift makes all moments vanish, were nothing else to change; and the largest moment.

    Forecasts at a bound that the shift would push further out do not move, so the others have to make up for them.
    Their errors have the other sign, so squared error falls all the same.
    """
    tests = guarantee.evaluate(current, space)
    moments = tests.moments(pairs.outcomes - current, pairs.weights)
    free = np.ones_like(current, dtype=bool)
    coefficients, squares = _solved(tests, pairs.weights, free, moments)
    low, high = space.bounds
    reach = np.sqrt(np.maximum(squares, 0.0)) * (high - low).max()
    left = np.divide(np.abs(moments), reach, out=np.zeros_like(moments), where=reach > 0)
    for _ in range(_PINNINGS):
        tilted = current + tests.tilts(coefficients)
        inside = space.project(tilted)
        pinned = (inside == current) & (tilted != current) & ((current <= low) | (current >= high))
        if (free == ~pinned).all():
            break
        free = ~pinned
        coefficients, _ = _solved(tests, pairs.weights, free, moments)
    return coefficients, float(left.max(initial=0.0))


def _solved(
    tests: EvaluatedTests, weights: FloatArray, free: NDArray[np.bool_], moments: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve the normal equations of the free coordinates; also the mean square of every test there."""
    if not tests.scalar:
        tests = tests.as_vector()
        flat = np.where(free[:, None, :], tests.values, 0.0).transpose(0, 2, 1).reshape(-1, tests.n_moments)
        gram = flat.T @ (np.repeat(weights, tests.dimension)[:, None] * flat)
        return _least_norm(gram, moments), gram.diagonal()
    table = moments.reshape(-1, tests.dimension)
    solved, squares = np.empty_like(table), np.empty_like(table)
    # Coordinates without a forecast at a bound share one matrix.
    whole = free.all(axis=0)
    groups: list[IntArray] = [np.flatnonzero(whole), *np.flatnonzero(~whole)[:, None]]
    for columns in groups:
        if len(columns):
            rows = weights * free[:, columns[0]]
            gram = tests.values.T @ (rows[:, None] * tests.values)
            solved[:, columns] = _least_norm(gram, table[:, columns])
            squares[:, columns] = gram.diagonal()[:, None]
    return solved.reshape(-1), squares.reshape(-1)


def _least_norm(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with a Gram matrix that need not have full rank: tests may add up to one another."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK * values[-1] if values.size else values > 0
    basis = vectors[:, kept]
    solution: FloatArray = (basis / values[kept]) @ (basis.T @ right)
    return solution


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
