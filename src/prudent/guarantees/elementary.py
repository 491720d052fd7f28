"""Guarantees whose tests are plain formulas of the forecast."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, positive_integer
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.written import Block, WrittenTests, coordinate
from prudent.spaces import Space

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["FullyCalibrated", "Nothing", "Polynomial", "SelfOrthogonal", "Unbiased"]


@dataclass(frozen=True)
class Nothing(Guarantee):
    """No guarantee at all: the forecast may be unrelated to the outcome.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Nothing()
    Nothing()
    """

    kind: ClassVar[str] = "nothing"

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return EvaluatedTests.from_scalar(np.zeros((forecasts.shape[0], 0)), [], np.zeros(0), space.coordinate_names)

    def write(self, space: Space) -> WrittenTests:
        return WrittenTests((Block(lambda labels, _: self.evaluate(np.zeros((len(labels), 1)), space)),))


@dataclass(frozen=True)
class Unbiased(Guarantee):
    """The forecasts are right on average: ``E[Y - f] = 0``.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Unbiased() & guarantees.SelfOrthogonal()
    Unbiased() & SelfOrthogonal(intercept=False)
    """

    kind: ClassVar[str] = "unbiased"

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return EvaluatedTests.from_scalar(np.ones((forecasts.shape[0], 1)), ["1"], np.ones(1), space.coordinate_names)

    def write(self, space: Space) -> WrittenTests:
        return WrittenTests((Block(lambda labels, _: self.evaluate(np.zeros((len(labels), 1)), space)),))


@dataclass(frozen=True)
class SelfOrthogonal(Guarantee):
    """Errors are uncorrelated with the forecast: ``E[f (Y - f)] = 0``.

    Holds for an unregularised linear last layer trained by squared loss to a
    stationary point; a layer with a bias also gives the test 1, so then use
    ``intercept=True``. On the simplex the coordinates sum to one and the
    intercept is implied. Weight decay, early stopping and clipping break it:
    audit, do not assume.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.SelfOrthogonal(intercept=True)
    SelfOrthogonal(intercept=True)
    """

    intercept: bool = False

    kind: ClassVar[str] = "self-orthogonal"

    def __post_init__(self) -> None:
        if not isinstance(self.intercept, (bool, np.bool_)):
            raise InputError(f"intercept must be True or False; got {self.intercept!r}.")
        object.__setattr__(self, "intercept", bool(self.intercept))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        lower, upper = space.bounds
        names = ["v"] if space.dimension == 1 else [f"v{name[1:]}" for name in space.coordinate_names]
        scales = np.maximum(np.abs(lower), np.abs(upper))
        values = forecasts
        if self.intercept:
            values = np.concatenate([np.ones((1, len(forecasts))), forecasts.T]).T
            names = ["1", *names]
            scales = np.concatenate([[1.0], scales])
        return EvaluatedTests.from_scalar(values, names, scales, space.coordinate_names)

    def write(self, space: Space) -> WrittenTests:
        import narwhals.stable.v2 as nw

        names = [coordinate(j) for j in range(space.dimension)]
        numbers = {name: nw.col(name) for name in names}
        return WrittenTests((Block(lambda _, values: self.evaluate(values, space), numbers),))


@dataclass(frozen=True)
class Polynomial(Guarantee):
    """Errors are uncorrelated with all monomials up to a total degree.

    Monomials are taken in coordinates normalised to [0, 1], the constant included.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Polynomial(2)
    Polynomial(degree=2)
    """

    degree: int

    kind: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", positive_integer(self.degree, "degree", least=0))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        lower, upper = space.bounds
        normal = (forecasts - lower) / (upper - lower)
        monomials: dict[tuple[int, ...], FloatArray] = {(): np.ones(forecasts.shape[0])}
        for powers in self._powers(space):
            monomials[powers] = monomials[powers[:-1]] * normal[:, powers[-1]]
        return self._tests(np.stack(list(monomials.values()), axis=1), space)

    def write(self, space: Space) -> WrittenTests:
        import narwhals.stable.v2 as nw

        lower, upper = space.bounds
        normal = [
            (nw.col(coordinate(j)) - low) / (high - low) for j, (low, high) in enumerate(zip(lower, upper, strict=True))
        ]
        monomials: dict[tuple[int, ...], nw.Expr] = {}
        for powers in self._powers(space):
            last = normal[powers[-1]]
            monomials[powers] = last if len(powers) == 1 else monomials[powers[:-1]] * last
        numbers = {"z" + "_".join(map(str, powers)): monomial for powers, monomial in monomials.items()}

        def assemble(labels: IntArray, values: FloatArray) -> EvaluatedTests:
            return self._tests(np.hstack([np.ones((len(labels), 1)), values]), space)

        return WrittenTests((Block(assemble, numbers),))

    def _powers(self, space: Space) -> list[tuple[int, ...]]:
        degrees = range(1, self.degree + 1)
        return [p for degree in degrees for p in combinations_with_replacement(range(space.dimension), degree)]

    def _tests(self, values: FloatArray, space: Space) -> EvaluatedTests:
        labels = ["z"] if space.dimension == 1 else [f"z{name[1:]}" for name in space.coordinate_names]
        names = ["1"]
        for powers in self._powers(space):
            counts = [(labels[j], powers.count(j)) for j in sorted(set(powers))]
            names.append(" ".join(label if count == 1 else f"{label}^{count}" for label, count in counts))
        return EvaluatedTests.from_scalar(values, names, np.ones(len(names)), space.coordinate_names)


@dataclass(frozen=True)
class FullyCalibrated(Guarantee):
    """Every forecast is right given itself: ``E[Y | f] = f``. Best responding is then optimal.

    Examples
    --------
    >>> from prudent import guarantees
    >>> (guarantees.FullyCalibrated() & guarantees.Unbiased()).full
    True
    """

    kind: ClassVar[str] = "fully-calibrated"

    @property
    def full(self) -> bool:
        return True

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        raise InputError("FullyCalibrated has infinitely many tests; they cannot be evaluated, slackened or audited.")

    def write(self, space: Space) -> WrittenTests:
        raise InputError("FullyCalibrated has infinitely many tests; they cannot be evaluated, slackened or audited.")
