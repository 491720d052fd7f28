"""How far a guarantee may be off: the set S of allowed moments and its support function.

``sigma_S(L) = sup over s in S of <L, s>`` (docs/theory.md, section 5). Note that slack
depends on the basis of the tests and not on their span: built-in tests are
scaled to ``max |h| = 1`` first, so that slack is in outcome units.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, finite_array, frozen, probability
from prudent.errors import InputError

MomentLayout = Any  # guarantees.evaluated.EvaluatedTests, of a room above: number, order and scale of the moments


@dataclass(frozen=True, repr=False)
class Slack:
    """A ball or box of allowed moments around zero or around a measured moment.

    Parameters
    ----------
    radius : float, array of shape (k,) or (k, d), or "audit"
        One for all, one per test, or one per moment. "audit" takes intervals per moment from outcomes, centred at the
        measured moments.
    norm : {"l2", "linf"}, optional
        How the ``d`` coordinates of a test's moment are measured together; by default "linf" for radii per moment and
        "audit", else "l2".
    center : {"zero", "measured"} or array of shape (k, d), optional
        "measured" is the moment of the outcomes given to ``fit``. By default zero, and measured with "audit".
    confidence : float, optional
        With which slack that was measured holds; None for slack that is given.

    Examples
    --------
    >>> import prudent
    >>> prudent.Slack(0.01)
    Slack(radius=0.01, norm='l2', center='zero')
    """

    radius: Any
    norm: str | None = None
    center: Any = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        radius, norm, center = self.radius, self.norm, self.center
        if isinstance(radius, (str, bool, np.bool_)):
            own_center = center is None or (isinstance(center, str) and center == "measured")
            if radius != "audit" or not own_center:
                raise InputError(
                    f"slack must be a number, an array, a Slack, or 'audit' to measure it on outcomes, centred at "
                    f"their moments; got {radius!r} with center {center!r}."
                )
            norm, center = "linf", "measured"
        else:
            array = finite_array(radius, "slack")
            if (array < 0).any():
                raise InputError(f"slack radius must not be negative; got {array.min():.6g}.")
            norm = norm or ("linf" if array.ndim > 1 else "l2")
            if array.ndim > 1 and norm == "l2":
                raise InputError(
                    f"slack radius of shape {array.shape} is one per moment and needs norm='linf'; "
                    f"for norm='l2' give a number or one radius per test."
                )
            radius = _nested_tuple(array)
        if norm not in ("l2", "linf"):
            raise InputError(f"slack norm must be 'l2' or 'linf'; got {norm!r}.")
        if self.confidence is not None:
            probability(self.confidence, "slack confidence")
        center = "zero" if center is None else center
        if not isinstance(center, str):
            center = _nested_tuple(finite_array(center, "slack center"))
        elif center not in ("zero", "measured"):
            raise InputError(f"slack center must be 'zero', 'measured' or an array; got {center!r}.")
        for name, value in (("radius", radius), ("norm", norm), ("center", center)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        radius, center = (
            f"<{' x '.join(map(str, np.shape(given)))}>" if isinstance(given, tuple) else repr(given)
            for given in (self.radius, self.center)
        )
        return f"Slack(radius={radius}, norm={self.norm!r}, center={center})"

    @classmethod
    def read(cls, slack: Any) -> Slack:
        """Read what users pass as ``slack``: a number, radii per test or moment, "audit" or a Slack."""
        return slack if isinstance(slack, Slack) else cls(slack)

    @property
    def audited(self) -> bool:
        """True if the radius is still to be measured."""
        return isinstance(self.radius, str)

    @property
    def needs_outcomes(self) -> bool:
        """True if the set is measured on outcomes, or centred at their moments."""
        return self.audited or self.center == "measured"

    def settle(self, tests: MomentLayout, measured: FloatArray | None) -> Slack:
        """Write a measured centre down in numbers, so that the slack holds no reference to a sample."""
        if measured is None or self.center != "measured":
            return self
        return replace(self, center=(measured / tests.scales).reshape(tests.multiplier_shape))

    def resolve(self, tests: MomentLayout, measured: FloatArray | None) -> SlackSet:
        """Return the set in the units of the unscaled tests; ``measured`` are their flat moments."""
        k, size = tests.n_tests, tests.n_moments
        radius = np.asarray(self.radius, dtype=np.float64)
        if radius.shape == (k,):
            radius = radius[tests.groups]
        elif radius.ndim and (self.norm == "l2" or radius.size != size):
            raise InputError(
                f"slack radius must be a number, one per test ({k},) or, with norm='linf', one per moment "
                f"{tests.multiplier_shape}; got shape {radius.shape}."
            )
        radii = np.broadcast_to(radius.reshape(-1), size) * tests.scales
        center = np.zeros(size)
        if self.center == "measured":
            if measured is None:
                raise InputError("slack with center='measured' needs outcomes: pass y to fit.")
            center = measured
        elif self.center != "zero":
            given = np.asarray(self.center, dtype=np.float64)
            if given.size != size:
                raise InputError(
                    f"slack center must have shape {tests.multiplier_shape}, one per moment; got {given.shape}."
                )
            center = given.reshape(-1) * tests.scales
        if self.norm == "linf":
            return SlackSet(center, radii, np.arange(size))
        per_test = np.zeros(k)
        per_test[tests.groups] = radii
        return SlackSet(center, per_test, tests.groups)

    def contradicted(self, measured: Any) -> BoolArray:
        """Mark moments, of ``cases.intervals.MomentEstimates``, whose whole interval lies outside what is allowed."""
        allowed = self.resolve(measured.tests, None)
        return np.abs(measured.estimates - allowed.center) - measured.radii > allowed.radius_of_moments

    def to_dict(self) -> dict[str, Any]:
        """Describe the slack for a file."""
        return asdict(self)


@frozen
class SlackSet:
    """The resolved set S in the space of flat moments: a product of l2 balls; an interval is the ball of one moment.

    Attributes
    ----------
    center : array of shape (K,)
    radius : array of shape (g,)
        Of the balls.
    groups : array of shape (K,)
        The ball of each moment.
    """

    center: FloatArray
    radius: FloatArray
    groups: IntArray

    @property
    def exact(self) -> bool:
        """True if S is the single point zero."""
        return not self.radius.any() and not self.center.any()

    @property
    def radius_of_moments(self) -> FloatArray:
        """The radius that each moment is held to, alone or in its ball, ``(K,)``."""
        return self.radius[self.groups]

    @property
    def contains_zero(self) -> bool:
        """True if the forecasts themselves are a world."""
        return not self.project(np.zeros_like(self.center)).any()

    def support(self, multipliers: FloatArray) -> float:
        """Compute ``sigma_S`` at flat multipliers."""
        return float(self.center @ multipliers) + float(self.radius @ self.norms(multipliers))

    def support_size(self, multipliers: FloatArray) -> float:
        """What the support is made of, at most, before anything cancels."""
        return float((np.abs(self.center) + self.radius_of_moments) @ np.abs(multipliers))

    def project(self, moments: FloatArray) -> FloatArray:
        """Return the nearest allowed moments."""
        offset = moments - self.center
        norms = self.norms(offset)
        shrink = np.minimum(1.0, np.divide(self.radius, norms, out=np.ones_like(norms), where=norms > 0))
        return self.center + offset * shrink[self.groups]

    def norms(self, values: FloatArray) -> FloatArray:
        """Length of every ball's part of a vector, whatever its scale."""
        lengths = np.zeros(self.radius.size)
        np.hypot.at(lengths, self.groups, values)
        return lengths


def _nested_tuple(array: FloatArray) -> Any:
    """Freeze an array as nested tuples, so that a Slack can be compared and hashed."""
    if array.ndim == 0:
        return float(array)
    return tuple(_nested_tuple(row) for row in array)
