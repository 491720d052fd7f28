"""Guarantees whose tests are plain formulas of the forecast."""

import operator
from functools import reduce
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from prudent.arrays import positive_integer, truth
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import ONE, Chebyshev, Expression, coordinates
from prudent.guarantees.symbolic import SymbolicTests, forecast_names
from prudent.spaces import Space

_FEW = 30  # of twice as many or more have more subsets than a file may have tests, and are counted in no time


class Nothing(Guarantee):
    """No guarantee at all: the forecast may be unrelated to the outcome.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Nothing()
    Nothing()
    """

    kind = "nothing"
    name = "nothing"

    def stated(self, space: Space) -> SymbolicTests:
        return SymbolicTests([], EvaluatedTests.scalar_layout([], space))


class Unbiased(Guarantee):
    """The forecasts are right on average: ``E[Y - f] = 0``.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Unbiased() & guarantees.SelfOrthogonal()
    Unbiased() & SelfOrthogonal(intercept=False)
    """

    kind = "unbiased"
    name = "unbiased"

    def stated(self, space: Space) -> SymbolicTests:
        return SymbolicTests([ONE], EvaluatedTests.scalar_layout(["1"], space))


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

    kind = "self-orthogonal"
    name = "self-orthogonal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", truth(self.intercept, "intercept"))

    def stated(self, space: Space) -> SymbolicTests:
        layout = EvaluatedTests.scalar_layout(forecast_names(space), space, np.abs(space.bounds).max(axis=0))
        own = SymbolicTests(coordinates(space.dimension), layout)
        return SymbolicTests.joined([Unbiased().stated(space), own]) if self.intercept else own


class Polynomial(Guarantee):
    """Errors are uncorrelated with all polynomials up to a total degree.

    The tests are products of Chebyshev polynomials ``T_k`` of single
    coordinates, each mapped from its range in the space to [-1, 1]; the
    constant is included. They span what monomials span and are far better
    conditioned. Slack refers to these tests. On the simplex the last class,
    which the others determine, is left out.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Polynomial(2)
    Polynomial(degree=2)
    """

    degree: int

    kind = "chebyshev-polynomial"  # not "polynomial": files of that kind have multipliers of monomials
    name = "polynomial:N"

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", positive_integer(self.degree, "degree", least=0))

    def stated(self, space: Space) -> SymbolicTests:
        lower, upper = space.bounds
        free = space.free_dimension
        ranges = zip(coordinates(free), lower[:free], upper[:free] - lower[:free], strict=True)
        x = [(v - low) / width * 2.0 - 1.0 for v, low, width in ranges]
        columns: list[Expression] = [ONE]
        names, labels = ["1"], forecast_names(space)
        for degree in range(1, self.degree + 1):
            for powers in combinations_with_replacement(range(free), degree):
                factors = {j: powers.count(j) for j in powers}
                parts = [x[j] if power == 1 else Chebyshev(power, x[j]) for j, power in factors.items()]
                columns.append(reduce(operator.mul, parts))
                names.append(" ".join(f"T{power}({labels[j]})" for j, power in factors.items()))
        return SymbolicTests(columns, EvaluatedTests.scalar_layout(names, space))

    def n_moments(self, space: Space) -> int:
        free = space.free_dimension
        return comb(self.degree + free, min(self.degree, free, _FEW)) * space.dimension


class FullyCalibrated(Guarantee):
    """Every forecast is right given itself: ``E[Y | f] = f``. Best responding is then optimal.

    Examples
    --------
    >>> from prudent import guarantees
    >>> (guarantees.FullyCalibrated() & guarantees.Unbiased()).full
    True
    """

    kind = "fully-calibrated"
    name = "fully-calibrated"
    full = True

    def stated(self, space: Space) -> SymbolicTests:
        raise InputError("FullyCalibrated has infinitely many tests; they cannot be evaluated, slackened or audited.")
