"""Guarantees whose tests are plain formulas of the forecast, or of its logarithms (docs/theory.md, section 3.8)."""

import operator
from functools import reduce
from itertools import accumulate, combinations_with_replacement
from math import comb

import numpy as np

from prudent.arrays import positive_integer, truth
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, SymbolicTests, forecast_names
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import ONE, Chebyshev, Coordinate, Expression, Logarithm, coordinates
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

    name = "unbiased"

    def stated(self, space: Space) -> SymbolicTests:
        return SymbolicTests([ONE], EvaluatedTests.scalar_layout(["1"], space))


class _WithIntercept(Guarantee):
    """Tests of the forecast, and the test 1 if asked for."""

    intercept: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", truth(self.intercept, "intercept"))

    def stated(self, space: Space) -> SymbolicTests:
        own = self._tests(space)
        return SymbolicTests.joined([Unbiased().stated(space), own]) if self.intercept else own

    def _tests(self, space: Space) -> SymbolicTests:
        """State the tests without the intercept."""
        raise NotImplementedError


class SelfOrthogonal(_WithIntercept):
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

    name = "self-orthogonal"

    def _tests(self, space: Space) -> SymbolicTests:
        layout = EvaluatedTests.scalar_layout(forecast_names(space), space, np.abs(space.bounds).max(axis=0))
        return SymbolicTests(coordinates(space.dimension), layout)


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


class Cumulative(Guarantee):
    """Cumulative probabilities of ordered classes, or of the points of a grid, are right on average.

    One moment for each class but the last, ``E[1{Y <= y_k} - F(y_k)] = 0`` (on a grid the mean over the gap above
    ``y_k``). Without slack this is :class:`Unbiased`. Slack of each cumulative probability does not add up over
    classes, so that a finer grid costs hardly more.

    Parameters
    ----------
    orthogonal : bool
        Also ``E[F(y_k) (1{Y <= y_k} - F(y_k))] = 0``.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Cumulative()
    Cumulative(orthogonal=False)
    """

    orthogonal: bool = False

    name = "cumulative"

    def __post_init__(self) -> None:
        object.__setattr__(self, "orthogonal", truth(self.orthogonal, "orthogonal"))

    def stated(self, space: Space) -> SymbolicTests:
        if not space.is_simplex:
            raise InputError(f"Cumulative is for ordered classes and grids; got {space!r}.")
        k, factors, places = space.dimension - 1, [ONE], [0] * (space.dimension - 1)
        if self.orthogonal:
            factors += accumulate(coordinates(k), operator.add)
            places += range(1, k + 1)
        # One half up to the class, less one half above: the same moment, as errors sum to zero, and half the size.
        columns = [factor * half for factor in factors for half in (0.5, -0.5)]
        own = np.arange(k + 1) > np.arange(len(places))[:, None] % k
        names = [f"{name} or less" for name in space.coordinate_names[:-1]]
        names += [f"v x {name}" for name in names][: len(places) - k]
        bounds = np.full(own.shape, 0.5)
        return SymbolicTests(columns, EvaluatedTests.vector_layout(names, bounds, own + 2 * np.array(places)[:, None]))


class FullyCalibrated(Guarantee):
    """Every forecast is right given itself: ``E[Y | f] = f``. Best responding is then optimal.

    Examples
    --------
    >>> from prudent import guarantees
    >>> (guarantees.FullyCalibrated() & guarantees.Unbiased()).full
    True
    """

    name = "fully-calibrated"
    full = True

    def stated(self, space: Space) -> SymbolicTests:
        raise InputError("FullyCalibrated has infinitely many tests; they cannot be evaluated, slackened or audited.")


class LogOdds(_WithIntercept):
    """Errors are uncorrelated with the log-odds ``log(v_i / v_d)`` against the last class.

    What stationarity gives for a softmax head trained by cross-entropy
    without regularisation; with a bias also the test 1. For one coordinate in
    a box the log-odds are ``log((v - lower) / (upper - v))``, the sigmoid's.
    Forecasts of exactly zero are refused. Tests are taken as they are, unscaled.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.LogOdds()
    LogOdds(intercept=True)
    """

    intercept: bool = True

    name = "log-odds"

    def _tests(self, space: Space) -> SymbolicTests:
        shares = _shares(self, space)
        logarithms = [Logarithm(share) for share in shares]
        columns: list[Expression] = [logarithm - logarithms[-1] for logarithm in logarithms[:-1]]
        names = ["log-odds"]
        if space.is_simplex:
            classes = [name[2:-1] for name in space.coordinate_names]
            names = [f"log-odds {label}:{classes[-1]}" for label in classes[:-1]]
        layout = EvaluatedTests.scalar_layout(names, space, bounds=np.full(len(columns), np.inf))
        return SymbolicTests(columns, layout, tuple(shares))


class Temperature(Guarantee):
    """The one moment that temperature scaling makes zero: ``E[log f . (Y - f)] = 0``.

    For one coordinate in a box the test is the log-odds. Taken as it is, unscaled.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Temperature()
    Temperature()
    """

    name = "temperature"

    def stated(self, space: Space) -> SymbolicTests:
        shares = _shares(self, space)
        logarithms = [Logarithm(share) for share in shares]
        test = logarithms if space.is_simplex else [logarithms[0] - logarithms[1]]
        unknown = np.full((1, space.dimension), np.inf)
        return SymbolicTests(test, EvaluatedTests.vector_layout(["temperature"], unknown), tuple(shares))


def _shares(guarantee: Guarantee, space: Space) -> list[Expression]:
    """What logarithms are taken of: the probabilities of all classes, or the distances to both ends of an interval."""
    if space.is_simplex:
        return coordinates(space.dimension)
    if space.dimension > 1:
        raise InputError(f"{type(guarantee).__name__} needs a Simplex or a box of one coordinate; got {space!r}.")
    v, (lower, upper) = Coordinate(0), space.interval
    return [v - lower, upper - v]
