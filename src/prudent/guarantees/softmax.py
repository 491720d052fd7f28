"""What training a softmax or sigmoid head by cross-entropy guarantees (docs/theory.md, section 3.8)."""

import numpy as np

from prudent.arrays import truth
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.elementary import Unbiased
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import Coordinate, Expression, Logarithm, coordinates
from prudent.guarantees.symbolic import SymbolicTests
from prudent.spaces import Space


class LogOdds(Guarantee):
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

    kind = "log-odds"
    name = "log-odds"

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", truth(self.intercept, "intercept"))

    def stated(self, space: Space) -> SymbolicTests:
        shares = _shares(self, space)
        logarithms = [Logarithm(share) for share in shares]
        columns: list[Expression] = [logarithm - logarithms[-1] for logarithm in logarithms[:-1]]
        names = ["log-odds"]
        if space.is_simplex:
            classes = [name[2:-1] for name in space.coordinate_names]
            names = [f"log-odds {label}:{classes[-1]}" for label in classes[:-1]]
        layout = EvaluatedTests.scalar_layout(names, space, bounds=np.full(len(columns), np.inf))
        own = SymbolicTests(columns, layout, tuple(shares))
        return SymbolicTests.joined([Unbiased().stated(space), own]) if self.intercept else own


class Temperature(Guarantee):
    """The one moment that temperature scaling makes zero: ``E[log f . (Y - f)] = 0``.

    For one coordinate in a box the test is the log-odds. Taken as it is, unscaled.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Temperature()
    Temperature()
    """

    kind = "temperature"
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
