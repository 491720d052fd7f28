"""What training a softmax or sigmoid head by cross-entropy guarantees (docs/theory.md, section 3.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from prudent.arrays import FloatArray, describe_rows
from prudent.errors import InputError, OutsideSpaceError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.written import Block, WrittenTests, coordinate
from prudent.spaces import Simplex, Space

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["LogOdds", "Temperature"]

_REFUSAL = "logarithms are taken, so forecasts must be strictly inside the space"


@dataclass(frozen=True)
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

    kind: ClassVar[str] = "log-odds"

    def __post_init__(self) -> None:
        if not isinstance(self.intercept, (bool, np.bool_)):
            raise InputError(f"intercept must be True or False; got {self.intercept!r}.")
        object.__setattr__(self, "intercept", bool(self.intercept))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return self._tests(_log_odds(forecasts, space, "LogOdds"), space)

    def write(self, space: Space) -> WrittenTests:
        numbers, demand = _written_log_odds(space, "LogOdds")
        block = Block(lambda _, values: self._tests(values, space), numbers, demand=demand, refusal=_REFUSAL)
        return WrittenTests((block,))

    def _tests(self, values: FloatArray, space: Space) -> EvaluatedTests:
        if isinstance(space, Simplex):
            classes = [name[2:-1] for name in space.coordinate_names]
            names = [f"log-odds {label}:{classes[-1]}" for label in classes[:-1]]
        else:
            names = ["log-odds"]
        if self.intercept:
            values = np.hstack([np.ones((len(values), 1)), values])
            names = ["1", *names]
        bounds = np.where([name == "1" for name in names], 1.0, np.inf)
        return EvaluatedTests.from_scalar(values, names, np.ones(len(names)), space.coordinate_names, bounds)


@dataclass(frozen=True)
class Temperature(Guarantee):
    """The one moment that temperature scaling makes zero: ``E[log f . (Y - f)] = 0``.

    For one coordinate in a box the test is the log-odds. Taken as it is, unscaled.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Temperature()
    Temperature()
    """

    kind: ClassVar[str] = "temperature"

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        if isinstance(space, Simplex):
            _refuse_zeros(forecasts, forecasts, "Temperature")
            values = np.log(forecasts)
        else:
            values = _log_odds(forecasts, space, "Temperature")
        return self._tests(values, space)

    def write(self, space: Space) -> WrittenTests:
        import narwhals.stable.v2 as nw

        if isinstance(space, Simplex):
            columns = [nw.col(coordinate(j)) for j in range(space.dimension)]
            numbers = {f"log_v{j}": column.log() for j, column in enumerate(columns)}
            demand = nw.min_horizontal(*columns) > 0.0
        else:
            numbers, demand = _written_log_odds(space, "Temperature")
        block = Block(lambda _, values: self._tests(values, space), numbers, demand=demand, refusal=_REFUSAL)
        return WrittenTests((block,))

    def _tests(self, values: FloatArray, space: Space) -> EvaluatedTests:
        unknown = np.full((1, space.dimension), np.inf)
        return EvaluatedTests.from_vector(values[:, None, :], ["temperature"], np.ones(1), unknown)


def _written_log_odds(space: Space, name: str) -> tuple[dict[str, nw.Expr], nw.Expr]:
    """Log-odds by name, and the condition under which they are finite."""
    import narwhals.stable.v2 as nw

    if isinstance(space, Simplex):
        columns = [nw.col(coordinate(j)) for j in range(space.dimension)]
        last = columns[-1].log()
        numbers = {f"log_odds{j}": column.log() - last for j, column in enumerate(columns[:-1])}
        return numbers, nw.min_horizontal(*columns) > 0.0
    if space.dimension != 1:
        raise InputError(f"{name} needs a Simplex or a box of one coordinate; got {space!r}.")
    lower, upper = (float(bound[0]) for bound in space.bounds)
    below, above = nw.col(coordinate(0)) - lower, upper - nw.col(coordinate(0))
    return {"log_odds": below.log() - above.log()}, nw.min_horizontal(below, above) > 0.0


def _log_odds(forecasts: FloatArray, space: Space, name: str) -> FloatArray:
    if isinstance(space, Simplex):
        _refuse_zeros(forecasts, forecasts, name)
        return np.log(forecasts[:, :-1]) - np.log(forecasts[:, -1:])
    if space.dimension != 1:
        raise InputError(f"{name} needs a Simplex or a box of one coordinate; got {space!r}.")
    lower, upper = space.bounds
    _refuse_zeros(np.minimum(forecasts - lower, upper - forecasts), forecasts, name)
    return np.log(forecasts - lower) - np.log(upper - forecasts)


def _refuse_zeros(margin: FloatArray, forecasts: FloatArray, name: str) -> None:
    zero = np.flatnonzero((margin <= 0).any(axis=1))
    if zero.size:
        raise OutsideSpaceError(
            f"{name} takes logarithms, so forecasts must be strictly inside the space; "
            f"{describe_rows(zero)} are not (first: {forecasts[zero[0]].tolist()}). "
            f"A softmax never gives exact zeros: keep its full precision, or use another guarantee.",
            zero.tolist(),
        )
