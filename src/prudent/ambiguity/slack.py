"""How far a guarantee may be off: the set S of allowed moments and its support function.

``sigma_S(L) = sup over s in S of <L, s>`` (docs/theory.md, section 5). Note that slack
depends on the basis of the tests and not on their span: built-in tests are
scaled to ``max |h| = 1`` first, so that slack is in outcome units.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray, finite_array, probability
from prudent.errors import InputError
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments import MomentEstimates

__all__ = ["Slack", "SlackSet"]


@dataclass(frozen=True)
class Slack:
    """A ball or box of allowed moments around zero or around a measured moment.

    Parameters
    ----------
    radius : float, array of shape (k,) or (k, d), or "audit"
        One for all, one per test, or (with ``norm="linf"``) one per moment. "audit" takes intervals per moment from
        outcomes: around zero what is measured plus its uncertainty, around the measured moments the uncertainty
        alone, which is the smaller set.
    norm : {"l2", "linf"}
        How the ``d`` coordinates of a test's moment are measured together.
    center : {"zero", "measured"} or array of shape (k, d)
        "measured" is the moment of the outcomes given to ``fit``.
    confidence : float, optional
        With which slack that was measured holds; None for slack that is given.

    Examples
    --------
    >>> import prudent
    >>> prudent.Slack(0.01)
    Slack(radius=0.01, norm='l2', center='zero')
    """

    radius: Any
    norm: str = "l2"
    center: Any = "zero"
    confidence: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.radius, str):
            if self.radius != "audit" or not isinstance(self.center, str):
                raise InputError(
                    f"slack radius must be numbers, or 'audit' with center 'zero' or 'measured'; "
                    f"got {self.radius!r} with center {self.center!r}."
                )
            object.__setattr__(self, "norm", "linf")
        radius = np.zeros(()) if self.audited else finite_array(self.radius, "slack radius")
        if (radius < 0).any():
            raise InputError(f"slack radius must not be negative; got {radius.min():.6g}.")
        if self.norm not in ("l2", "linf"):
            raise InputError(f"slack norm must be 'l2' or 'linf'; got {self.norm!r}.")
        if radius.ndim > 1 and self.norm == "l2":
            raise InputError(
                f"slack radius of shape {radius.shape} is one per moment and needs norm='linf'; "
                f"for norm='l2' give a number or one radius per test."
            )
        if self.confidence is not None:
            probability(self.confidence, "slack confidence")
        if isinstance(self.center, str):
            if self.center not in ("zero", "measured"):
                raise InputError(f"slack center must be 'zero', 'measured' or an array; got {self.center!r}.")
        else:
            object.__setattr__(self, "center", _nested_tuple(finite_array(self.center, "slack center")))
        if not self.audited:
            object.__setattr__(self, "radius", _nested_tuple(radius))

    @classmethod
    def read(cls, slack: Any) -> Slack:
        """Read what users pass as ``slack``: a number, radii per test or moment, intervals, "audit" or a Slack."""
        if isinstance(slack, Slack):
            return slack
        if isinstance(slack, str) and slack == "audit":
            return cls("audit")
        if isinstance(slack, (str, bool, np.bool_)) or slack is None:
            raise InputError(
                f"slack must be a number, an array, a Slack, or 'audit' to measure it on outcomes; got {slack!r}."
            )
        array = finite_array(slack, "slack")
        if array.ndim <= 1:
            return cls(array, "l2")
        if array.ndim == 2:
            return cls(array, "linf")
        if array.ndim == 3 and array.shape[2] == 2:
            low, high = array[:, :, 0], array[:, :, 1]
            if (low > high).any():
                raise InputError("slack intervals must have lower <= upper in every moment.")
            return cls((high - low) / 2, "linf", (high + low) / 2)
        raise InputError(
            f"slack must be a number, one per test (k,), one per moment (k, d) or intervals (k, d, 2); "
            f"got shape {array.shape}."
        )

    @property
    def audited(self) -> bool:
        """True if the radius is still to be measured."""
        return isinstance(self.radius, str)

    @property
    def needs_outcomes(self) -> bool:
        """True if the set is measured on outcomes, or centred at their moments."""
        return self.audited or (isinstance(self.center, str) and self.center == "measured")

    def measure(self, estimates: MomentEstimates, confidence: float) -> Slack:
        """Fill in the radius that outcomes show, with the confidence that all moments lie in it."""
        size = estimates.radii
        if isinstance(self.center, str) and self.center == "zero":
            size = size + np.abs(estimates.estimates)
        tests = estimates.tests
        shape = tests.multiplier_shape if tests.scalar else (tests.n_moments, 1)
        return replace(self, radius=(size / tests.scales).reshape(shape), confidence=confidence)

    def settle(self, tests: EvaluatedTests, measured: FloatArray | None) -> Slack:
        """Write a measured centre down in numbers, so that the slack holds no reference to a sample."""
        if measured is None or not isinstance(self.center, str) or self.center == "zero":
            return self
        return replace(self, center=(measured / tests.scales).reshape(tests.multiplier_shape))

    def resolve(self, tests: EvaluatedTests, measured: FloatArray | None) -> SlackSet:
        """Return the set in the units of the unscaled tests; ``measured`` are their flat moments."""
        k, size = tests.n_tests, tests.n_moments
        radius = np.asarray(self.radius, dtype=np.float64)
        if self.norm == "l2":
            per_test = _spread(radius, (k,), "one per test")
            scale = np.zeros(k)
            scale[tests.groups] = tests.scales
            radii = per_test * scale
        else:
            if radius.ndim == 1 and radius.shape == (k,):
                radius = radius[tests.groups]
            elif radius.ndim and radius.shape not in _shapes(tests):
                raise InputError(
                    f"slack radius must be a number, one per test ({k},) or one per moment "
                    f"{tests.multiplier_shape}; got shape {radius.shape}."
                )
            radii = np.broadcast_to(radius.reshape(-1) if radius.ndim else radius, (size,)) * tests.scales
        if isinstance(self.center, str):
            center = np.zeros(size)
            if self.center == "measured":
                if measured is None:
                    raise InputError("slack with center='measured' needs outcomes: pass y to fit.")
                center = measured
        else:
            given = np.asarray(self.center, dtype=np.float64)
            if given.shape not in _shapes(tests):
                raise InputError(
                    f"slack center must have shape {tests.multiplier_shape}, one per moment; got {given.shape}."
                )
            center = given.reshape(-1) * tests.scales
        if self.norm == "l2" and np.unique(tests.groups).size == size:
            return SlackSet(center, radii[tests.groups], tests.groups, ball=False)
        return SlackSet(center, radii, tests.groups, ball=self.norm == "l2")

    def to_dict(self) -> dict[str, Any]:
        """Describe the slack for a file."""
        center = self.center if isinstance(self.center, str) else np.asarray(self.center).tolist()
        return {
            "radius": np.asarray(self.radius).tolist(),
            "norm": self.norm,
            "center": center,
            "confidence": self.confidence,
        }


@dataclass(frozen=True, eq=False)
class SlackSet:
    """The resolved set S in the space of flat moments.

    Attributes
    ----------
    center : array of shape (K,)
    radius : array
        Per group ``(k,)`` for balls, per moment ``(K,)`` for a box.
    groups : array of shape (K,)
    ball : bool
        True for per-test l2 balls, False for intervals per moment.
    """

    center: FloatArray
    radius: FloatArray
    groups: IntArray
    ball: bool

    @property
    def exact(self) -> bool:
        """True if S is the single point zero."""
        return not self.radius.any() and not self.center.any()

    @property
    def zero_centered(self) -> bool:
        """True if S contains zero in its middle, so that the forecasts themselves are a world."""
        return not self.center.any()

    def support(self, multipliers: FloatArray) -> float:
        """Compute ``sigma_S`` at flat multipliers."""
        linear = float(self.center @ multipliers)
        if not self.ball:
            return linear + float(self.radius @ np.abs(multipliers))
        return linear + float(self.radius @ self._norms(multipliers))

    def project(self, moments: FloatArray) -> FloatArray:
        """Return the nearest allowed moments, per test."""
        offset = moments - self.center
        if not self.ball:
            return self.center + np.clip(offset, -self.radius, self.radius)
        norms = self._norms(offset)
        shrink = np.minimum(1.0, np.divide(self.radius, norms, out=np.ones_like(norms), where=norms > 0))
        return self.center + offset * shrink[self.groups]

    def _norms(self, values: FloatArray) -> FloatArray:
        return np.sqrt(np.bincount(self.groups, weights=values**2, minlength=self.radius.size))


def _shapes(tests: EvaluatedTests) -> tuple[tuple[int, ...], ...]:
    """Ways to write one number per moment: as multipliers are shown, flat, or in d columns where that fits."""
    k, d, size = tests.n_tests, tests.dimension, tests.n_moments
    return (tests.multiplier_shape, (size,), (size, 1), (k, d) if k * d == size else (size,))


def _spread(values: FloatArray, shape: tuple[int, ...], meaning: str) -> FloatArray:
    if values.ndim and values.shape != shape:
        raise InputError(f"slack radius must be a number or {meaning}, shape {shape}; got shape {values.shape}.")
    return np.broadcast_to(values, shape)


def _nested_tuple(array: FloatArray) -> Any:
    """Freeze an array as nested tuples, so that a Slack can be compared and hashed."""
    if array.ndim == 0:
        return float(array)
    return tuple(_nested_tuple(row) for row in array)
