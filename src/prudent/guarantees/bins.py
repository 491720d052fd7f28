"""Guarantees that hold within bins of the forecast: of a single coordinate, of each, or of the top label's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prudent.arrays import FloatArray, finite_array, positive_integer
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import Bin, Coordinate, Indicator, Label, Largest, LargestCoordinate, Pair
from prudent.guarantees.symbolic import Condition, SymbolicTests, forecast_names
from prudent.spaces import Space


class Binned(Guarantee):
    """Forecasts are right on average within each bin of a single coordinate.

    Bins are ``[e_i, e_{i+1})``, the last one closed; a forecast outside all
    bins is an error. ``Binned.uniform(n)`` and ``Binned.quantiles(n)`` take
    their edges from the space and from the sample when a policy is fitted.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Binned([0, 0.5, 1])
    Binned(edges=(0.0, 0.5, 1.0))
    >>> guarantees.Binned.quantiles(10)
    QuantileBins(n_bins=10)
    """

    edges: tuple[float, ...]

    kind = "binned"

    def __post_init__(self) -> None:
        edges = finite_array(self.edges, "edges")
        if edges.ndim != 1 or edges.size < 2 or not (np.diff(edges) > 0).all():
            raise InputError(f"edges must be at least two increasing numbers; got {edges.tolist()}.")
        object.__setattr__(self, "edges", tuple(edges.tolist()))

    @staticmethod
    def uniform(n_bins: int) -> UniformBins:
        """Take ``n_bins`` bins of equal width over the outcome space."""
        return UniformBins(n_bins)

    @staticmethod
    def quantiles(n_bins: int) -> QuantileBins:
        """Take ``n_bins`` bins of equal weight on the sample; equal edges merge."""
        return QuantileBins(n_bins)

    def stated(self, space: Space) -> SymbolicTests:
        _require_one_coordinate(space)
        v, first, last = Coordinate(0), self.edges[0], self.edges[-1]
        covered = Condition(
            (v - first, last - v),
            strict=False,
            rule=f"forecasts must lie within the bins [{first}, {last}]",
            advice="Let the edges cover the outcome space.",
        )
        needless = first <= space.bounds[0][0] and last >= space.bounds[1][0]
        names = [f"v in {text}" for text in _bin_names(self.edges)]
        columns = _indicators(Bin(v, self.edges))
        conditions = () if needless else (covered,)
        return SymbolicTests.scalar(columns, names, space, disjoint=True, conditions=conditions)


class _NumberOfBins(Guarantee):
    """A guarantee that is stated for a number of bins."""

    n_bins: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", positive_integer(self.n_bins, "n_bins"))


class UniformBins(_NumberOfBins):
    """Bins of equal width over the outcome space; see :meth:`Binned.uniform`."""

    kind = "uniform-bins"
    name = "binned"

    def resolve(self, forecasts: FloatArray, weights: FloatArray, space: Space) -> Guarantee:
        _require_one_coordinate(space)
        return Binned(_equal_edges(space, 0, self.n_bins))

    def stated(self, space: Space) -> SymbolicTests:
        return self.resolve(np.zeros((0, 1)), np.zeros(0), space).stated(space)


class QuantileBins(_NumberOfBins):
    """Bins of equal weight on the fitting sample; see :meth:`Binned.quantiles`."""

    kind = "quantile-bins"
    name = "quantiles"

    def resolve(self, forecasts: FloatArray, weights: FloatArray, space: Space) -> Guarantee:
        _require_one_coordinate(space)
        order = np.argsort(forecasts[:, 0], kind="stable")
        cumulative = np.cumsum(weights[order])
        levels = cumulative[-1] * np.arange(1, self.n_bins) / self.n_bins
        cuts = forecasts[order, 0][np.minimum(np.searchsorted(cumulative, levels), len(order) - 1)]
        lower, upper = space.bounds
        # The outer edges are those of the space: tomorrow's forecasts may exceed the sample's.
        inner = cuts[(cuts > lower[0]) & (cuts < upper[0])]
        return Binned(tuple(np.unique(np.concatenate([lower, inner, upper])).tolist()))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return self.resolve(forecasts, np.ones(len(forecasts)), space).evaluate(forecasts, space)


class TopLabel(_NumberOfBins):
    """The predicted class is right as often as its probability says, per class and confidence bin.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.TopLabel(10)
    TopLabel(n_bins=10)
    """

    kind = "top-label"
    name = "top-label"

    def stated(self, space: Space) -> SymbolicTests:
        columns, texts = _top_label(self, space)
        names = [f"top {name[1:]}, {text}" for name in space.coordinate_names for text in texts]
        owners = np.repeat(np.arange(space.dimension), self.n_bins)
        return SymbolicTests.of_coordinates(columns, owners, names, space.dimension)


class Confidence(_NumberOfBins):
    """The predicted class is right as often as its probability says, per confidence bin.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Confidence(15)
    Confidence(n_bins=15)
    """

    kind = "confidence"
    name = "confidence"

    def stated(self, space: Space) -> SymbolicTests:
        columns, texts = _top_label(self, space)
        tests = [columns[number :: self.n_bins] for number in range(self.n_bins)]
        bounds = np.ones((self.n_bins, space.dimension))
        return SymbolicTests.vector(tests, [f"top {text}" for text in texts], bounds, disjoint=True)


class Classwise(_NumberOfBins):
    """Each coordinate is right on average within bins of that coordinate.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Classwise(5)
    Classwise(n_bins=5)
    """

    kind = "classwise"
    name = "classwise"

    def stated(self, space: Space) -> SymbolicTests:
        columns, names = [], []
        for j, name in enumerate(forecast_names(space)):
            edges = _equal_edges(space, j, self.n_bins)
            columns += _indicators(Bin(Coordinate(j), edges))
            names += [f"{name} in {text}" for text in _bin_names(edges)]
        owners = np.repeat(np.arange(space.dimension), self.n_bins)
        return SymbolicTests.of_coordinates(columns, owners, names, space.dimension)


def _top_label(guarantee: TopLabel | Confidence, space: Space) -> tuple[list[Indicator], list[str]]:
    """Indicators of every class and bin of its probability, where that class is the most probable one."""
    if not space.is_simplex:
        raise InputError(
            f"{type(guarantee).__name__} speaks of the most probable class and needs a Simplex; got {space!r}."
        )
    d, edges = space.dimension, _equal_edges(space, 0, guarantee.n_bins)
    label = Pair(LargestCoordinate(d), Bin(Largest(d), edges))
    return _indicators(label), [f"confidence in {text}" for text in _bin_names(edges)]


def _indicators(label: Label) -> list[Indicator]:
    return [Indicator(label, index) for index in range(label.n_labels)]


def _equal_edges(space: Space, j: int, n_bins: int) -> tuple[float, ...]:
    """Edges of bins of equal width along a coordinate."""
    lower, upper = space.bounds
    return tuple(np.linspace(lower[j], upper[j], n_bins + 1).tolist())


def _bin_names(edges: Sequence[float]) -> list[str]:
    last = len(edges) - 2
    return [f"[{edges[i]:.6g}, {edges[i + 1]:.6g}{']' if i == last else ')'}" for i in range(last + 1)]


def _require_one_coordinate(space: Space) -> None:
    if space.dimension != 1:
        raise InputError(
            f"Binned is for a single coordinate; got {space!r}. Use Classwise, TopLabel, Confidence or Partition."
        )
